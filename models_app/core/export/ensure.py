"""Keeps a generated file up to date with its inputs, for headless use (state.md 11.2).

Only here do rows of the sidecar go when their file is gone; with a scan root missing, none does: an unplugged drive
must not cost anybody's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from models_app.core.errors import SettingsError
from models_app.core.export.load import LoadError, decode, load
from models_app.core.export.target import write_companion, write_target
from models_app.core.fields import CATEGORIES
from models_app.core.state import digest
from models_app.core.state.edits import prune_overrides
from models_app.core.state.loading import LoadedState, Measured, load_state
from models_app.core.state.sidecar import FILE_NAME, Sidecar, sidecar_from_mapping, sidecar_to_mapping

DIGEST_SUFFIX = ".modelhash"

Generate = Callable[[LoadedState], str]


@dataclass(frozen=True, slots=True)
class Ensured:
    """What one run did. `digest` is that of the inputs as they are now."""

    regenerated: bool
    digest: str
    pruned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The files of one generated config. `version` is the generation version: it changes when the output does."""

    settings_file: Path
    output: Path
    version: str
    program_folder: str = ""
    models_dir: str = ""

    @property
    def sidecar_file(self) -> Path:
        return self.settings_file.parent / FILE_NAME

    @property
    def digest_file(self) -> Path:
        return self.output.with_name(self.output.name + DIGEST_SUFFIX)


@dataclass(frozen=True, slots=True)
class _Inputs:
    state: LoadedState
    digest: str


def ensure(
    target: Target,
    generate: Generate,
    *,
    measured: Measured | None = None,
    lock: AbstractContextManager[Any] | None = None,
) -> Ensured:
    """Generates the output when its inputs changed, or when free VRAM is measured each time (`autoVram`).

    The config is written before its digest, each atomically, so a crash means one more run, never a stale file.
    """
    with lock or nullcontext():
        pruned = _prune(target, measured)
        inputs = _read(target, measured)
        if _up_to_date(target, inputs):
            return Ensured(False, inputs.digest, pruned)
        write_target(str(target.output), generate(inputs.state))
        write_companion(str(target.digest_file), f"{inputs.digest}\n")
        return Ensured(True, inputs.digest, pruned)


def would_change(target: Target, *, measured: Measured | None = None) -> bool:
    """Would `ensure` generate? Neither generates nor prunes."""
    return not _up_to_date(target, _read(target, measured))


def load_map(path: Path, content: bytes) -> dict[str, Any]:
    """A settings file as a map; an error names the file."""
    try:
        document = load(decode(content)).value
    except LoadError as error:
        raise SettingsError(f"{path}: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: expected a map at the top")
    return document


def _read(target: Target, measured: Measured | None) -> _Inputs:
    content = target.settings_file.read_bytes()
    stored = _sidecar_bytes(target)
    sidecar = sidecar_from_mapping(load_map(target.sidecar_file, stored))
    state = load_state(
        load_map(target.settings_file, content), sidecar, models_dir=target.models_dir, measured=measured
    )
    roots = scan_roots(state)
    blob = digest.inputs_blob(target.version, roots, content, stored, target.program_folder)
    further = digest.root_records(roots, digest.is_further_model_file) + digest.single_records(_watched(state))
    return _Inputs(state, digest.inputs_digest(digest.root_records(roots, digest.is_gguf), blob, further))


def scan_roots(state: LoadedState) -> Sequence[str]:
    """Every root of the settings, a blank main root included: their positions are part of the digest."""
    extra = state.settings.category_roots
    return (state.settings.models_root, *(extra[category] for category in CATEGORIES if category in extra))


def _watched(state: LoadedState) -> list[str]:
    """Files outside the roots whose content shapes the output: chat templates and executables."""
    settings = state.settings
    paths = [row.chat_template_file for row in state.overrides]
    paths += [variant.chat_template_file for row in state.overrides for variant in row.variants]
    paths += [entry.path for entry in settings.backends]
    paths += [settings.server_exe, settings.sd_server_exe, settings.tts_server_exe, settings.asr_server_exe]
    return [path for path in paths if "/" in path or "\\" in path]


def _sidecar_bytes(target: Target) -> bytes:
    try:
        return target.sidecar_file.read_bytes()
    except FileNotFoundError:
        return b""


def _prune(target: Target, measured: Measured | None) -> tuple[str, ...]:
    """Drops the sidecar's rows of files that are gone, so that the digest sees it."""
    sidecar = sidecar_from_mapping(load_map(target.sidecar_file, _sidecar_bytes(target)))
    state = _read(target, measured).state
    if any(root.strip() and not Path(root).is_dir() for root in scan_roots(state)):
        return ()
    kept, pruned = prune_overrides(sidecar, _is_gone)
    if pruned:
        write_sidecar(target.sidecar_file, kept)
    return pruned


def write_sidecar(path: Path, sidecar: Sidecar) -> None:
    text = yaml.safe_dump(sidecar_to_mapping(sidecar), sort_keys=False, allow_unicode=True)
    write_companion(str(path), text)


def _is_gone(path: str) -> bool:
    try:
        Path(path).lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _up_to_date(target: Target, inputs: _Inputs) -> bool:
    if inputs.state.settings.auto_vram or not target.output.exists():
        return False
    try:
        return target.digest_file.read_text().strip() == inputs.digest
    except (OSError, UnicodeDecodeError):
        return False
