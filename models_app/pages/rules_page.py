"""The rules of a host as their page shows them: what each sets, which models follow it, and what keeps others away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models_app.core.fields.rules import IDENTITY_FIELDS
from models_app.models import Override, Variant
from models_app.pages.history_page import field_label, shown_value
from models_app.selectors.rules import OWN, HostRules, Matched, OwnLine, RuleLine
from quartermaster_site.figures import counted

MOST_NAMED = 5
MOST_OWN = 200
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class IdentityControl:
    """The control of a rule's pattern or quantisation."""

    key: str
    label: str
    help: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class MatchedModel:
    """`note` says what applies to it instead, "" where the rule does."""

    pk: int
    served_id: str
    note: str


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule. `above` and `below` are the numbers of the rows beside it, 0 at the ends."""

    pk: int
    number: int
    match: str
    quant: str
    sets: tuple[tuple[str, str], ...]
    models: tuple[MatchedModel, ...]
    tone: str
    shape: str
    word: str
    reason: str
    above: int
    below: int
    variant_count: int
    changed_by: str
    changed_at: Any

    @property
    def named(self) -> Sequence[MatchedModel]:
        """A few of its models, those that follow it first."""
        return sorted(self.models, key=lambda model: bool(model.note))[:MOST_NAMED]

    @property
    def more(self) -> int:
        return max(0, len(self.models) - MOST_NAMED)


@dataclass(frozen=True, slots=True)
class OwnRow:
    """Settings of one path; `pk` is the model's, 0 where no file of that path is known."""

    pk: int
    name: str
    set_count: int


def identity_controls(typed: Mapping[str, str], errors: Mapping[str, str]) -> list[IdentityControl]:
    """What says which models a rule is for, as it was typed."""
    return [
        IdentityControl(field.key, field.label, field.help, typed.get(field.key, ""), errors.get(field.key, ""))
        for field in IDENTITY_FIELDS
    ]


def rule_rows(found: HostRules) -> list[RuleRow]:
    """All rules in their order."""
    numbers = [line.rule.pk for line in found.rules]
    return [
        rule_row(line, above, below)
        for line, above, below in zip(found.rules, [0, *numbers], [*numbers[1:], 0], strict=False)
    ]


def rule_row(line: RuleLine, above: int = 0, below: int = 0) -> RuleRow:
    tone, shape, word, reason = _standing(line)
    rule = line.rule
    return RuleRow(
        pk=rule.pk,
        number=line.number,
        match=rule.match,
        quant=rule.quant,
        sets=set_fields(rule),
        models=tuple(_model(model, line.number) for model in line.matched),
        tone=tone,
        shape=shape,
        word=word,
        reason=reason,
        above=above,
        below=below,
        variant_count=line.variant_count,
        changed_by=str(rule.changed_by or ""),
        changed_at=rule.changed_at,
    )


def own_rows(found: HostRules) -> list[OwnRow]:
    """Models with settings of their own, at most so many; first those whose file is not known."""
    rows = [_own(line) for line in found.own]
    return sorted(rows, key=lambda row: (row.pk > 0, row.name))[:MOST_OWN]


def _own(line: OwnLine) -> OwnRow:
    model = line.model
    name = model.served_id if model else line.override.match
    return OwnRow(model.pk if model else 0, name, len(line.override.fields))


def set_fields(rule: Override | Variant) -> tuple[tuple[str, str], ...]:
    """(name, value) of what a row sets, secrets masked, long values cut."""
    return tuple((field_label(key), _cut(shown_value(key, value))) for key, value in rule.fields.items())


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _standing(line: RuleLine) -> tuple[str, str, str, str]:
    """Tone, icon, a word or two, and the reason where models follow something else."""
    matched, followers = len(line.matched), len(line.followers)
    if line.covered_by:
        reason = f"Rule {line.covered_by} comes first and matches all that this one could."
        return "warn", "warn", "can never win", reason
    if not matched:
        return "", "idle", "matches no model", "It waits for files that are not there yet."
    if not followers:
        one = "The model that it matches follows" if matched == 1 else f"All {matched:,} models that it matches follow"
        return "warn", "warn", "wins no model", f"{one} {_others(line)}."
    if followers < matched:
        return "ok", "ok", f"{followers:,} of {counted(matched, 'model')}", f"The others follow {_others(line)}."
    return "ok", "ok", counted(matched, "model"), ""


def _others(line: RuleLine) -> str:
    """`rule 1 (2) and settings of their own (1)`."""
    taken = Counter(model.winner for model in line.matched if model.winner != line.number)
    parts = [f"{_winner(winner)} ({count:,})" for winner, count in sorted(taken.items(), reverse=True)]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def _winner(number: int) -> str:
    return "settings of their own" if number == OWN else f"rule {number}"


def _model(model: Matched, number: int) -> MatchedModel:
    if model.winner == number:
        return MatchedModel(model.pk, model.served_id, "")
    note = "has settings of its own" if model.winner == OWN else f"follows rule {model.winner}"
    return MatchedModel(model.pk, model.served_id, note)
