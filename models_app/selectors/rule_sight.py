"""Rules of a host as one person sees them, and the models that keep a person from changing a rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet

from gpus_app.models import Host
from models_app.core.settings import Override
from models_app.core.state.overrides import covers
from models_app.models import Change, Row
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.rules import OWN, HostRules, Matched, OwnLine, RuleLine, host_rules
from models_app.selectors.sight import seen_rows
from quartermaster_site.access.grants import ROWS, grants_of
from quartermaster_site.access.rules import Level
from quartermaster_site.errors import NotFound
from quartermaster_site.figures import counted

Pattern = tuple[str, str]
"""What a rule matches: paths, and a quantisation or ""."""
MOST_READ = 1000
"""Changes of a history that are looked through."""


def held_models(user: Any, host: Host, patterns: Iterable[Pattern]) -> int:
    """How many models that a person may not edit are matched by one of these patterns."""
    condition = grants_of(user).condition(ROWS, Level.EDIT)
    if condition is None:
        return 0
    rules = [Override(match=match, quant=quant) for match, quant in patterns]
    held = Row.objects.filter(~Q(condition), host=host).order_by().values_list("path", "quant")
    return sum(any(covers(rule, path, quant) for rule in rules) for path, quant in held)


def held_text(user: Any, host: Host, patterns: Iterable[Pattern]) -> str:
    """Why a person may not make a rule of such patterns, or change one, "" where they may."""
    held = held_models(user, host, patterns)
    return f"This rule matches {counted(held, 'model')} that you may not edit." if held else ""


def seen_rules(user: Any, host: Host) -> HostRules:
    """The rules of a host without what is hidden from a person: models, and rules that match nothing else.

    What is left is counted as if there were no more, so that no gap tells of what is not shown.
    """
    found, sight = host_rules(host), EntrySight(user, host)
    if sight.whole:
        return found
    seen = set(seen_rows(user).filter(host=host).order_by().values_list("pk", flat=True))
    kept = [line for line in found.rules if _is_seen(line, seen, sight)]
    numbers = {line.number: number for number, line in enumerate(kept, 1)} | {OWN: OWN}
    return HostRules(
        tuple(_seen_line(line, seen, numbers) for line in kept),
        tuple(line for line in found.own if _is_own_seen(line, seen, sight)),
    )


def seen_rule(user: Any, host: Host, pk: int) -> RuleLine:
    """One of them; NotFound."""
    found = next((line for line in seen_rules(user, host).rules if line.rule.pk == pk), None)
    if found is None:
        raise NotFound("There is no such rule.")
    return found


def seen_changes(user: Any, host: Host, changes: Iterable[Change]) -> list[Change]:
    """Those about shared variants, and about rules that match nothing hidden, then or now."""
    if isinstance(changes, QuerySet):
        changes = changes[:MOST_READ]
    sight = EntrySight(user, host)
    if sight.whole:
        return list(changes)
    seen = set(seen_rows(user).filter(host=host).order_by().values_list("path", "quant"))
    rows = set(Row.objects.filter(host=host).order_by().values_list("path", "quant"))
    return [change for change in changes if _is_change_seen(change, seen, rows - seen, sight)]


def _is_change_seen(change: Change, seen: set[Pattern], hidden: set[Pattern], sight: EntrySight) -> bool:
    if sight.names_hidden(f"{change.match} {change.changes}"):
        return False
    texts = {change.match, *(str(text or "") for text in change.changes.get("match") or ())} - {""}
    rules = [Override(match=text) for text in texts]
    return not any(covers(rule, *row) for rule in rules for row in hidden) or any(
        covers(rule, *row) for rule in rules for row in seen
    )


def _is_seen(line: RuleLine, seen: set[int], sight: EntrySight) -> bool:
    if line.matched:
        return any(model.pk in seen for model in line.matched)
    return not sight.names_hidden(line.rule.match)


def _seen_line(line: RuleLine, seen: set[int], numbers: dict[int, int]) -> RuleLine:
    matched = tuple(
        replace(model, winner=numbers[model.winner])
        for model in line.matched
        if model.pk in seen and model.winner in numbers
    )
    return replace(line, matched=matched, number=numbers[line.number], covered_by=numbers.get(line.covered_by, 0))


def _is_own_seen(line: OwnLine, seen: set[int], sight: EntrySight) -> bool:
    model: Matched | None = line.model
    return model.pk in seen if model else sight.path_level(line.override.match) >= Level.VIEW
