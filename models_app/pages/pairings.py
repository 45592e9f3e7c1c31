"""What a model goes together with: its sidecars, components and prompt enhancers, and the models that it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from models_app.core.components.arms import Pick
from models_app.core.components.pool import PoolEntry
from models_app.core.components.resolve import Components
from models_app.core.discovery.enhancers import Pair
from models_app.pages.component_words import OVERRIDE_KEYS, WIRED, because_text, is_ambiguous, need_text
from models_app.selectors.components import HostComponents, ModelRef
from models_app.selectors.sight import HIDDEN

SHOWN_OTHERS = 3
_FOLDERS = frozenset({"dino"})
"""Roles that a folder plays; the list of components has files only."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """One file that a model is launched with, or lacks."""

    role: str
    name: str
    path: str
    url: str
    reason: str
    others: str = ""
    """Candidates that were not taken."""
    pin: str = ""
    """The field of the model that pins this role."""
    tone: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """A model that is launched with this one's file."""

    role: str
    name: str
    url: str
    reason: str


def pairings(found: HostComponents, model: ModelRef) -> list[Pairing]:
    """In the order in which a launch names them; what is missing stands in its place."""
    chosen = found.chosen.get(model.pk, Components())
    lines = [_pairing(role, Pick(path, origin)) for role, (path, origin) in model.pairs.items()]
    lines += [_pairing(role, pick, OVERRIDE_KEYS.get(role, "")) for role, pick in chosen.picks.items()]
    lines += [_missing(found, model, role) for role in chosen.missing]
    if model.model_class == "3d" and "dino" not in model.pairs:
        lines.append(Pairing(WIRED["dino"], "", "", "", "none lies near the package", tone="bad", shape="bad"))
    return [
        *lines,
        *_enhancers(found.enhancer_pairs.get(model.pk, Pair()), {item.served_id: item for item in found.models}),
    ]


def _pairing(role: str, pick: Pick, pin: str = "") -> Pairing:
    name = pick.path.replace("\\", "/").rpartition("/")[2]
    tone, shape = ("warn", "warn") if is_ambiguous(pick) else ("", "")
    return Pairing(
        role=WIRED.get(role, role),
        name=name,
        path="" if pick.path == HIDDEN else pick.path,
        url="" if role in _FOLDERS or pick.path == HIDDEN else _listed(name),
        reason=because_text(pick),
        others=_others(pick.others),
        pin=pin,
        tone=tone,
        shape=shape,
    )


def _listed(name: str) -> str:
    return f"{reverse('models:component-list')}?{urlencode({'q': name})}"


def _others(entries: Sequence[PoolEntry]) -> str:
    names = [entry.path.rpartition("/")[2] for entry in entries]
    return ", ".join(names[:SHOWN_OTHERS]) + (
        f" and {len(names) - SHOWN_OTHERS:,} more" if len(names) > SHOWN_OTHERS else ""
    )


def _missing(found: HostComponents, model: ModelRef, role: str) -> Pairing:
    need = need_text(role, found.headers[model.path], model.base_id)
    pin = OVERRIDE_KEYS.get(role, "")
    return Pairing(WIRED.get(role, role), "", "", "", f"no {need} in the folders", pin=pin, tone="bad", shape="bad")


def _enhancers(pair: Pair, models: Mapping[str, ModelRef]) -> Iterable[Pairing]:
    for role, wanted, pin in (
        ("enhancer", pair.text, "promptEnhancer"),
        ("edit enhancer", pair.edit, "promptEnhancerEdit"),
    ):
        if not wanted:
            continue
        model = models.get(wanted)
        url = reverse("models:model-files", args=[model.pk]) if model else ""
        reason = "its name says so" if model else "pinned for this model; no such model is here"
        yield Pairing(WIRED[role], wanted, model.path if model else "", url, reason, pin=pin)


def served(found: HostComponents, model: ModelRef) -> list[Served]:
    """Models that use this one's file: as text encoder, or as prompt enhancer."""
    uses = [use for use in found.uses.get(model.path, ()) if use.model.pk != model.pk]
    return [
        Served(
            WIRED.get(use.role, use.role),
            use.model.served_id,
            reverse("models:model-files", args=[use.model.pk]),
            because_text(use.pick),
        )
        for use in uses
    ]
