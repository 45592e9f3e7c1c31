"""The registry of router dialects: one row per file format that we write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from models_app.core.export import llama_swap, presets, quartermaster, render, validate, verify
from models_app.core.export.document import Document
from models_app.core.export.findings import CheckFinding
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import check as preset_check
from models_app.core.export.presets import convert as preset_convert
from models_app.core.export.presets import render as preset_render


@dataclass(frozen=True, slots=True)
class Dialect:
    """One router's file. `convert` makes it from the document that `build_document` gives."""

    slug: str
    label: str
    file_name: str
    convert: Callable[[Document, Options], Document]
    check: Callable[[bytes, str], list[CheckFinding]]
    """Findings of a file as it lies on disk, under the word-splitting rules of its host (posix, windows)."""
    stops_models_on_reload: bool
    """A changed file makes the router stop every running model."""
    scopes_keys: bool
    """API keys can be limited to some models."""
    names_variables: bool
    """Its reader puts environment variables in place of `${env.NAME}`, so that a file need not hold keys."""
    render: Callable[[Document], str] = render.render
    verify: Callable[[Document, str], list[CheckFinding]] = verify.verify
    """Findings of a rendered document, that it reads back as it was meant among them."""


def _check_yaml(dialect: str, data: bytes, rules: str) -> list[CheckFinding]:
    return validate.validate_bytes(data, dialect, rules)


DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "llama-swap",
        "llama-swap",
        "config.yaml",
        llama_swap.convert,
        partial(_check_yaml, "llama-swap"),
        stops_models_on_reload=True,
        scopes_keys=False,
        names_variables=True,
    ),
    Dialect(
        "quartermaster",
        "quartermaster",
        "config.yaml",
        quartermaster.convert,
        partial(_check_yaml, "quartermaster"),
        stops_models_on_reload=False,
        scopes_keys=True,
        names_variables=True,
    ),
    Dialect(
        presets.SLUG,
        "llama-server (router mode)",
        presets.FILE_NAME,
        preset_convert.convert,
        lambda data, rules: preset_check.check_bytes(data),
        stops_models_on_reload=False,
        scopes_keys=False,
        names_variables=False,
        render=preset_render.render,
        verify=preset_check.verify,
    ),
)
BY_SLUG = {dialect.slug: dialect for dialect in DIALECTS}
DEFAULT_DIALECT = DIALECTS[0].slug
