"""Which executable runs a model: the registry of backends and the legacy executables (classes.md 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from models_app.core.settings import BackendEntry, Override, Settings


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A kind of engine: its spellings (canonical first), the backend classes it serves, its legacy setting."""

    spellings: tuple[str, ...]
    classes: tuple[str, ...]
    legacy: str = ""
    """Attribute of the settings with the executable from before there was a registry."""

    @property
    def name(self) -> str:
        return self.spellings[0]


KINDS = (
    BackendKind(("llama", "llama.cpp", "server"), ("llm",), "server_exe"),
    BackendKind(("vllm",), ("llm",)),
    BackendKind(("sd", "sd-server", "image"), ("image",), "sd_server_exe"),
    BackendKind(("tts", "tts-server", "speech"), ("tts",), "tts_server_exe"),
    BackendKind(("ttscpp", "tts.cpp", "kokoro"), ("tts",)),
    BackendKind(("asr", "parakeet", "parakeet-server", "transcribe"), ("asr",), "asr_server_exe"),
    BackendKind(("audiocpp", "audio.cpp", "audiocpp-server"), ("tts", "asr")),
    BackendKind(("sam", "sam3", "segment"), ("segment",)),
    BackendKind(("trellis2", "trellis", "3d"), ("3d",)),
    BackendKind(("upscale", "realesrgan", "esrgan"), ("upscale",)),
)
_BY_SPELLING = {spelling: kind for kind in KINDS for spelling in kind.spellings}
_BREAKS_SPLITTING = re.compile(r"[\s\"'#]")

SIBLINGS = {"sd_server_exe": "sd-server", "tts_server_exe": "tts-server", "asr_server_exe": "parakeet-server"}
"""Executables that stand beside llama-server unless they are named: attribute -> file name."""

PROGRAMS = {
    "llama-server": "llama",
    "sd-server": "sd",
    "tts-server": "tts",
    "parakeet-server": "asr",
    "audiocpp_server": "audiocpp",
    "sam3_server": "sam",
    "trellis2-server": "trellis2",
    "vllm": "vllm",
    "realesrgan-ncnn-vulkan": "upscale",
}
"""File name of an executable, without `.exe` -> the kind it most likely is; its own help decides."""


def kind_of(text: str) -> BackendKind | None:
    """The kind of any spelling, None for an unknown one."""
    return _BY_SPELLING.get(text.strip().lower())


def kind_classes(text: str) -> tuple[str, ...]:
    """Backend classes that a kind serves."""
    kind = kind_of(text)
    return kind.classes if kind else ()


def class_taken(entries: Iterable[BackendEntry], kind: str) -> bool:
    """Does any class of this kind have a row already? An install never takes a populated class over."""
    wanted = set(kind_classes(kind))
    return any(wanted.intersection(kind_classes(entry.kind)) for entry in entries)


def resolve_backend(entries: Iterable[BackendEntry], pinned: str, backend_class: str) -> BackendEntry | None:
    """The row that serves a class: the pinned one whatever its class, the starred one, the first one; else None.

    A pin at a row that is gone falls through.
    """
    rows = tuple(entries)
    if pinned:
        for entry in rows:
            if entry.id == pinned:
                return entry
    serving = [entry for entry in rows if backend_class in kind_classes(entry.kind)]
    return next((entry for entry in serving if entry.default), serving[0] if serving else None)


_USUAL_KINDS = {
    "llm": "llama",
    "embedding": "llama",
    "decision": "llama",
    "hf": "vllm",
    "image": "sd",
    "video": "sd",
    "3d": "trellis2",
}


def usual_kind(model_class: str) -> str:
    """The kind of backend that a model class is made for; most are called like their class."""
    return _USUAL_KINDS.get(model_class, model_class)


def engine_of(settings: Settings, override: Override, model_class: str) -> str:
    """The kind of backend that runs a model class here: only chat models have a choice."""
    if model_class != "llm":
        return usual_kind(model_class)
    entry = resolve_backend(settings.backends, override.backend, "llm")
    kind = kind_of(entry.kind) if entry is not None else None
    return kind.name if kind is not None else "llama"


def sibling(executable_path: str, name: str) -> str:
    """`name` in the folder of an executable, the bare name where that path has no folder."""
    cut = max(executable_path.rfind("/"), executable_path.rfind("\\"))
    return executable_path[: cut + 1] + name


def legacy_executables(entries: Iterable[BackendEntry]) -> dict[str, str]:
    """The executables that a registry stands for, by settings attribute: first row of a kind, a starred one first."""
    chosen: dict[str, BackendEntry] = {}
    for entry in entries:
        kind = kind_of(entry.kind)
        if kind is None or not kind.legacy or not entry.path.strip():
            continue
        current = chosen.get(kind.legacy)
        if current is None or (entry.default and not current.default):
            chosen[kind.legacy] = entry
    return {attribute: entry.path for attribute, entry in chosen.items()}


def with_registry(settings: Settings, entries: Iterable[BackendEntry]) -> Settings:
    """Settings with this registry. Executables that it does not name stand beside its llama-server."""
    rows = tuple(entries)
    named = legacy_executables(rows)
    llama = named.get("server_exe", "")

    def program(attribute: str) -> str:
        return named.get(attribute) or sibling(llama, SIBLINGS[attribute])

    return replace(
        settings,
        backends=rows,
        server_exe=llama or settings.server_exe,
        sd_server_exe=program("sd_server_exe"),
        tts_server_exe=program("tts_server_exe"),
        asr_server_exe=program("asr_server_exe"),
    )


def executable_word(path: str) -> str:
    """An executable as the first word of a command: slashes as they are, quoted only where splitting breaks it."""
    if not _BREAKS_SPLITTING.search(path):
        return path
    return '"' + path.replace('"', '\\"') + '"'


def executable(settings: Settings, override: Override, backend_class: str) -> str:
    """The word for the executable that runs a model of this backend class."""
    entry = resolve_backend(settings.backends, override.backend, backend_class)
    path = entry.path if entry is not None and entry.path.strip() else ""
    if not path:
        attribute = next((kind.legacy for kind in KINDS if backend_class in kind.classes and kind.legacy), "")
        path = getattr(settings, attribute) if attribute else ""
    return executable_word(path)
