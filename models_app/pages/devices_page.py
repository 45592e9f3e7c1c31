"""The device section of a host: each setting with where its value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpus_app.device_settings import PREFERENCE, RESERVE, DeviceSettings
from models_app.core.fields.field import CHOICE, SWITCH
from models_app.device_form import CATALOGUE, PREFERENCE_WORDS, DeviceForm, initial_of, preference_key, reserve_key
from models_app.pages.memory_page import Conflict, SettingRow, conflict_of
from quartermaster_site.errors import EditConflict


def device_setting_rows(form: DeviceForm, stored: DeviceSettings) -> list[SettingRow]:
    own = {reserve_key(int(index)) for index in stored.values.get(RESERVE, {})}
    own |= {preference_key(int(index)) for index in stored.values.get(PREFERENCE, {})}
    return [_row(form, key, stored, is_set=key in stored.values or key in own) for key in form.keys]


def _row(form: DeviceForm, key: str, stored: DeviceSettings, *, is_set: bool) -> SettingRow:
    by = f" · {stored.changed_by}" if stored.changed_by else ""
    return SettingRow(
        field=form[key], set=is_set, origin=f"set here{by}" if is_set else f"default: {_default(form, key)}"
    )


def _default(form: DeviceForm, key: str) -> str:
    field = CATALOGUE.get(key)
    if field is None:
        return PREFERENCE_WORDS[""] if key.startswith(preference_key(0)[:-1]) else "nothing"
    if field.kind == SWITCH:
        return "on" if field.default else "off"
    if field.kind == CHOICE:
        return str(dict(form.fields[key].choices)[""])  # type: ignore[attr-defined]
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def device_originals(stored: DeviceSettings) -> dict[str, str]:
    """What is stored now, carried along by the form: after a conflict it is the state before both saves."""
    return {key: _words(value) for key, value in initial_of(stored.values).items()}


def device_conflict(form: DeviceForm, error: EditConflict, original: Mapping[str, str]) -> Conflict:
    """The fields where the person's values and the saved ones differ."""
    labels = {key: str(form.fields[key].label) for key in form.keys}
    yours = {key: _words(form.cleaned_data.get(key)) for key in labels}
    saved = {key: _words(value) for key, value in initial_of(error.saved).items()}
    return conflict_of(labels, yours, saved, original, error)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
