"""What people declare by hand for a host, row by row: prompt enhancers, image models, whole entries, LoRA folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpus_app.models import Host, HostSetting
from gpus_app.selectors import section
from gpus_app.services import is_absolute
from models_app.core.errors import ExportError
from models_app.core.export import load
from models_app.core.export.document import Skipped
from models_app.core.export.extra_models import extra_model
from models_app.core.export.fragments import YAML
from models_app.core.export.macros import ENVIRONMENT
from models_app.core.fields.by_hand import DECLARED_FIELDS, ENHANCER_FIELDS, LORA_KEY
from models_app.core.fields.field import PATH, Field
from models_app.core.launch.findings import text_problem
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import rules_for
from models_app.fleet_sections import FLEET_SECTIONS
from models_app.models import Fragment, Row
from models_app.services.fragments import save_fragment
from models_app.services.sections import save_fleet_section
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require_arguments
from quartermaster_site.errors import NotFound, Refused

LORA_SECTION = "advanced"
_ARGUMENTS = ("customArgs", "customArgsOff", "extraArgs")
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HandList:
    """One list of records in the settings of a host. `identity` is the key that tells its rows apart."""

    section: str
    key: str
    identity: str
    fields: tuple[Field, ...]

    @property
    def level(self) -> Level:
        return FLEET_SECTIONS[self.section].level


ENHANCERS = HandList("enhancers", "promptEnhancers", "model", ENHANCER_FIELDS)
DECLARED = HandList("declared", "extraImageModels", "name", DECLARED_FIELDS)


def items_of(held: HostSetting, which: HandList) -> list[Item]:
    return [dict(item) for item in held.values.get(which.key, ())]


def item_of(held: HostSetting, which: HandList, name: str) -> Item:
    """One row; NotFound."""
    found = next((item for item in items_of(held, which) if _is(item, which, name)), None)
    if found is None:
        raise NotFound("It is not there any more.")
    return found


def save_item(
    *, host: Host, which: HandList, old: str, values: Mapping[str, Any], version: int, actor: Actor
) -> HostSetting:
    """Store the values of one row, a new one where `old` is "". Raises Refused, with a message per field, and
    EditConflict.
    """
    held = section(host, which.section)
    items = items_of(held, which)
    before = item_of(held, which, old) if old else {}
    wanted = {key: value for key, value in {**before, **values}.items() if value not in (None, "", False, 0)}
    if any(wanted.get(key) != before.get(key) for key in _ARGUMENTS):
        require_arguments(actor.user, host)
    others = [item for item in items if not old or not _is(item, which, old)]
    if problems := _problems(host, which, wanted, others):
        raise Refused("It cannot be used so.", fields=problems)
    kept = [wanted if old and _is(item, which, old) else item for item in items]
    return _save(host, which, kept if old else [*kept, wanted], version, actor)


def remove_item(*, host: Host, which: HandList, name: str, version: int, actor: Actor) -> HostSetting:
    items = items_of(section(host, which.section), which)
    return _save(host, which, [item for item in items if not _is(item, which, name)], version, actor)


def _save(host: Host, which: HandList, items: Sequence[Item], version: int, actor: Actor) -> HostSetting:
    return save_fleet_section(
        host=host, section=which.section, values={which.key: list(items)} if items else {}, version=version, actor=actor
    )


def _is(item: Mapping[str, Any], which: HandList, name: str) -> bool:
    return str(item.get(which.identity, "")).strip().lower() == name.strip().lower()


def _problems(host: Host, which: HandList, wanted: Item, others: Sequence[Item]) -> dict[str, str]:
    name, problems = str(wanted.get(which.identity, "")).strip(), {}
    if not name:
        problems[which.identity] = "It needs one."
    elif any(_is(item, which, name) for item in others):
        problems[which.identity] = "There is one for this already."
    if which is DECLARED:
        problems |= _declared_problems(host, wanted, name)
    elif ENVIRONMENT in str(wanted.get("systemPrompt", "")):
        problems["systemPrompt"] = f"{ENVIRONMENT}…}} would be replaced by the router, so it may not stand in it."
    return problems


def _declared_problems(host: Host, wanted: Item, name: str) -> dict[str, str]:
    problems = {
        field.key: "Write the whole path, from the root on."
        for field in DECLARED_FIELDS
        if field.kind == PATH and (path := wanted.get(field.key)) and not is_absolute(str(path), host.os_family)
    }
    if not wanted.get("modelPath"):
        problems["modelPath"] = "Write the whole path of the model's file."
    if Row.objects.filter(host=host, served_id__iexact=name).exists():
        problems["name"] = "A model that was found on disk has this id."
    if problem := text_problem(SD, str(wanted.get("customArgs", "")), rules_for(host.os_family)):
        problems["customArgs"] = problem
    return problems


def own_entries(host: Host) -> list[Fragment]:
    """Entries that nothing but a person describes: they bring a command of their own."""
    rows = Fragment.objects.filter(host=host, form=YAML).exclude(served_id="").select_related("changed_by")
    return [row for row in rows if row.fields.get("cmd")]


def own_entry(host: Host, served_id: str) -> Fragment:
    found = next((row for row in own_entries(host) if row.served_id == served_id), None)
    if found is None:
        raise NotFound("It is not there any more.")
    return found


def save_own_entry(*, host: Host, old: str, served_id: str, block: str, version: int, actor: Actor) -> None:
    """Store an entry from its YAML. It is checked as strictly as the router would. Administrators only."""
    served_id = served_id.strip()
    keys = _block(block)
    taken = set(Row.objects.filter(host=host).values_list("served_id", flat=True))
    found = extra_model(served_id, keys, taken)
    if isinstance(found, Skipped):
        field = "servedId" if "name" in found.reason else "block"
        raise Refused("It cannot be used so.", fields={field: f"{found.reason[:1].upper()}{found.reason[1:]}."})
    if old and old != served_id:
        raise Refused("It cannot be used so.", fields={"servedId": "Its id stays: add another one instead."})
    save_fragment(host=host, form=YAML, served_id=served_id, fields=keys, version=version, actor=actor)


def remove_own_entry(*, host: Host, served_id: str, version: int, actor: Actor) -> None:
    save_fragment(host=host, form=YAML, served_id=served_id, fields={}, version=version, actor=actor, action="remove")


def _block(text: str) -> dict[str, Any]:
    try:
        tree = load.load(text)
        load.require_finite(tree)
    except ExportError as error:
        raise Refused("It cannot be used so.", fields={"block": f"This is no YAML: {error}"}) from error
    value = tree.value
    if not isinstance(value, dict):
        raise Refused("It cannot be used so.", fields={"block": "Write keys and values, such as cmd: server."})
    return value


def lora_values(host: Host) -> Item:
    """What the form of LoRA folders holds."""
    values = section(host, LORA_SECTION).values
    dirs = values.get("loraDirs") or {}
    return {"loraDir": values.get("loraDir", ""), **{f"{LORA_KEY}{name}": path for name, path in dirs.items()}}


def save_loras(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    """Store the folders; the other settings of their section stay. Raises Refused and EditConflict."""
    problems = {
        key: "Write the whole path of a folder, from the root on."
        for key, path in values.items()
        if path and not is_absolute(str(path), host.os_family)
    }
    if problems:
        raise Refused("Some folders cannot be used.", fields=problems)
    stored = dict(section(host, LORA_SECTION).values)
    dirs = dict(stored.get("loraDirs") or {})
    for key, path in values.items():
        if key.startswith(LORA_KEY):
            dirs[key.removeprefix(LORA_KEY)] = path
    stored["loraDirs"] = {name: path for name, path in dirs.items() if path}
    stored["loraDir"] = values.get("loraDir", "")
    kept = {key: value for key, value in stored.items() if value}
    return save_fleet_section(host=host, section=LORA_SECTION, values=kept, version=version, actor=actor)
