"""Audio models made of several files (discovery.md 10): MiniMax Music 3, YuE2 with its VAE, the Qwen3-ASR aligner.

Only the shared files of a MiniMax folder name the family; the per-quant ones name nothing and would read as models of
an unknown kind, so the folder is consumed as a whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from models_app.core.discovery.identity import gguf_identity

MINIMAX = "minimax_music3"
YUE2 = "yue2"
ALIGNER = "qwen3_forced_aligner"
_MINIMAX_PART = re.compile(
    r"(language_model|transformer|rvq_depth_decoder)_(.+)\.gguf|(?:vocoder|condition_encoder)\.gguf",
    re.ASCII | re.IGNORECASE,
)
_MINIMAX_OPTIONS = {
    "language_model": "language_model_gguf",
    "rvq_depth_decoder": "rvq_depth_decoder_gguf",
    "transformer": "flow_transformer_gguf",
}
NO_YUE2_VAE = "the model needs its companion yue2-vae-f16.gguf in the same folder"
_YUE2_VAE = re.compile(r"yue2-vae-(f16|f32)\.gguf", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One model of a package: its id, the file that stands for it, all its files, and session options (file names)."""

    id: str
    anchor: str
    files: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Package:
    """What a folder serves. `consumed` files must not become rows of their own."""

    models: tuple[PackagedModel, ...] = ()
    consumed: frozenset[str] = frozenset()
    problem: str = ""
    lonely: tuple[str, ...] = ()
    """Files that stay rows although what they need is missing."""


def audio_package(folder_name: str, families: Mapping[str, str]) -> Package | None:
    """The package in a folder, None if it holds none. `families`: GGUF name -> audio family of its header or ""."""
    if any(family == MINIMAX for family in families.values()):
        return _minimax(folder_name, families)
    if any(family == YUE2 for family in families.values()):
        return _yue2(families)
    return None


def _minimax(folder_name: str, families: Mapping[str, str]) -> Package:
    consumed = frozenset(name for name in families if _MINIMAX_PART.fullmatch(name))
    quants: dict[str, dict[str, str]] = {}
    for name in sorted(consumed):
        match = _MINIMAX_PART.fullmatch(name)
        if match and match[1]:
            quants.setdefault(match[2].lower(), {})[match[1].lower()] = name
    base = re.sub(r"-gguf$", "", folder_name, flags=re.IGNORECASE).lower()
    shared = tuple(name for name in sorted(consumed) if not _part_of_quant(name))
    models = tuple(
        PackagedModel(
            id=f"{base}-{quant}",
            anchor=parts["language_model"],
            files=(*(parts[part] for part in _MINIMAX_OPTIONS if part in parts), *shared),
            options={f"{MINIMAX}.{option}": parts[part] for part, option in _MINIMAX_OPTIONS.items() if part in parts},
        )
        for quant, parts in quants.items()
        if {"language_model", "transformer"} <= parts.keys()
    )
    problem = "" if models else "no complete quant: language_model and transformer of one quant are needed"
    return Package(models, consumed, problem)


def _part_of_quant(name: str) -> bool:
    match = _MINIMAX_PART.fullmatch(name)
    return bool(match and match[1])


def _yue2(families: Mapping[str, str]) -> Package:
    vaes = {match[1].lower(): name for name in sorted(families) if (match := _YUE2_VAE.fullmatch(name))}
    mains = [name for name, family in sorted(families.items()) if family == YUE2 and not _YUE2_VAE.fullmatch(name)]
    vae = vaes.get("f16") or vaes.get("f32")
    if vae is None:
        return Package(problem=NO_YUE2_VAE, lonely=tuple(mains))
    return Package(
        tuple(
            PackagedModel(
                gguf_identity(name).id, name, (name, vae), {f"{YUE2}.model_gguf": name, f"{YUE2}.vae_gguf": vae}
            )
            for name in mains
        )
    )


def find_aligner(files: Iterable[tuple[str, str]]) -> str:
    """Path of the forced aligner among (path, audio family) pairs: named so, and so by its header. "" if none."""
    return next(
        (
            path
            for path, family in files
            if "align" in os.path.basename(path).lower() and family.strip().lower() == ALIGNER
        ),
        "",
    )
