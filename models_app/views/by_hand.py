"""What people declare by hand for a host: texts of prompt enhancers, image models, whole entries, LoRA folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import yaml
from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.models import Host
from gpus_app.selectors import host_for, section
from models_app import convert
from models_app.core.fields.by_hand import ENTRY_FIELDS, LORA_FIELDS, RAW_FIELDS
from models_app.core.fields.field import Field
from models_app.core.launch.backends import kind_of
from models_app.core.settings import Settings
from models_app.core.state.checks import Limits
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.pages.by_hand_page import (
    TOP,
    HandPart,
    declared_lines,
    enhancer_lines,
    entry_lines,
    hand_controls,
    raw_lines,
)
from models_app.pages.editor_page import Facts, control_groups
from models_app.selectors.sight import IN_PARTS, require_whole, sees_all
from models_app.services import by_hand
from models_app.services.fragments import raw_keys, save_raw_keys
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import Actor, actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, NotFound, Refused
from quartermaster_site.http import Request, go_to, page

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of declaration. `load` gives stored values and their version, `save` and `remove` write."""

    title: str
    level: Level
    fields: tuple[Field, ...]
    identity: str
    load: Callable[[Host, str], tuple[dict[str, Any], int]]
    save: Callable[[Host, str, Values, int, Actor], object]
    remove: Callable[[Host, str, int, Actor], object]


def _of_list(title: str, which: by_hand.HandList) -> Kind:
    def load(host: Host, name: str) -> tuple[dict[str, Any], int]:
        held = section(host, which.section)
        return (by_hand.item_of(held, which, name) if name else {}), held.version

    def save(host: Host, old: str, values: Values, version: int, actor: Actor) -> object:
        return by_hand.save_item(host=host, which=which, old=old, values=values, version=version, actor=actor)

    def remove(host: Host, name: str, version: int, actor: Actor) -> object:
        return by_hand.remove_item(host=host, which=which, name=name, version=version, actor=actor)

    return Kind(title, which.level, which.fields, which.identity, load, save, remove)


def _load_entry(host: Host, name: str) -> tuple[dict[str, Any], int]:
    if not name:
        return {}, 0
    entry = by_hand.own_entry(host, name)
    return {"servedId": entry.served_id, "block": _yaml(entry.fields)}, entry.version


def _yaml(fields: Values) -> str:
    """Keys as a person writes them; a long text stays on one line."""
    return yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True, width=10_000)


def _save_entry(host: Host, old: str, values: Values, version: int, actor: Actor) -> None:
    served_id, block = str(values.get("servedId") or ""), str(values.get("block") or "")
    by_hand.save_own_entry(host=host, old=old, served_id=served_id, block=block, version=version, actor=actor)


def _remove_entry(host: Host, name: str, version: int, actor: Actor) -> None:
    by_hand.remove_own_entry(host=host, served_id=name, version=version, actor=actor)


def _load_raw(host: Host, name: str) -> tuple[dict[str, Any], int]:
    if not name:
        return {}, 0
    served_id = "" if name == TOP else name
    found = next((row for row in raw_keys(host) if row.served_id == served_id), None)
    if found is None:
        raise NotFound("It is not there any more.")
    return {"servedId": served_id, "block": _yaml(found.fields)}, found.version


def _save_raw(host: Host, old: str, values: Values, version: int, actor: Actor) -> None:
    served_id, block = str(values.get("servedId") or "").strip(), str(values.get("block") or "")
    if old and served_id != ("" if old == TOP else old):
        raise Refused("It cannot be used so.", fields={"servedId": "Its entry stays: add other keys instead."})
    save_raw_keys(host=host, served_id=served_id, block=block, version=version, actor=actor)


def _remove_raw(host: Host, name: str, version: int, actor: Actor) -> None:
    save_raw_keys(host=host, served_id="" if name == TOP else name, block="", version=version, actor=actor)


KINDS: Mapping[str, Kind] = {
    "enhancer": _of_list("text of a prompt enhancer", by_hand.ENHANCERS),
    "image": _of_list("image model", by_hand.DECLARED),
    "entry": Kind("entry", Level.MANAGE, ENTRY_FIELDS, "servedId", _load_entry, _save_entry, _remove_entry),
    "raw": Kind("raw keys", Level.MANAGE, RAW_FIELDS, "servedId", _load_raw, _save_raw, _remove_raw),
}


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def hand_list(request: Request, slug: str) -> HttpResponse:
    """Everything of a host; a POST stores its LoRA folders."""
    host = host_for(request.user, slug)
    whole = sees_all(request.user, host)
    stored = by_hand.lora_values(host)
    version = section(host, by_hand.LORA_SECTION).version
    form, status = _form(LORA_FIELDS, stored, version, request.POST if request.method == "POST" else None), 200
    if request.method == "POST":
        require(request.user, Level.EDIT, host)
        form, status = _stored(
            form,
            lambda: by_hand.save_loras(host=host, values=form.values, version=form.version, actor=actor_of(request)),
            request,
        )
        if status == 200:
            messages.success(request, "The LoRA folders are saved.")
            return go_to(request, reverse("models:hand-list", args=[slug]))
    context = host_context(request, host) | {
        "parts": _parts(request, host) if whole else [],
        "withheld": "" if whole else IN_PARTS,
        "form": form,
        "controls": hand_controls(form, Facts(settings=Settings(), source="set here", unset=""), LORA_FIELDS),
    }
    return page(request, "hosts/by_hand.html", context, status=status)


_ABOUT: Mapping[str, tuple[str, str, str, str]] = {
    "enhancer": (
        "Prompt enhancers",
        "The text that a chat model is given to rewrite prompts for image and video models with.",
        "Enhancers are paired by their names even without a text here.",
        "editor",
    ),
    "image": (
        "Image models by hand",
        "Files of sd-server that no scan finds. Nothing of them is read: everything is taken as it is written.",
        "Models in the folders of this host need none.",
        "admin",
    ),
    "entry": (
        "Entries by hand",
        "Whole entries for servers that are not known here, written into the file as they are.",
        "An entry is a command with what it takes, in the words of the router.",
        "admin",
    ),
    "raw": (
        "Raw keys",
        "Keys of the router's file that no setting stands for, merged last: macros, hooks, peers, filters.",
        "An import keeps here what has no field.",
        "admin",
    ),
}
"""Kind -> title, what it is, what an empty list says, the role that changes it."""


def _parts(request: Request, host: Host) -> list[HandPart]:
    lines = {
        "enhancer": enhancer_lines(host, section(host, "enhancers")),
        "image": declared_lines(section(host, "declared")),
        "entry": entry_lines(by_hand.own_entries(host)),
        "raw": raw_lines(raw_keys(host)),
    }
    return [
        HandPart(kind, title, about, lines[kind], empty, may(request.user, KINDS[kind].level, host), needed)
        for kind, (title, about, empty, needed) in _ABOUT.items()
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def hand_edit(request: Request, slug: str, kind: str) -> HttpResponse:
    """The form of one declaration, which `of` names; a new one without. POST saves."""
    row, host, name = _kind(kind), host_for(request.user, slug), request.GET.get("of", "")
    require(request.user, row.level, host)
    require_whole(request.user, host)
    stored, version = row.load(host, name)
    form, status = _form(row.fields, stored, version, request.POST if request.method == "POST" else None), 200
    if request.method == "POST" and not (request.POST.get("reset") or request.POST.get("reset-group")):
        form, status = _stored(
            form, lambda: row.save(host, name, form.values, form.version, actor_of(request)), request
        )
        if status == 200:
            messages.success(request, f"{form.values.get(row.identity) or name} is saved.")
            return go_to(request, reverse("models:hand-list", args=[slug]))
    context = host_context(request, host) | {
        "kind": kind,
        "title": row.title,
        "name": name,
        "query": f"?{urlencode({'of': name})}" if name else "",
        "form": form,
        "groups": control_groups(
            form, Facts(settings=convert.core_settings(host), source="set here", unset="", backends=_backends(host))
        ),
        "preview_url": request.get_full_path(),
    }
    return page(request, "hosts/by_hand_edit.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def hand_remove(request: Request, slug: str, kind: str) -> HttpResponse:
    """Asks first: GET is the question, POST the answer."""
    row, host, name = _kind(kind), host_for(request.user, slug), request.GET.get("of", "")
    require(request.user, row.level, host)
    require_whole(request.user, host)
    _, version = row.load(host, name)
    home = reverse("models:hand-list", args=[slug])
    if request.method == "POST":
        row.remove(host, name, posted_version(request.POST), actor_of(request))
        messages.success(request, f"{name} is removed.")
        return go_to(request, home)
    context = {"host": host, "title": row.title, "name": name, "version": version, "home": home}
    return page(request, "hosts/by_hand_remove.html", context)


def _kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise NotFound("There is no such kind of declaration.")
    return KINDS[kind]


def _form(fields: tuple[Field, ...], stored: Values, version: int, posted: Mapping[str, str] | None) -> EditorForm:
    return EditorForm(
        fields=fields,
        limits=Limits(),
        stored=stored,
        version=version if posted is None else posted_version(posted),
        typed=stored_texts(fields, stored) if posted is None else posted_texts(fields, posted, stored),
    )


def _stored(form: EditorForm, save: Callable[[], object], request: Request) -> tuple[EditorForm, int]:
    """The form and the status of its answer: what a save had against it stands beside its controls."""
    if form.errors:
        return form, 422
    try:
        save()
    except Refused as error:
        if not error.fields:
            messages.error(request, str(error))
        return form.with_refusal(error.fields), 422
    except EditConflict as error:
        messages.error(request, f"{error} Save once more to store yours instead.")
        return form.with_version(error.version), 409
    return form, 200


def _backends(host: Host) -> tuple[tuple[str, str], ...]:
    """Backends that run image models."""
    found = [row for row in host.backends.all() if (kind := kind_of(row.kind)) and kind.name == "sd"]
    return tuple((row.slug, row.name or row.path) for row in found)
