"""What policies give one person, read once per request, and as a condition for queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When
from django.db.models.lookups import GreaterThanOrEqual

from quartermaster_site.access.models import Account, Policy, Role
from quartermaster_site.access.rules import Level, Rule, Scope, Verdict, decide, expression, ordered

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a table holds what policies ask about. Several columns with ids: one that matches is enough."""

    host: str = "host"
    names: tuple[str, ...] = ("served_id", "base_id")
    path: str = "path"
    files: str = ""
    """A column with paths of files whose names stand in for ids: components, findings without a model."""

    def behind(self, relation: str) -> Fields:
        """The same columns of the table to which a foreign key leads."""

        def there(name: str) -> str:
            return f"{relation}__{name}" if name else ""

        return Fields(there(self.host), tuple(map(there, self.names)), there(self.path), there(self.files))


ROWS = Fields()
FILES = Fields(names=(), files="path")
"""Of tables that hold files and no ids."""


@dataclass(frozen=True, slots=True)
class Grants:
    """The policies about one person in the order of their evaluation, over the level that the role gives."""

    default: Level
    rules: tuple[Rule, ...] = ()

    def verdict(self, scope: Scope) -> Verdict:
        return decide(self.rules, self.default, scope)

    def on(self, scope: Scope) -> Level:
        return self.verdict(scope).level

    @property
    def hide_something(self) -> bool:
        """Whether anything may be hidden from this person; most never see a condition."""
        return self.default < Level.VIEW or any(rule.level < Level.VIEW for rule in self.rules)

    def hosts(self, field: str = "host") -> Q:
        """The rows of a table whose host this person may see. Policies about whole hosts tell without a query."""
        named = {rule.host for rule in self.rules if rule.is_host_wide and rule.host is not None}
        hidden = {host for host in named if self.on(Scope(host)) < Level.VIEW}
        if self.on(Scope(0)) < Level.VIEW:  # what holds on a host of which no policy speaks
            return Q(**{f"{field}__in": named - hidden})
        return Q(**{f"{field}__isnull": False}) & ~Q(**{f"{field}__in": hidden})

    def reaches(self, level: Level) -> bool:
        """Whether there may be an object on which this person has `level`."""
        return self.default >= level or any(rule.level >= level for rule in self.rules)

    def may_see_models_on(self, host: int) -> bool:
        """Whether some model of a host may be visible, though the host itself be hidden."""
        open_rules = (rule for rule in self.rules if rule.level >= Level.VIEW and rule.host in (None, host))
        return self.on(Scope(host)) >= Level.VIEW or any(open_rules)

    def seen(self, rows: QuerySet[M], fields: Fields = ROWS, level: Level = Level.VIEW) -> QuerySet[M]:
        """The rows of a query on which this person has at least `level`."""
        condition = self.condition(fields, level)
        return rows if condition is None else rows.filter(condition)

    def condition(self, fields: Fields = ROWS, level: Level = Level.VIEW) -> Any:
        """The same for a filter; None where everything passes. It is true or false, never unknown."""
        rules = list(self.rules)
        while rules and (rules[-1].level >= level) == (self.default >= level):
            rules.pop()  # what the last ones say, the default says too
        if not rules and self.default >= level:
            return None
        cases = [When(matching(rule, fields), then=Value(int(rule.level))) for rule in rules]
        found = Case(*cases, default=Value(int(self.default)), output_field=IntegerField())
        return GreaterThanOrEqual(found, int(level))


def matching(rule: Rule, fields: Fields) -> Q:
    """Which rows of a table a policy covers."""
    where = Q() if rule.host is None else Q(**{fields.host: rule.host})
    if rule.is_host_wide:
        return where if where else Q(pk__isnull=False)
    pattern = expression(rule.model)
    if rule.is_path:
        return where & Q(**{f"{fields.path}__iregex": _either_slash(pattern)})
    lookup, wanted = _lookup(rule.model, pattern)
    named = Q()
    for name in fields.names:
        named |= Q(**{f"{name}__{lookup}": wanted})
    if fields.files:
        named |= Q(**{f"{fields.files}__iregex": _of_a_file(pattern)})
    return where & named


def _lookup(text: str, pattern: str) -> tuple[str, str]:
    """The quickest lookup of a pattern of ids: databases compare texts much faster than they match expressions."""
    inner = text.strip("*")
    if not inner.isascii() or "*" in inner or "?" in inner:  # case is folded by ASCII alone in comparisons of SQLite
        return "iregex", pattern
    return _ENDS[text.startswith("*"), text.endswith("*")], inner


_ENDS = {
    (True, True): "icontains",
    (True, False): "iendswith",
    (False, True): "istartswith",
    (False, False): "iexact",
}


def _either_slash(pattern: str) -> str:
    """Paths are stored as the host writes them."""
    return pattern.replace("/", r"[/\\]")


def _of_a_file(pattern: str) -> str:
    """A pattern of ids for a path: the name of the file, its ending aside, or of a folder above it."""
    within = pattern.removeprefix("^").removesuffix("$").replace(r"(.|\n)", r"[^/\\]")
    return rf"(^|[/\\]){within}(\.[a-z0-9]+)?([/\\]|$)"


def rule_of(policy: Policy) -> Rule:
    """A stored policy as the evaluation takes it."""
    return Rule(
        number=policy.pk,
        subject=policy.kind,
        who=policy.who,
        host=policy.host_id,
        model=policy.model,
        level=Level(policy.level),
    )


def role_level(user: Any) -> Level:
    """The level that a person's role gives. The account is read once per request."""
    if not user.is_authenticated or not user.is_active:
        return Level.NONE
    account: Account | None = getattr(user, "account", None)
    level = ROLE_LEVELS[Role(account.role)] if account else Level.VIEW
    # Set by the middleware of the network rules: an administrator from elsewhere is a viewer for that session.
    return min(level, Level.VIEW) if getattr(user, "restricted_to_viewer", False) else level


def grants_of(user: Any) -> Grants:
    """Read once per person object, which lives as long as a request: a changed policy holds with the next one."""
    default = role_level(user)
    if default in (Level.NONE, Level.MANAGE):
        return Grants(default)
    known: Grants | None = getattr(user, "_grants", None)
    if known is None or known.default is not default:
        known = Grants(default, ordered(map(rule_of, policies_about(user, default))))
        user._grants = known
    return known


ROLE_LEVELS = {
    Role.VIEWER: Level.VIEW,
    Role.OPERATOR: Level.OPERATE,
    Role.EDITOR: Level.EDIT,
    Role.ADMIN: Level.MANAGE,
}
_ROLES = {level: role for role, level in ROLE_LEVELS.items()}


def policies_about(user: Any, default: Level) -> Sequence[Policy]:
    """Those whose subject a person is, by name, group, role, or because it is everyone."""
    everyone = Q(user=None, group=None, role="")
    groups = user.groups.order_by().values("pk")
    about = Q(user=user) | Q(group__in=groups) | Q(role=_ROLES[default]) | everyone
    return list(Policy.objects.filter(about).select_related("group", "user"))
