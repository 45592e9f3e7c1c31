"""The backends of a host: what runs each class of models, and every registered executable with its state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from gpus_app.models import Backend
from gpus_app.selectors import idle_devices, unused_devices
from models_app.convert import backend_devices, is_refused
from models_app.core.launch.backends import kind_classes
from models_app.core.launch.executables import Executable, readable_kinds
from models_app.core.launch.program_text import matched_ids
from models_app.pages.engine_words import KIND_NAMES
from models_app.selectors.backends import USES, HostBackends, ServedModel
from models_app.services.program_search import Proposal
from quartermaster_site.figures import counted

CLASS_NAMES = {
    "llm": "text",
    "image": "image and video",
    "tts": "speech",
    "asr": "transcription",
    "segment": "segmentation",
    "3d": "3D",
    "upscale": "upscaling",
}
"""Classes of backends, as a list names them."""
NAMED_MODELS = 8


@dataclass(frozen=True, slots=True)
class UseLine:
    """What runs one class of models. `models` is their number as text."""

    title: str
    program: str
    why: str
    models: str
    waits: bool
    """There are models, and nothing is registered for them."""


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """What the program calls a device, and which one of the host's it is."""

    id: str
    name: str
    ours: str


@dataclass(frozen=True, slots=True)
class BackendLine:
    """One registered executable."""

    pk: int
    slug: str
    name: str
    path: str
    kind: str
    serves: str
    variant: str
    starred: bool
    tone: str
    word: str
    shape: str
    models: str
    probed_at: datetime | None
    version: str
    flags: str
    devices: tuple[DeviceLine, ...]
    device_note: str
    problem: str


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """An executable that lies on the host, and what its name says it is."""

    kind: str
    kind_name: str
    path: str


@dataclass(frozen=True, slots=True)
class Affected:
    """Models that lose their backend, and what runs them then."""

    names: str
    instead: str
    pinned: bool


def use_lines(found: HostBackends) -> list[UseLine]:
    """One line for each class: what is in use for it, and why."""
    counts: dict[tuple[str, str], int] = {}
    for model in found.models:
        counts[model.use] = counts.get(model.use, 0) + 1
    lines = []
    for model_class, engine, title in USES:
        program = found.default(model_class, engine)
        count = counts.get((model_class, engine), 0)
        if not program.registered and not count and (model_class, engine) != ("llm", ""):
            continue
        readable = readable_kinds(model_class, engine)
        waits = bool(count) and program.own_kind not in readable
        lines.append(UseLine(title, _program_name(found, program), _why(found, program, readable), f"{count:,}", waits))
    return lines


def _program_name(found: HostBackends, program: Executable) -> str:
    row = _row(found, program)
    return row.name or row.path if row else program.path


def _row(found: HostBackends, program: Executable) -> Backend | None:
    return next((row for row in found.rows if row.slug == program.backend_id), None)


def _why(found: HostBackends, program: Executable, readable: Collection[str]) -> str:
    row = _row(found, program)
    if row is None:
        place = "beside llama-server" if "/" in program.path or "\\" in program.path else "found on the search path"
        return f"{place}, until one is registered"
    if row.kind not in readable:
        names = " or ".join(KIND_NAMES[kind] for kind in readable)
        return f"it cannot read their files: register {names}"
    if row.starred:
        return "starred"
    others = [other for other in found.rows if other.kind in readable and not is_refused(other)]
    return "used because first" if len(others) > 1 else "the only one that reads them"


def backend_lines(found: HostBackends) -> list[BackendLine]:
    in_use = {found.default(model_class, engine).backend_id for model_class, engine, _ in USES}
    return [_line(found, row, in_use) for row in found.rows]


def proposal_lines(proposals: Iterable[Proposal]) -> list[ProposalLine]:
    return [ProposalLine(item.kind, KIND_NAMES.get(item.kind, item.kind), item.path) for item in proposals]


def _line(found: HostBackends, row: Backend, in_use: set[str]) -> BackendLine:
    models = found.models_of(row)
    tone, word, shape = _state(row, row.slug in in_use, bool(models))
    devices, note = _devices(found, row)
    return BackendLine(
        pk=row.pk,
        slug=row.slug,
        name=row.name or row.path.replace("\\", "/").rpartition("/")[2],
        path=row.path,
        kind=KIND_NAMES.get(row.kind, row.kind),
        serves=", ".join(CLASS_NAMES.get(name, name) for name in kind_classes(row.kind)) or "nothing here",
        variant=row.variant,
        starred=row.starred,
        tone=tone,
        word=word,
        shape=shape,
        models=f"{len(models):,}",
        probed_at=row.probed_at,
        version=" · ".join(part for part in (row.version, row.build) if part),
        flags=counted(len(row.probe["flags"]), "flag") if row.probe.get("flags") else "",
        devices=devices,
        device_note=note,
        problem=_problem(row),
    )


def _state(row: Backend, is_default: bool, has_models: bool) -> tuple[str, str, str]:
    """Tone, word and icon."""
    if is_refused(row):
        return "bad", "not used: another kind", "bad"
    if is_default or has_models:
        word = "in use" if is_default else "in use by pins"
        return ("warn", f"{word}, with a problem", "warn") if row.probe.get("problem") else ("ok", word, "ok")
    return "", "not used", "idle"


def _problem(row: Backend) -> str:
    if is_refused(row):
        said = KIND_NAMES.get(row.probe["kind"], row.probe["kind"])
        return f"Its own help says that it is {said}. Plans leave it out: change its kind."
    problem = row.probe.get("problem", "")
    return f"{problem[:1].upper()}{problem[1:]}." if problem else ""


def _devices(found: HostBackends, row: Backend) -> tuple[tuple[DeviceLine, ...], str]:
    """The program's devices, and why they were not matched with ours where they were not."""
    listed = backend_devices(row)
    if listed is None:
        return (), ""
    if not listed:
        return (), "it sees no GPU"
    members = idle_devices(found.host).devices
    names = {device.index: f"GPU {device.index}" for device in members}
    ids = dict(
        zip(
            matched_ids(members, listed, unused_devices(found.host)),
            (names[device.index] for device in members),
            strict=False,
        )
    )
    lines = tuple(DeviceLine(device.id, device.name, ids.get(device.id, "")) for device in listed)
    if ids or not members or any(device.tag for device in listed):
        return lines, ""
    return lines, "not all of this host's devices are found in its list, so launches name none"


def affected_by_removal(found: HostBackends, backend: Backend) -> list[Affected]:
    """The models of a backend in groups: those with the same program afterwards are one line."""
    groups: dict[tuple[str, bool], list[ServedModel]] = {}
    for model, program in found.without(backend):
        instead = _program_name(found, program) or "nothing: they are not served"
        groups.setdefault((instead, model.pinned == backend.slug), []).append(model)
    return [Affected(_names(models), instead, pinned) for (instead, pinned), models in groups.items()]


def _names(models: Iterable[ServedModel]) -> str:
    names = sorted(model.served_id for model in models)
    more = len(names) - NAMED_MODELS
    return ", ".join(names[:NAMED_MODELS]) + (f" and {more:,} more" if more > 0 else "")
