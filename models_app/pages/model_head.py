"""The head of a model's pages: name, id, facts, state and the pills of its quants."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone

from models_app.core.classes.tts import QWENTTS
from models_app.core.plans.engines.registry import ENGINES
from models_app.models import Row
from models_app.pages.engine_words import class_name
from models_app.pages.model_row import LOOKS, Pill, pill_texts
from models_app.selectors import ModelDetail
from models_app.selectors.editing import speech_engine
from quartermaster_site.figures import age

CHAT = "llm"
WITH_VARIANTS = frozenset({CHAT, *(slug for slug, engine in ENGINES.items() if engine.has_variants)})


@dataclass(frozen=True, slots=True)
class Badge:
    tone: str
    word: str
    shape: str


@dataclass(frozen=True, slots=True)
class Note:
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class RuleLink:
    """The rule that matches a model; `applies` unless the model has settings of its own."""

    pk: int
    number: int
    match: str
    quant: str
    applies: bool


@dataclass(frozen=True, slots=True)
class ModelHead:
    pk: int
    name: str
    served_id: str
    quant: str
    tensor_quant: str
    """The type that most of the tensors have, where the name's quant says something else."""
    family: str
    model_class: str
    size_bytes: int
    trained: int
    host_slug: str
    host_name: str
    host_seen: bool
    """Whether its pages are open to who looks."""
    file_count: int
    badges: tuple[Badge, ...]
    quants: tuple[Pill, ...]
    has_variants: bool = False
    """Its variants are entries of their own."""
    has_window: bool = False
    """There is something to compare: a window that plans choose."""
    has_voices: bool = False
    """It speaks with voices that can be auditioned (qwentts.cpp)."""
    set_count: int = 0
    """Settings that people pinned for this model."""
    variant_count: int = 0
    change_count: int = 0
    rule: RuleLink | None = None


def model_head(detail: ModelDetail, address: str) -> ModelHead:
    """`address` is the name of the page that the pills of the other quants lead to."""
    row = detail.row
    others = [
        Pill(text, item.served_id, reverse(address, args=[item.pk]), "", item.pk == row.pk)
        for item, text in zip(detail.quants, pill_texts(detail.quants), strict=True)
    ]
    return ModelHead(
        pk=row.pk,
        name=row.base_id,
        served_id=row.served_id,
        quant=row.quant or row.quant_label,
        tensor_quant=row.quant_label if row.quant and row.quant_label != row.quant else "",
        family=row.family_key if row.family_key != row.base_id and detail.sight.says(row.family_key) else "",
        model_class=class_name(row.model_class),
        has_variants=row.model_class in WITH_VARIANTS,
        has_window=row.model_class == CHAT,
        has_voices=speech_engine(row) == QWENTTS,
        size_bytes=row.size_bytes,
        trained=detail.header.context_length if detail.header else 0,
        host_slug=row.host.slug,
        host_name=row.host.name,
        host_seen=detail.sight.host,
        file_count=len(detail.parts),
        badges=_badges(detail),
        quants=tuple(others) if len(others) > 1 else (),
        set_count=len(detail.override.fields) if detail.override else 0,
        variant_count=detail.variant_count,
        change_count=detail.change_count,
        rule=_rule(detail) if detail.sight.host else None,
    )


def _rule(detail: ModelDetail) -> RuleLink | None:
    found = detail.rule
    return RuleLink(found.pk, found.number, found.match, found.quant, detail.override is None) if found else None


def _badges(detail: ModelDetail) -> tuple[Badge, ...]:
    badges = []
    row = detail.row
    if row.state in LOOKS:
        tone, word, shape = LOOKS[row.state]
        since = age((timezone.now() - row.state_since).total_seconds())
        badges.append(Badge(tone, f"{word} for {since}", shape))
    warnings = sum(finding.level != "info" for finding in detail.findings)
    if warnings:
        badges.append(Badge("warn", f"{warnings} finding{'s' if warnings > 1 else ''}", "warn"))
    return tuple(badges)


def model_notes(detail: ModelDetail) -> list[Note]:
    """What a person should know before reading the rest: trouble on disk, an unreadable header, a class not served."""
    row = detail.row
    notes = []
    if row.state in (Row.State.OFFLINE, Row.State.MISSING):
        reason = row.state_reason or "not found in the last scan"
        kept = "Nothing was removed; the plan is made from what was known."
        notes.append(Note("warn", f"{row.get_state_display()}: {reason}. {kept}"))
    if detail.header is None and detail.header_error:
        notes.append(Note("bad", f"The header cannot be used: {detail.header_error}."))
    elif not row.model_class:
        notes.append(Note("", f"Not served: {row.class_reason or 'this kind of file is not a model by itself'}."))
    pinned = detail.override or detail.rule
    if pinned and pinned.fields.get("skip"):
        notes.append(Note("warn", "Set to be skipped: the plan is shown, but the config has no entry for this model."))
    said = ("header-unreadable",) if detail.header_error else ()
    notes += [Note("warn", item.text) for item in detail.findings if item.level != "info" and item.kind not in said]
    return notes
