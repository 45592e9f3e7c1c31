"""The executable of a model, with the guards that keep an engine from files it cannot read (classes.md 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from models_app.core.classes.tts import TTSCPP
from models_app.core.launch.audio_devices import flavour_of
from models_app.core.launch.backends import SIBLINGS, kind_classes, kind_of, resolve_backend, sibling, usual_kind
from models_app.core.settings import BackendEntry, Settings

AUDIOCPP, VLLM = "audiocpp", "vllm"
_BARE = {"segment": "sam3_server", "3d": "trellis2-server", AUDIOCPP: "audiocpp_server", "hf": VLLM}
"""Programs that no setting names -> their usual file name."""
_LEGACY = {"llm": "server_exe", "image": "sd_server_exe", "tts": "tts_server_exe", "asr": "asr_server_exe"}
_BACKEND_CLASS = {"embedding": "llm", "decision": "llm", "video": "image", "sam": "segment", "hf": "llm"}
_PREFERRED = {"hf": VLLM}
_OWN_KINDS: Mapping[str, tuple[str, ...]] = {
    "llm": ("llama", VLLM),
    "embedding": ("llama",),
    "decision": ("llama",),
    "hf": (VLLM,),
    "image": ("sd",),
    "video": ("sd",),
    "tts": ("tts",),
    "asr": ("asr",),
    AUDIOCPP: (AUDIOCPP,),
    "sam": ("sam",),
    "3d": ("trellis2",),
}
"""Class of a model -> the kinds of backends that can read its files."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A program and what it is. `flavour` is set for audio.cpp builds only; `registered` is False for a mere guess."""

    path: str
    kind: str
    flavour: str = ""
    registered: bool = False
    backend_id: str = ""
    """Of its row in the registry."""
    own_kind: str = ""
    """What it is registered as, which need not be an engine that reads the file; "" for a guess."""


def resolve_executable(settings: Settings, pinned: str, model_class: str, engine: str = "") -> Executable:
    """The program that runs a model of a class. `engine` is the speech engine of its file (`qwentts`, `ttscpp`)."""
    backend_class = _BACKEND_CLASS.get(model_class, model_class)
    entry = _entry(settings.backends, pinned, model_class, backend_class, engine)
    if entry is not None and entry.path.strip():
        kind = kind_of(entry.kind)
        name = kind.name if kind else entry.kind
        flavour = flavour_of(entry.variant) if name == AUDIOCPP else ""
        return Executable(entry.path, engine or name, flavour, registered=True, backend_id=entry.id, own_kind=name)
    return Executable(_fallback(settings, model_class, backend_class), engine or usual_kind(model_class))


def programs_of(settings: Settings) -> frozenset[str]:
    """Every program that a model may be started with: the registered ones, and what each class has without them."""
    classes = {(name, _BACKEND_CLASS.get(name, name)) for name in _OWN_KINDS}
    fallbacks = {_fallback(settings, name, backend_class) for name, backend_class in classes}
    return frozenset(path for path in (*fallbacks, *(entry.path for entry in settings.backends)) if path.strip())


def readable_kinds(model_class: str, engine: str = "") -> tuple[str, ...]:
    """The kinds of backends that can read a model of a class; `engine` as above. Others are not offered for it."""
    return (TTSCPP,) if engine == TTSCPP else _OWN_KINDS.get(model_class, ())


def _entry(
    entries: Sequence[BackendEntry], pinned: str, model_class: str, backend_class: str, engine: str
) -> BackendEntry | None:
    """The row of the registry that may run this class."""
    if model_class == AUDIOCPP:
        own = _of_kind(entries, AUDIOCPP)
        pin = pinned if any(entry.id == pinned for entry in own) else ""
        return resolve_backend(own, pin, "tts")
    if model_class in ("tts", "asr"):
        entries = _without(entries, AUDIOCPP)
    if model_class in ("embedding", "decision"):
        entries = _without(entries, VLLM)
    preferred = ("ttscpp" if engine == TTSCPP else "tts") if engine else _PREFERRED.get(model_class, "")
    found = _resolve_preferring(entries, pinned, backend_class, preferred)
    if backend_class == "image" and found is not None and "image" not in kind_classes(found.kind):
        return resolve_backend(entries, "", backend_class)
    return found


def _resolve_preferring(
    entries: Sequence[BackendEntry], pinned: str, backend_class: str, preferred: str
) -> BackendEntry | None:
    """For engines that read only their own format: the pin, then the preferred kind, then whatever serves the class."""
    if pinned and (pin := next((entry for entry in entries if entry.id == pinned), None)):
        return pin
    own = _of_kind(entries, preferred) if preferred else ()
    starred = next((entry for entry in own if entry.default), None)
    return starred or next(iter(own), None) or resolve_backend(entries, "", backend_class)


def _of_kind(entries: Iterable[BackendEntry], name: str) -> tuple[BackendEntry, ...]:
    return tuple(entry for entry in entries if (kind := kind_of(entry.kind)) and kind.name == name)


def _without(entries: Iterable[BackendEntry], name: str) -> tuple[BackendEntry, ...]:
    return tuple(entry for entry in entries if (kind := kind_of(entry.kind)) is None or kind.name != name)


def _fallback(settings: Settings, model_class: str, backend_class: str) -> str:
    """The program from before there was a registry; "" where only the registry counts."""
    bare = _BARE.get(model_class) or _BARE.get(backend_class, "")
    if bare:
        beside = model_class not in (AUDIOCPP, "hf")
        return sibling(settings.server_exe, bare) if beside else bare
    attribute = _LEGACY.get(backend_class, "")
    if not attribute:
        return ""
    named = str(getattr(settings, attribute)).strip()
    if named or attribute not in SIBLINGS:
        return named or "llama-server"
    return sibling(settings.server_exe, SIBLINGS[attribute])
