"""Which files of a host a person may name in a setting: none that are hidden from them, and without the right to write
launch arguments none outside the host's folders.

A setting that names a file makes a server open it, and a preview tells its size: both would lead around a policy.
"""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpus_app.models import Host, OsFamily
from models_app.core.discovery.roots import path_key
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.fields.by_hand import LORA_KEY
from models_app.core.fields.field import PATH
from models_app.core.state.overrides import is_none
from models_app.models import Root
from quartermaster_site.access.permissions import may_write_arguments
from quartermaster_site.errors import Withheld

LORAS = "loras"
_PATHS = frozenset(field.key for field in OVERRIDE_FIELDS if field.kind == PATH)
OUTSIDE = (
    "Name a file in one of the folders of this host that you may see. Other files need the right to write custom "
    "launch arguments."
)
HIDDEN = "There is no file of this name that you may use."


def file_problems(user: Any, host: Host, before: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """A message for each setting whose new value names a file that this person may not use; what is stored may stay."""
    return _problems(user, host, (*_PATHS, LORAS), before, values)


def check_pins(user: Any, host: Host, before: Mapping[str, str], values: Mapping[str, str]) -> None:
    """The same for component files that are pinned for a whole host."""
    if problems := _problems(user, host, values, before, values):
        raise Withheld("Some files cannot be used.", fields=problems)


def check_folders(user: Any, host: Host, before: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """The same for the folders that a section of a host's settings names."""
    wanted = _folders(values)
    if problems := _problems(user, host, wanted, _folders(before), wanted):
        raise Withheld("Some folders cannot be used.", fields=problems)


def _folders(values: Mapping[str, Any]) -> dict[str, Any]:
    """Key of the form -> the folder that a section holds."""
    found = {"loraDir": values.get("loraDir")}
    found |= {f"{LORA_KEY}{name}": path for name, path in (values.get("loraDirs") or {}).items()}
    return found | {"slotCache-path": (values.get("slotCache") or {}).get("path")}


def _problems(
    user: Any, host: Host, keys: Iterable[str], before: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, str]:
    named = [(key, path) for key in keys for path in sorted(_files(key, values) - _files(key, before))]
    if not named:
        return {}
    from models_app.selectors.sight import HostSight  # the selectors themselves ask how things are saved

    sight, is_free = HostSight(user, host.pk), may_write_arguments(user, host)
    folders = [] if is_free else list(Root.objects.filter(host=host).values_list("path", flat=True))
    problems = {}
    for key, path in named:
        if not sight.is_whole and not sight.sees(_plain(path, host)):
            problems[key] = HIDDEN
        elif not is_free and not _is_within(path, folders, host, may_be_name=key == LORAS):
            problems[key] = OUTSIDE
    return problems


def check_files(user: Any, host: Host, before: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raises Withheld with a message per field."""
    if problems := file_problems(user, host, before, values):
        raise Withheld("Some files cannot be used.", fields=problems)


def _files(key: str, values: Mapping[str, Any]) -> set[str]:
    value = values.get(key)
    found: Iterator[Any] = iter((value,))
    if key == LORAS:
        found = (item.get("path") if isinstance(item, Mapping) else getattr(item, "path", "") for item in value or ())
    return {text for item in found if item and not is_none(text := str(item).strip())}


def _plain(path: str, host: Host) -> str:
    """A path without the ways around that `..` and doubled slashes are."""
    return ntpath.normpath(path) if host.os_family == OsFamily.WINDOWS else posixpath.normpath(path)


def _is_within(path: str, folders: list[str], host: Host, *, may_be_name: bool) -> bool:
    plain = path_key(_plain(path, host), host.os_family)
    if may_be_name and "/" not in plain and "\\" not in plain:
        return plain not in (".", "..")
    tops = (path_key(_plain(folder, host), host.os_family).rstrip("/\\") for folder in folders)
    return any(plain == top or plain.startswith((f"{top}/", f"{top}\\")) for top in tops)
