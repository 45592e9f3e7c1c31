"""Rules of a host: override rows with a pattern. The first that matches a model without settings of its own counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app import convert
from models_app.core.fields.groups import ARGUMENT_KEYS
from models_app.core.launch.ownership import text_of
from models_app.core.settings import Override
from models_app.core.state.editor import editor_save
from models_app.core.state.globs import is_glob
from models_app.core.state.overrides import merge_overrides
from models_app.models import Change
from models_app.models import Override as StoredOverride
from models_app.pins import PATTERN
from models_app.selectors.rule_sight import held_text, seen_rules
from models_app.services.arguments import check_arguments, rules_of
from models_app.services.changes import add_change, changes_of, undone
from models_app.services.editing import EDITABLE, TAKEN, check_values, check_version, conflicts
from models_app.services.named_files import check_files
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, may, require, require_arguments
from quartermaster_site.errors import EditConflict, NotAllowed, NotFound, Refused, Withheld

IDENTITY = ("match", "quant")
"""What says which models a rule is for; the other values are what it sets."""
VARIANTS = "variants"
MOST_RULES = 200
MOST_MATCH, MOST_QUANT = 1024, 40
Values = dict[str, Any]


def stored_rules(host: Host) -> QuerySet[StoredOverride]:
    """The rules of a host in their order."""
    return StoredOverride.objects.filter(PATTERN, host=host)


def get_rule(host: Host, pk: int) -> StoredOverride:
    """One rule with its host; NotFound."""
    found = stored_rules(host).filter(pk=pk).select_related("changed_by").first()
    if found is None:
        raise NotFound("There is no such rule.")
    found.host = host
    return found


def rule_values(rule: StoredOverride | Override) -> Values:
    """What a rule says: its pattern, its quantisation where it has one, and the fields that it sets."""
    fields = dict(rule.fields) if isinstance(rule, StoredOverride) else convert.override_fields(rule)
    return {"match": rule.match, **({"quant": rule.quant} if rule.quant else {}), **fields}


def edited_rule(rule: StoredOverride, values: Mapping[str, Any]) -> Override:
    """The rule after a form with these values: what an impact plans with, and a save stores."""
    fields = {key: value for key, value in values.items() if key not in IDENTITY}
    match, quant = (str(values.get(key, getattr(rule, key))).strip() for key in IDENTITY)
    after = editor_save(
        convert.core_override(rule if rule.pk else None),
        match,
        fields,
        form_keys=fields.keys(),
        rules=rules_of(rule.host),
    )
    return replace(after, quant=quant)


def overrides_with(host: Host, changed: Mapping[int, Override | None]) -> tuple[Override, ...]:
    """All overrides in the order of resolution, some of them as they would be, or (None) left out."""
    rows = StoredOverride.objects.filter(host=host).prefetch_related("variants")
    found = (changed[row.pk] if row.pk in changed else convert.core_override(row) for row in rows)
    return merge_overrides((override for override in found if override is not None), ())


def add_rule(
    *, host: Host, match: str, quant: str = "", values: Mapping[str, Any] | None = None, actor: Actor
) -> StoredOverride:
    """A new rule, the last of all: it takes no model from another."""
    return _add(host, {**(values or {}), "match": match, "quant": quant}, actor, "add")


def save_rule(
    *, rule: StoredOverride, values: Mapping[str, Any], version: int, actor: Actor, action: str = "save"
) -> StoredOverride:
    """Store the values of a form by key, pattern and quantisation among them; what it does not have stays.

    Raises Refused with a message per field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.EDIT, rule.host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=rule.host_id)
        held = get_rule(host, rule.pk)
        _require_editable(held, actor)
        _check(host, {**dict(zip(IDENTITY, (held.match, held.quant), strict=True)), **values}, actor, held.pk)
        override = edited_rule(held, values)
        before, after = rule_values(held), rule_values(override)
        if after == before:
            return held
        if version < 0 or (version != held.version and conflicts(before, rule_at(held, version), values.keys())):
            check_version(held, version, before)
        _check_arguments(host, before, override, actor)
        _store(held, override, actor)
        _note(held, action, before, actor)
    return held


def move_rule(*, rule: StoredOverride, up: bool, beside: int, actor: Actor) -> None:
    """Change places with the rule above or below, which `beside` names as the page showed it.

    Raises EditConflict where another one is there now.
    """
    require(actor.user, Level.EDIT, rule.host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=rule.host_id)
        held = get_rule(host, rule.pk)
        rules = list(stored_rules(host).select_related("changed_by"))
        seen = [line.rule.pk for line in seen_rules(actor.user, host).rules]
        if (held.pk, beside) not in (zip(seen[1:], seen, strict=False) if up else pairwise(seen)):
            raise EditConflict(
                "Somebody changed the order of the rules meanwhile. This is how it is now.", saved={}, version=0
            )
        place, other = (next(n for n, row in enumerate(rules) if row.pk == pk) for pk in (held.pk, beside))
        _require_editable(held, actor)
        _require_editable(rules[other], actor)
        rules[place], rules[other] = rules[other], rules[place]
        _number(rules)
        changes = add_change(
            host=host,
            actor=actor,
            action="move",
            before={"position": place + 1},
            after={"position": other + 1},
            version=held.version,
            match=held.match,
            quant=held.quant,
            rule=held.pk,
        )
        record(actor, "rule.move", subject=held, label=held.match, host_slug=host.slug, changes=changes)
        request_plan(host=host, actor=actor)


def delete_rule(*, rule: StoredOverride, version: int, actor: Actor) -> None:
    """Its models follow the next rule that matches, or the planner; its history stays and can bring it back."""
    require(actor.user, Level.EDIT, rule.host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=rule.host_id)
        held = get_rule(host, rule.pk)
        _require_editable(held, actor)
        before = rule_values(held)
        check_version(held, version, before)
        held.version += 1
        variants = [{"name": variant.name, **variant.fields} for variant in held.variants.all()]
        _note(held, "delete", {**before, **({VARIANTS: variants} if variants else {})}, actor, after={})
        held.delete()
        _number(list(stored_rules(host)))


def restore_rule(*, host: Host, change: Change, version: int, actor: Actor) -> StoredOverride:
    """Bring back the state after an earlier change. A deleted rule comes back as the last of all, with its history and
    the variants that it had.
    """
    values = {**{key: field.absent for key, field in EDITABLE.items()}, "quant": "", **change.after}
    if change.action == "move" or not change.after:
        raise Refused("This change has no state to bring back.")
    held = stored_rules(host).filter(pk=change.rule).first()
    if held is not None:
        return save_rule(rule=held, values=values, version=version, actor=actor, action="restore")
    with transaction.atomic():
        rule = _add(host, values, actor, "restore", pk=change.rule)
        deleted = Change.objects.filter(host=host, rule=change.rule, action="delete").order_by("-id").first()
        for variant in (deleted.changes.get(VARIANTS, [()])[0] or ()) if deleted else ():
            fields = {key: value for key, value in variant.items() if key != "name"}
            rule.variants.create(name=variant["name"], fields=fields, version=1)
    return rule


def rule_at(rule: StoredOverride, version: int) -> Values:
    """What a rule said at a version: what it says now, with every later change taken back."""
    later = Change.objects.filter(host=rule.host, rule=rule.pk, variant="", version__gt=max(0, version))
    return undone(rule_values(rule), later.order_by("-id"))


def _add(host: Host, values: Mapping[str, Any], actor: Actor, action: str, pk: int | None = None) -> StoredOverride:
    require(actor.user, Level.EDIT, host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        _check(host, values, actor)
        rules = list(stored_rules(host))
        if len(rules) >= MOST_RULES:
            problem = f"A host may have {MOST_RULES} rules."
            raise Refused(problem, fields={"match": problem})
        rule = StoredOverride(pk=pk, host=host, position=len(rules) + 1)
        override = edited_rule(rule, values)
        _check_arguments(host, {}, override, actor)
        if pk is not None:  # a number is never given twice, so the history under it is this rule's
            rule.version = Change.objects.filter(host=host, rule=pk).aggregate(last=Max("version"))["last"] or 0
        _number(rules)
        _store(rule, override, actor)
        _note(rule, action, {}, actor)
    return rule


def _store(rule: StoredOverride, override: Override, actor: Actor) -> None:
    rule.match, rule.quant = override.match, override.quant
    rule.fields, rule.version = convert.override_fields(override), rule.version + 1
    rule.changed_by, rule.changed_at = actor.user, timezone.now()
    rule.save()


def _note(
    rule: StoredOverride, action: str, before: Mapping[str, Any], actor: Actor, *, after: Values | None = None
) -> None:
    changes = add_change(
        host=rule.host,
        actor=actor,
        action=action,
        before=before,
        after=rule_values(rule) if after is None else after,
        version=rule.version,
        match=rule.match,
        quant=rule.quant,
        rule=rule.pk,
    )
    record(actor, f"rule.{action}", subject=rule, label=rule.match, host_slug=rule.host.slug, changes=changes)
    request_plan(host=rule.host, actor=actor)


def _number(rules: list[StoredOverride]) -> None:
    for place, rule in enumerate(rules, 1):
        if rule.position != place:
            StoredOverride.objects.filter(pk=rule.pk).update(position=place)


def _require_editable(rule: StoredOverride, actor: Actor) -> None:
    """Raises NotAllowed where the rule matches a model that the person may not edit."""
    held = held_text(actor.user, rule.host, [(rule.match, rule.quant)])
    if held:
        raise NotAllowed(held)


def _check(host: Host, values: Mapping[str, Any], actor: Actor, own: int = 0) -> None:
    """Raises Refused where a pattern cannot be used, another rule has it, or it matches a model that the person may not
    edit, or where a value is not acceptable.
    """
    match, quant = (str(values.get(key, "")).strip() for key in IDENTITY)
    problems = {"match": match_problem(match)}
    if len(quant) > MOST_QUANT or not quant.isprintable():
        problems["quant"] = f"Quantisation: at most {MOST_QUANT} characters, such as Q4_K_M."
    if not problems["match"] and any(_same(rule, match, quant) for rule in stored_rules(host).exclude(pk=own)):
        problems["match"] = "There is a rule of this pattern and quantisation already. Change that one."
    if not problems["match"] and (held := held_text(actor.user, host, [(match, quant)])):
        raise Withheld(held, fields={"match": held})
    if values.get("servedId") and not may(actor.user, Level.MANAGE):  # no form has it, but an import may
        raise Withheld("One id cannot be given by a rule.", fields={"servedId": TAKEN})
    if problems := {key: text for key, text in problems.items() if text}:
        raise Refused(next(iter(problems.values())), fields=problems)
    check_values({key: value for key, value in values.items() if key not in IDENTITY})


def match_problem(match: str) -> str:
    """Why a text is no pattern of a rule, "" when it is."""
    if not is_glob(match):
        return "Pattern: give one with * or ?, such as *qwen3*. Settings of one model are on its own page."
    if len(match) > MOST_MATCH or not match.isprintable():
        return f"Pattern: one line of at most {MOST_MATCH:,} characters."
    return ""


def _same(rule: StoredOverride, match: str, quant: str) -> bool:
    return _folded(rule.match) == _folded(match) and rule.quant.lower() == quant.lower()


def _folded(match: str) -> str:
    return match.replace("\\", "/").lower()


def _check_arguments(host: Host, before: Mapping[str, Any], override: Override, actor: Actor) -> None:
    check_files(actor.user, host, before, rule_values(override))
    if changes_of(before, rule_values(override)).keys() & set(ARGUMENT_KEYS):
        require_arguments(actor.user, host)
        for engine in ("llama", "sd"):
            check_arguments(host, text_of(override), engine)
