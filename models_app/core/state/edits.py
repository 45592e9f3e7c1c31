"""Edits of the sidecar: each takes a sidecar and gives the next one (state.md 8.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from models_app.core.discovery.roots import path_key
from models_app.core.fields import CATEGORIES
from models_app.core.launch.backends import legacy_executables
from models_app.core.launch.paths import is_absolute
from models_app.core.settings import AppSettings, BackendEntry, BackendSource, ExtraImageModel, Override, PromptEnhancer
from models_app.core.settings.codec import key_of
from models_app.core.state.extra_models import clean_extra_models, trimmed
from models_app.core.state.globs import is_glob
from models_app.core.state.loading import EXECUTABLE_KEYS
from models_app.core.state.patch import merge_patch, replace_patch
from models_app.core.state.sidecar import Sidecar


def upsert_override(sidecar: Sidecar, row: Override, platform: str) -> Sidecar:
    """Stores a row in the place of the one with the same match (by path identity), else at the end."""
    key = path_key(row.match, platform)
    rows = list(sidecar.overrides)
    for index, current in enumerate(rows):
        if path_key(current.match, platform) == key:
            rows[index] = row
            return replace(sidecar, overrides=tuple(rows))
    return replace(sidecar, overrides=(*rows, row))


def delete_override(sidecar: Sidecar, match: str, platform: str) -> tuple[Sidecar, bool]:
    """Without the row of that match, and whether there was one."""
    key = path_key(match, platform)
    kept = tuple(row for row in sidecar.overrides if path_key(row.match, platform) != key)
    return replace(sidecar, overrides=kept), len(kept) != len(sidecar.overrides)


def prune_overrides(sidecar: Sidecar, is_gone: Callable[[str], bool]) -> tuple[Sidecar, tuple[str, ...]]:
    """Without the rows of files that are gone, and their matches. Patterns and bare fragments stay.

    `is_gone` is true only when a look says *does not exist*: an error of another kind keeps the row.
    """
    gone = tuple(row.match for row in sidecar.overrides if names_a_file(row.match) and is_gone(row.match))
    if not gone:
        return sidecar, ()
    return replace(sidecar, overrides=tuple(row for row in sidecar.overrides if row.match not in gone)), gone


def names_a_file(match: str) -> bool:
    """Does a match name one file? Neither a pattern nor a bare fragment does."""
    return not is_glob(match) and (is_absolute(match) or match.strip().lower().endswith(".gguf"))


def put_enhancers(sidecar: Sidecar, rows: Iterable[PromptEnhancer]) -> Sidecar:
    """The whole table. The prompt is not trimmed; of equal models the last content in the first position."""
    kept: dict[str, PromptEnhancer] = {}
    for row in rows:
        if row.model.strip():
            kept[row.model.strip().lower()] = replace(row, model=row.model.strip(), name=row.name.strip())
    return replace(sidecar, prompt_enhancers=tuple(kept.values()))


def put_extra_models(
    sidecar: Sidecar, rows: Iterable[ExtraImageModel], file_rows: Iterable[ExtraImageModel] = ()
) -> Sidecar:
    """The whole list as a page shows it, the file's rows included; those that nobody changed are not copied in.

    Names of the file's list that it lacks are remembered as removed; a kept name is not any more.
    """
    of_file = {row.name.lower(): row for row in map(trimmed, file_rows)}
    kept = clean_extra_models(rows)
    names = {row.name.lower() for row in kept}
    wanted = dict.fromkeys([*sidecar.removed_extra_image_models, *(row.name for row in of_file.values())])
    return replace(
        sidecar,
        extra_image_models=tuple(row for row in kept if of_file.get(row.name.lower()) != row),
        removed_extra_image_models=tuple(name for name in wanted if name.lower() not in names),
    )


def put_backends(sidecar: Sidecar, rows: Iterable[BackendEntry]) -> Sidecar:
    """The whole registry and the executables it stands for; an empty one clears both."""
    kept = tuple(replace(row, path=row.path.strip()) for row in rows if row.path.strip())
    if not kept:
        return replace(sidecar, backend_list=(), backends=None)
    executables = {key_of(attribute): path for attribute, path in legacy_executables(kept).items()}
    return replace(sidecar, backend_list=kept, backends={key: executables.get(key, "") for key in EXECUTABLE_KEYS})


def with_provenance(rows: Iterable[BackendEntry], stored: Iterable[BackendEntry]) -> tuple[BackendEntry, ...]:
    """Rows of a page with what only an installer knows, restored from the stored rows by id.

    Build rows that an installer derived and the page did not send are kept as well.
    """
    by_id = {row.id: row for row in stored if row.id}
    restored = []
    for row in rows:
        known = by_id.pop(row.id, None)
        if known is not None and known.managed:
            row = replace(
                row,
                managed=True,
                component=known.component,
                version=known.version,
                variant=known.variant,
                build=known.build,
            )
        restored.append(row)
    return (*restored, *(row for row in by_id.values() if row.build))


def put_sources(sidecar: Sidecar, rows: Iterable[BackendSource]) -> Sidecar:
    """Tracked sources that can be used: with an id, a repository and a variant that has a pattern."""
    kept = []
    for row in rows:
        variants = tuple(variant for variant in row.variants if variant.pattern.strip())
        if row.id.strip() and row.repo.strip() and variants:
            kept.append(replace(row, variants=variants))
    return replace(sidecar, backend_sources=tuple(kept))


def put_app(sidecar: Sidecar, app: AppSettings) -> Sidecar:
    """Replaces the process settings as a whole: an emptied field is gone."""
    return replace(sidecar, app=app)


def merge_settings(sidecar: Sidecar, patch: Mapping[str, Any]) -> Sidecar:
    return replace(sidecar, settings=merge_patch(sidecar.settings or {}, patch) or None)


def put_settings(sidecar: Sidecar, patch: Mapping[str, Any]) -> Sidecar:
    return replace(sidecar, settings=replace_patch(patch))


def clear_settings(sidecar: Sidecar) -> Sidecar:
    """A reset of the settings; everything else stays."""
    return replace(sidecar, settings=None)


def set_lora_dir(sidecar: Sidecar, category: str, path: str) -> Sidecar:
    """Sets or (blank) clears one category's folder; the others stay."""
    _check_category(category)
    folders = _with_entry((sidecar.settings or {}).get("loraDirs", {}), category, path.strip())
    return merge_settings(sidecar, {"loraDirs": folders})


def set_root(sidecar: Sidecar, category: str, path: str) -> Sidecar:
    """Sets or (blank) clears the extra folder of a category."""
    _check_category(category)
    return replace(sidecar, category_roots=_with_entry(sidecar.category_roots, category, path.strip()))


def set_display_name(sidecar: Sidecar, model_id: str, name: str) -> Sidecar:
    """Renames a base model; a blank name shows the id again."""
    return replace(sidecar, display_names=_with_entry(sidecar.display_names, model_id, name.strip()))


def _check_category(category: str) -> None:
    if category not in CATEGORIES:
        raise ValueError(f"{category} is not a category")


def _with_entry(entries: Mapping[str, str], key: str, value: str) -> dict[str, str]:
    changed = {name: text for name, text in entries.items() if name != key}
    return {**changed, key: value} if value else changed
