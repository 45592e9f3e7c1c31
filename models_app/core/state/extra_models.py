"""Hand-declared image models: the list a form sends, checked and merged (state.md 6.3, 8.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, replace

from models_app.core.settings import ExtraImageModel

MODEL_FLAGS = ("", "-m", "--diffusion-model")
PATH_ATTRIBUTES = ("model_path", "vae_path", "llm_path", "clip_l_path", "clip_g_path", "t5_path")
_KEPT_AS_TYPED = frozenset({"custom_args", "prompt_enhancer_prompt", "prompt_enhancer_edit_prompt"})

INVALID = 400
TAKEN = 409
ACCEPTED = 200


def trimmed(row: ExtraImageModel) -> ExtraImageModel:
    """The row with blanks cut from its texts; launch text and prompts stay as typed."""
    texts = {
        item.name: getattr(row, item.name).strip()
        for item in fields(row)
        if isinstance(getattr(row, item.name), str) and item.name not in _KEPT_AS_TYPED
    }
    return replace(row, **texts)


def clean_extra_models(rows: Iterable[ExtraImageModel]) -> tuple[ExtraImageModel, ...]:
    """Rows with a name and a path; of equal names (ignoring case) the last content in the first position."""
    kept: dict[str, ExtraImageModel] = {}
    for row in map(trimmed, rows):
        if row.name and row.model_path:
            kept[row.name.lower()] = row
    return tuple(kept.values())


def merge_extra_models(
    file_rows: Iterable[ExtraImageModel], own_rows: Iterable[ExtraImageModel], removed: Collection[str]
) -> tuple[ExtraImageModel, ...]:
    """Own rows take the place of the file's of the same name, new names go to the end, removed ones are dropped."""
    gone = {name.lower() for name in removed}
    merged = {row.name.lower(): row for row in file_rows if row.name.lower() not in gone}
    merged.update({row.name.lower(): row for row in own_rows})
    return tuple(merged.values())


def check_extra_models(
    rows: Iterable[ExtraImageModel],
    served: Collection[str],
    extras: Collection[str],
    is_file: Callable[[str], bool],
) -> tuple[int, str]:
    """The status of a form and its message: 200, 400 for a row that cannot work, 409 for a name that is taken.

    `served` are all served ids, `extras` those of them that are hand-declared already. Blank rows are ignored.
    """
    taken = {name.lower() for name in served} - {name.lower() for name in extras}
    for number, row in enumerate(map(trimmed, rows), 1):
        if not row.name and not row.model_path:
            continue
        where = f"row {number}"
        if not row.name or not row.model_path:
            return INVALID, f"{where}: give both a name and a model file"
        if row.model_flag not in MODEL_FLAGS:
            return INVALID, f"{where}: the flag must be -m or --diffusion-model"
        for attribute in PATH_ATTRIBUTES:
            path = getattr(row, attribute)
            if path and not is_file(path):
                return INVALID, f"{where}: {path} is not a file"
        if row.name.lower() in taken:
            return TAKEN, f"{where}: a model named {row.name} is served already"
    return ACCEPTED, ""
