"""The rules of a host with what they reach, the rule that covers one model, and the history of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from gpus_app.models import Host
from models_app.core.discovery.roots import path_key
from models_app.core.settings import Override
from models_app.core.state.globs import is_glob
from models_app.core.state.overrides import covers
from models_app.core.state.rules import RowReach, row_reach
from models_app.models import Change, Row
from models_app.models import Override as StoredOverride
from models_app.pins import ORDER
from quartermaster_site.errors import NotFound

OWN = 0
"""In place of a rule's number: the model has settings of its own."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A model that a row matches, and the number of the rule that applies to it."""

    pk: int
    served_id: str
    model_class: str
    winner: int


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule. `covered_by` is the number of the rule that leaves it nothing, 0 where none does."""

    rule: StoredOverride
    number: int
    matched: tuple[Matched, ...]
    covered_by: int
    variant_count: int

    @property
    def followers(self) -> tuple[Matched, ...]:
        """The models that it applies to."""
        return tuple(model for model in self.matched if model.winner == self.number)


@dataclass(frozen=True, slots=True)
class OwnLine:
    """Settings of one path: they are tried before all rules. `model` is None where no file of that path is known."""

    override: StoredOverride
    model: Matched | None


@dataclass(frozen=True, slots=True)
class HostRules:
    rules: tuple[RuleLine, ...]
    own: tuple[OwnLine, ...]


@dataclass(frozen=True, slots=True)
class CoveringRule:
    """The first rule that matches a model; it applies where the model has no settings of its own."""

    pk: int
    number: int
    match: str
    quant: str
    fields: Mapping[str, Any]


def host_rules(host: Host) -> HostRules:
    """All rows of a host in the order in which they are tried, in two queries."""
    stored = StoredOverride.objects.filter(host=host).select_related("changed_by").annotate(n=Count("variants"))
    exact, rules = _split(stored.order_by(*ORDER))
    rows = [*exact, *rules]
    models = _models(host)
    reach = row_reach(
        [Override(match=row.match, quant=row.quant) for row in rows],
        [(path, quant) for *_, path, quant in models],
        lambda path: path_key(path, host.os_family),
    )
    first = len(exact)

    def matched(found: RowReach) -> tuple[Matched, ...]:
        return tuple(
            Matched(*models[model][:3], winner - first + 1 if winner >= first else OWN)
            for model, winner in found.winners.items()
        )

    return HostRules(
        tuple(
            RuleLine(
                rule=row,
                number=number,
                matched=matched(found),
                covered_by=0 if found.covered_by is None else found.covered_by - first + 1,
                variant_count=row.n,  # type: ignore[attr-defined]
            )
            for number, (row, found) in enumerate(zip(rules, reach[first:], strict=True), 1)
        ),
        tuple(OwnLine(row, next(iter(matched(found)), None)) for row, found in zip(exact, reach, strict=False)),
    )


def _split(stored: QuerySet[StoredOverride]) -> tuple[list[StoredOverride], list[StoredOverride]]:
    """Rows of one path, and patterns."""
    exact: list[StoredOverride] = []
    patterns: list[StoredOverride] = []
    for row in stored:
        (patterns if is_glob(row.match) else exact).append(row)
    return exact, patterns


def _models(host: Host) -> Sequence[tuple[int, str, str, str, str]]:
    """(pk, served id, class, path, quant) of every model that can be served."""
    rows = Row.objects.filter(host=host).exclude(model_class="").exclude(state=Row.State.MISSING)
    return list(rows.order_by("served_id", "pk").values_list("pk", "served_id", "model_class", "path", "quant"))


def covering_rule(row: Row, rules: Iterable[StoredOverride]) -> CoveringRule | None:
    """Which of the rules of its host, in their order, applies to a model, or would if it had no settings of its own."""
    for number, rule in enumerate(rules, 1):
        if covers(Override(match=rule.match, quant=rule.quant), row.path, row.quant):
            return CoveringRule(rule.pk, number, rule.match, rule.quant, rule.fields)
    return None


def shared_changes(host: Host, *, rule: int = 0, variant: str = "") -> QuerySet[Change]:
    """What was changed about rules and shared variants, the newest first: all of it, or of one."""
    found = Change.objects.filter(Q(rule__gt=0) | Q(match=""), host=host)
    if rule:
        found = found.filter(rule=rule)
    return found.filter(rule=0, variant__iexact=variant) if variant else found


def get_shared_change(host: Host, pk: int) -> Change:
    found = shared_changes(host).filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such change.")
    return found
