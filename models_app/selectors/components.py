"""Component files of a host, and which model uses which, as a launch would choose them now.

Choices are made anew from stored facts: they depend on pins, and on every other file of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpus_app.models import Host
from models_app import convert
from models_app.core.catalog import Header
from models_app.core.components import signals
from models_app.core.components.arms import Pick
from models_app.core.components.declared import gone_pins
from models_app.core.components.pool import Pool
from models_app.core.components.ranking import ONLY, PATH
from models_app.core.components.resolve import Components, diffusion_model, resolve_components
from models_app.core.discovery import enhancers
from models_app.core.discovery.roots import path_key
from models_app.core.settings import Encoders, Override
from models_app.core.state.overrides import resolve_override
from models_app.models import Component, HeaderFacts, Root, Row
from models_app.selectors.sight import HIDDEN, HostSight
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.errors import NotFound

DIFFUSION = ("image", "video")
_UNLISTED = ("sam", "3d")
"""Classes that no prompt enhancer can be."""
_SIDECARS = (("projector", "mmproj"), ("drafter", "draft"), ("codec", "codec"))
_NEARBY = (("dino", "dino_path"), ("matting", "birefnet_path"))
"""What a scan found near a 3D package."""
_HEADER_FACTS = (
    "architecture",
    "general_type",
    "diffusion_kind",
    "video_kind",
    "has_audio_out",
    "cond_hidden",
    "tensor_shapes",
)


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model as other pages name it."""

    pk: int
    served_id: str
    base_id: str
    path: str
    quant: str
    model_class: str
    state: str
    pairs: Mapping[str, tuple[str, str]]
    """Role of a sidecar, or of what lies near a package -> its path and origin."""


@dataclass(frozen=True, slots=True)
class Use:
    """A model that is launched with a file, and what decided."""

    model: ModelRef
    role: str
    pick: Pick


@dataclass
class HostComponents:
    """The component files of one host with their users. A handful of queries, however many there are."""

    host: Host
    files: Sequence[Component]
    models: Sequence[ModelRef]
    headers: Mapping[str, Header]
    """Of image and video models, with the facts that choices depend on, by path."""
    overrides: Sequence[Override]
    roots: Sequence[Root]

    @cached_property
    def pool(self) -> Pool:
        return convert.core_pool(self.files, self.host)

    @cached_property
    def pins(self) -> Encoders:
        return convert.core_encoders(self.host)

    @cached_property
    def lost_pins(self) -> Mapping[str, str]:
        """Pins of the host, by key, whose file is gone: they are ignored."""
        gone = set(gone_pins(self.pins, self.pool, self._is_gone).values())
        return {key: path for key, path in convert.encoder_pins(self.host).items() if path in gone}

    def of_model(self, model: ModelRef, override: Override | None = None) -> Components:
        """What one image or video model gets; nothing while its header is unread."""
        header = self.headers.get(model.path)
        if model.model_class not in DIFFUSION or header is None:
            return Components()
        own = override or self.override_of(model)
        return resolve_components(
            diffusion_model(header, model.base_id), self.pool, self.pins, own, is_gone=self._is_gone
        )

    def override_of(self, model: ModelRef) -> Override:
        return resolve_override(self.overrides, model.path, model.quant, self._same_path) or Override()

    @cached_property
    def chosen(self) -> Mapping[int, Components]:
        """Number of every image and video model -> its components."""
        return {model.pk: self.of_model(model) for model in self.models if model.model_class in DIFFUSION}

    @cached_property
    def uses(self) -> Mapping[str, Sequence[Use]]:
        """Path of a file -> its users."""
        found: dict[str, list[Use]] = {}
        for model, role, pick in self._pairs():
            if pick.path:
                found.setdefault(pick.path, []).append(Use(model, role, pick))
        return found

    @cached_property
    def runners_up(self) -> Mapping[str, Sequence[Use]]:
        """Path of a file -> choices that it was a candidate of and lost."""
        found: dict[str, list[Use]] = {}
        for model in self.models:
            for role, pick in self.chosen.get(model.pk, Components()).picks.items():
                for entry in pick.others:
                    found.setdefault(entry.path, []).append(Use(model, role, pick))
        return found

    @cached_property
    def enhancer_pairs(self) -> Mapping[int, enhancers.Pair]:
        """Number of every image and video model -> ids of its prompt enhancers."""
        table = enhancers.detect(model.served_id for model in self.models if model.model_class not in _UNLISTED)
        pairs = {}
        for model in self.models:
            if model.model_class in DIFFUSION:
                own = self.override_of(model)
                found = enhancers.pair_of(table, model.served_id)
                pairs[model.pk] = enhancers.resolve(found, own.prompt_enhancer, own.prompt_enhancer_edit)
        return pairs

    def _pairs(self) -> Iterable[tuple[ModelRef, str, Pick]]:
        by_id = {model.served_id: model for model in self.models}
        for model in self.models:
            for role, (path, origin) in model.pairs.items():
                yield model, role, Pick(path, origin)
            for role, pick in self.chosen.get(model.pk, Components()).picks.items():
                yield model, role, pick
            pair = self.enhancer_pairs.get(model.pk, enhancers.Pair())
            for role, wanted in (("enhancer", pair.text), ("edit enhancer", pair.edit)):
                if wanted in by_id:
                    yield model, role, Pick(by_id[wanted].path, "enhancer")
            if model.model_class == "audiocpp":
                yield from ((model, "audio part", Pick(path, "folder")) for path in self._parts_beside(model))

    def _parts_beside(self, model: ModelRef) -> Iterable[str]:
        folder = model.path.rpartition("/")[0]
        parts = (item.path for item in self.files if item.role == signals.AUDIO_PART)
        return [path for path in parts if path.rpartition("/")[0] == folder]

    @cached_property
    def _is_gone(self) -> Callable[[str], bool]:
        return convert.gone_on(self.host, self.files, self.roots)

    def _same_path(self, one: str, other: str) -> bool:
        return path_key(one, self.host.os_family) == path_key(other, self.host.os_family)


def get_component(pk: int, user: Any) -> Component:
    """One component file by its number; NotFound, also where it is hidden from a person."""
    found = Component.objects.select_related("host").prefetch_related("host__settings").filter(pk=pk).first()
    if found is None or not may(user, Level.VIEW, found.host) or not HostSight(user, found.host_id).sees(found.path):
        raise NotFound("There is no such component.")
    return found


def seen_components(host: Host, sight: HostSight) -> HostComponents:
    """The component files of a host as a person sees them. Choices are those of a launch: what is chosen and hidden is
    there without its name, what was not chosen and is hidden is left out.
    """
    whole = host_components(host)
    if sight.is_whole:
        return whole
    models = [replace(model, pairs=_seen_pairs(model, sight)) for model in whole.models if sight.sees(model.path)]
    seen = replace(whole, files=[file for file in whole.files if sight.sees(file.path)], models=models)
    seen.chosen = {
        pk: replace(found, picks={role: _seen_pick(pick, sight) for role, pick in found.picks.items()})
        for pk, found in whole.chosen.items()
    }
    seen.enhancer_pairs = {
        pk: enhancers.Pair(*(name if name and sight.served(name) else "" for name in (pair.text, pair.edit)))
        for pk, pair in whole.enhancer_pairs.items()
    }
    seen.lost_pins = {key: path for key, path in whole.lost_pins.items() if sight.sees(path)}
    return seen


def _seen_pairs(model: ModelRef, sight: HostSight) -> Mapping[str, tuple[str, str]]:
    return {role: (path if sight.sees(path) else HIDDEN, origin) for role, (path, origin) in model.pairs.items()}


def _seen_pick(pick: Pick, sight: HostSight) -> Pick:
    entries, equals = (
        tuple(entry for entry in found if sight.sees(entry.path))
        for found in (pick.ranking.entries, pick.ranking.equals)
    )
    because = ONLY if pick.because == PATH and not equals else pick.because
    path = pick.path if not pick.path or sight.sees(pick.path) else HIDDEN
    return replace(pick, path=path, because=because, ranking=replace(pick.ranking, entries=entries, equals=equals))


def host_components(host: Host) -> HostComponents:
    """All component files of a host."""
    models = [_model_ref(values) for values in _rows(host)]
    return HostComponents(
        host=host,
        files=list(Component.objects.filter(host=host)),
        models=models,
        headers=_headers(host, [model.path for model in models if model.model_class in DIFFUSION]),
        overrides=convert.core_overrides(host, variants=False),
        roots=list(Root.objects.filter(host=host)),
    )


_KINDS = {name: dict if name == "tensor_shapes" else type(getattr(Header(), name)) for name in _HEADER_FACTS}
_ROW_COLUMNS = ("pk", "served_id", "base_id", "path", "quant", "model_class", "state")
_PAIR_COLUMNS = tuple(f"found__{name}_{part}" for _, name in _SIDECARS for part in ("path", "origin"))
_NEAR_COLUMNS = tuple(f"found__{name}" for _, name in _NEARBY)


def _rows(host: Host) -> Iterable[Sequence[Any]]:
    rows = Row.objects.filter(host=host).exclude(state=Row.State.MISSING).order_by("served_id", "path")
    return rows.values_list(*_ROW_COLUMNS, *_PAIR_COLUMNS, *_NEAR_COLUMNS)


def _model_ref(values: Sequence[Any]) -> ModelRef:
    own, pairs = values[: len(_ROW_COLUMNS)], values[len(_ROW_COLUMNS) :]
    near = values[len(_ROW_COLUMNS) + len(_PAIR_COLUMNS) :]
    found = {role: (pairs[2 * index], pairs[2 * index + 1] or "folder") for index, (role, _) in enumerate(_SIDECARS)}
    found |= {role: (path, "near") for (role, _), path in zip(_NEARBY, near, strict=True)}
    own_pairs = {role: pair for role, pair in found.items() if pair[0]}
    return ModelRef(**dict(zip(_ROW_COLUMNS, own, strict=True)), pairs=own_pairs)


def _headers(host: Host, paths: Sequence[str]) -> Mapping[str, Header]:
    """Only the facts that choices depend on: the rest of a header is much larger."""
    if not paths:
        return {}
    stored = HeaderFacts.objects.filter(host=host, path__in=paths, facts__isnull=False)
    rows = stored.values_list("path", *(f"facts__{name}" for name in _HEADER_FACTS))
    return {path: Header(**_present(zip(_HEADER_FACTS, facts, strict=True))) for path, *facts in rows}


def _present(facts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """SQLite gives back a text that looks like a number as one."""
    return {name: _KINDS[name](value) for name, value in facts if value is not None}
