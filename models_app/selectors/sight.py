"""What a person sees of hosts, models, files and findings, and whether they see the whole of a host (web.md 7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import Case, F, Q, QuerySet, Value, When

from gpus_app.models import Host
from models_app.core.catalog import Plan
from models_app.models import Component, Finding, Row
from quartermaster_site.access.grants import FILES, ROWS, Fields, grants_of
from quartermaster_site.access.permissions import Level, may, require
from quartermaster_site.access.rules import Rule, Scope
from quartermaster_site.errors import NotAllowed

H = TypeVar("H", bound=Host)

IN_PARTS = "This names models that you may not see, so it is not shown."
"""What stands in place of a text about a whole host."""
ABOUT_OTHERS = ("duplicate-id", "component-ambiguous")
"""Kinds of findings whose text names other files."""
PROFILES = Fields(host="row__host", names=("profile_id",), path="row__path")
"""Of stored plans: what policies say about an entry by its own id. What they say about its model comes beside it."""
UNNAMED = "This names something that you may not see."
HIDDEN = "(hidden)"
"""In place of an argument of a command."""
_SHORTEST = 2
"""Names of fewer characters are too common to be looked for in a text."""


def sees_all(user: Any, host: Host) -> bool:
    """Whether nothing of a host can be hidden from a person, whatever lies on it or once lay on it.

    It asks the policies and no rows: texts may name models that are gone, and the answer must not tell which exist.
    """
    grants = grants_of(user)
    if not grants.hide_something:
        return True
    about = [rule for rule in grants.rules if rule.host in (None, host.pk)]
    return may(user, Level.VIEW, host) and not any(_hides(rule, about[:index]) for index, rule in enumerate(about))


def _hides(rule: Rule, before: Sequence[Rule]) -> bool:
    """Whether it hides models of a host that is visible itself; `before` are those that are asked earlier."""
    if rule.level >= Level.VIEW or rule.is_host_wide:
        return False
    pattern = rule.model.casefold()
    return not any(other.level >= Level.VIEW and other.model.casefold() == pattern for other in before)


def require_whole(user: Any, host: Host) -> None:
    """Raise NotAllowed for those from whom something on a host may be hidden; NotFound where all of it is."""
    require(user, Level.VIEW, host)
    if not sees_all(user, host):
        raise NotAllowed(
            "This names models that you may not see. Ask somebody who sees all of this host, or an administrator."
        )


def visible(user: Any, hosts: Iterable[H]) -> list[H]:
    """The hosts that a person may see."""
    return [host for host in hosts if may(user, Level.VIEW, host)]


def seen_rows(user: Any, level: Level = Level.VIEW) -> QuerySet[Row]:
    """The models on which a person has at least `level`."""
    return grants_of(user).seen(Row.objects.all(), ROWS, level)


def seen_findings(user: Any) -> QuerySet[Finding]:
    """Findings about models that a person may see, and about files and folders that no policy hides by their path."""
    grants = grants_of(user)
    of_rows, of_files = grants.condition(ROWS.behind("row")), grants.condition(FILES)
    if of_rows is None:
        return Finding.objects.all()
    return Finding.objects.filter(Q(of_rows, row__isnull=False) | Q(of_files, row__isnull=True))


@dataclass(frozen=True, slots=True)
class Profile:
    """One entry of a model. It goes with its model, unless a policy names it by its id."""

    row: Row
    profile_id: str

    def policy_scope(self) -> Scope:
        return replace(self.row.policy_scope(), variant=self.profile_id)


def sees_profile(user: Any, row: Row, profile_id: str) -> bool:
    """Whether a person may see one entry of a model that they may see."""
    return not grants_of(user).hide_something or may(user, Level.VIEW, Profile(row, profile_id))


def shown_findings(user: Any, found: Iterable[Finding]) -> Iterator[Finding]:
    """The same for findings of several hosts."""
    sights: dict[int, HostSight] = {}
    for finding in found:
        sight = sights.setdefault(finding.host_id, HostSight(user, finding.host_id))
        yield from sight.findings([finding])


class HostSight:
    """What is hidden from a person on one host, for texts and paths that name it: one query, none for most people."""

    def __init__(self, user: Any, host: int) -> None:
        self._grants = grants_of(user)
        self._host = host

    @property
    def is_whole(self) -> bool:
        """Whether nothing can be hidden, here or elsewhere."""
        return not self._grants.hide_something

    @property
    def host(self) -> bool:
        """Whether the host itself may be seen."""
        return self._grants.on(Scope(self._host)) >= Level.VIEW

    def sees(self, path: str) -> bool:
        """Whether a model or component file may be shown; one that nobody knows is judged by its name and place."""
        if self.is_whole or any(path == known for known, *_ in self._models):
            return path not in self.paths
        name = path.replace("\\", "/").rpartition("/")[2]
        scope = Scope(self._host, (name, name.rpartition(".")[0]), path)
        return path not in self.paths and self._grants.on(scope) >= Level.VIEW

    def says(self, name: str) -> bool:
        """Whether a name, that of a family for instance, may be said: judged by the policies alone, without a query."""
        return self.is_whole or self._grants.on(Scope(self._host, (name,))) >= Level.VIEW

    def served(self, served_id: str) -> bool:
        """Whether the model with an id may be shown; an id that nobody has is judged by itself."""
        known = [bool(seen) for _, seen, own, _ in self._models if own == served_id]
        return any(known) if known else self._grants.on(Scope(self._host, (served_id,))) >= Level.VIEW

    def names(self, text: str) -> bool:
        """Whether a text names something that is hidden: by its path, its file or its id."""
        return any(name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) for name in self._names)

    def text(self, text: str) -> str:
        """A text, or a sentence in the place of one that names something hidden."""
        return UNNAMED if self.names(text) else text

    def plan(self, plan: Plan, typed: str = "") -> Plan:
        """A plan as it may be read: in its command and its words nothing is named that is hidden. What the person has
        typed themselves stays: it must not tell whether there is such a thing.
        """
        if self.is_whole:
            return plan
        return replace(
            plan,
            lines=tuple(self._argument(line, typed) for line in plan.lines),
            tokens=tuple(replace(token, text=self._argument(token.text, typed)) for token in plan.tokens),
            reasons=tuple(replace(reason, text=self.text(reason.text)) for reason in plan.reasons),
            warnings=tuple(map(self.text, plan.warnings)),
            notes=tuple(map(self.text, plan.notes)),
            suggestions=tuple(map(self.text, plan.suggestions)),
            skip_reason=self.text(plan.skip_reason),
            terms=tuple(replace(term, how=self.text(term.how)) for term in plan.terms),
        )

    def _argument(self, text: str, typed: str) -> str:
        """A flag keeps its name; what it is given does not."""
        flag = re.match(r"-[\w-]+[ =]", text)
        given = text[flag.end() :] if flag else text
        if given in typed or not self.names(given):
            return text
        return f"{flag[0] if flag else ''}{HIDDEN}"

    def findings(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """Findings for reading alone: what names other files that are hidden says so instead."""
        for finding in found:
            if self.names(finding.text):
                seen = finding.seen_text == finding.text
                finding.text = UNNAMED
                finding.seen_text = finding.text if seen else ""
            yield finding

    @cached_property
    def paths(self) -> frozenset[str]:
        """Of the models and component files that are hidden. A component that is a model is judged as one; one that
        lies with hidden models and no others goes with them, for its folder mostly has their name.
        """
        models = {path: bool(seen) for path, seen, *_ in self._models}
        hidden = {path for path, seen in models.items() if not seen}
        alone = {folder_of(path) for path in hidden} - {folder_of(path) for path, seen in models.items() if seen}
        files = {path for path, seen, *_ in self._known[Component] if not seen or folder_of(path) in alone}
        return frozenset(hidden | files.difference(models))

    @property
    def _models(self) -> Sequence[tuple[str, int, str, str]]:
        return self._known[Row]

    @cached_property
    def _known(self) -> Mapping[type, Sequence[tuple[str, int, str, str]]]:
        """(path, whether it is seen, two ids) of all models and component files of a host, in one query; nothing where
        nothing can be hidden.
        """
        known: dict[type, list[tuple[str, int, str, str]]] = {Row: [], Component: []}
        if self.is_whole:
            return known
        models = self._marked(Row, ROWS, F("served_id"), F("base_id"), Value(1))
        files = self._marked(Component, FILES, Value(""), Value(""), Value(0))
        for *found, is_model in models.union(files, all=True).order_by():  # else Django 6.1 sorts by Row.Meta
            known[Row if is_model else Component].append(tuple(found))
        return known

    def _marked(self, table: Any, fields: Fields, *columns: Any) -> Any:
        condition = self._grants.condition(fields)
        mark = Case(When(condition, then=Value(1)), default=Value(0)) if condition is not None else Value(1)
        named = dict(zip(("own", "base", "is_model"), columns, strict=True))
        rows = table.objects.filter(host=self._host).order_by()
        return rows.annotate(is_seen=mark, **named).values_list("path", "is_seen", *named)

    @cached_property
    def _names(self) -> frozenset[str]:
        files = {path.replace("\\", "/").rpartition("/")[2] for path in self.paths}
        stems = {name.rpartition(".")[0] for name in files}
        ids = {name for _, seen, *names in self._models if not seen for name in names}
        return frozenset(name for name in files | stems | ids if len(name) > _SHORTEST)


def folder_of(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[0]
