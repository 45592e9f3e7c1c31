"""Keeps a generated file up to date with its inputs, for headless use (state.md 11.2).

Only here do rows of the sidecar go when their file is gone; with a scan root missing, none does: an unplugged drive
must not cost anybody's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models_app.core.discovery.roots import Root, root_list, without_repeats
from models_app.core.export.target import Written, write_companion, write_target
from models_app.core.fields import CATEGORIES
from models_app.core.settings_files.files import OwnSettings
from models_app.core.settings_files.pair import Pair, executables_of, read_pair
from models_app.core.settings_files.writing import map_text
from models_app.core.state import digest
from models_app.core.state.edits import prune_overrides
from models_app.core.state.loading import LoadedState
from models_app.core.state.sidecar import FILE_NAME

DIGEST_SUFFIX = ".modelhash"

Generate = Callable[[Pair], str]


@dataclass(frozen=True, slots=True)
class Ensured:
    """What one run did. `digest` is that of the inputs as they are now; `written` is None where all was up to date."""

    digest: str
    written: Written | None = None
    pruned: tuple[str, ...] = ()

    @property
    def regenerated(self) -> bool:
        return self.written is not None


@dataclass(frozen=True, slots=True)
class Target:
    """The files of one generated config. `version` is the generation version: it changes when the output does."""

    settings_file: Path
    output: Path
    version: str
    program_folder: str = ""
    models_dir: str = ""
    sidecar: Path | None = None
    """The one beside the settings file unless another is named."""

    @property
    def sidecar_file(self) -> Path:
        return self.sidecar or self.settings_file.parent / FILE_NAME

    @property
    def digest_file(self) -> Path:
        return self.output.with_name(self.output.name + DIGEST_SUFFIX)


@dataclass(frozen=True, slots=True)
class _Inputs:
    pair: Pair
    state: LoadedState
    digest: str


def ensure(target: Target, generate: Generate, *, lock: AbstractContextManager[Any] | None = None) -> Ensured:
    """Generates the output when its inputs changed, or when free VRAM is measured each time (`autoVram`).

    The config is written before its digest, each atomically, so a crash means one more run, never a stale file.
    """
    with lock or nullcontext():
        pruned = _prune(target)
        inputs = _read(target)
        if _up_to_date(target, inputs):
            return Ensured(inputs.digest, None, pruned)
        written = write_target(str(target.output), generate(inputs.pair))
        write_companion(str(target.digest_file), f"{inputs.digest}\n")
        return Ensured(inputs.digest, written, pruned)


def would_change(target: Target) -> bool:
    """Would `ensure` generate? Neither generates nor prunes."""
    return not _up_to_date(target, _read(target))


def scan_folders(state: LoadedState, own: OwnSettings, platform: str) -> tuple[Root, ...]:
    """The folders that are scanned: the main one, those of the categories, then those that only this program knows."""
    settings = state.settings
    usual = root_list(settings.models_root, settings.category_roots, platform)
    return without_repeats([*usual, *(Root(folder.path.strip(), folder.category) for folder in own.folders)], platform)


def _read(target: Target) -> _Inputs:
    pair = read_pair(target.settings_file, target.sidecar)
    state = pair.state(target.models_dir)
    roots = _roots(state, pair.own)
    blob = digest.inputs_blob(target.version, roots, pair.file_bytes, pair.sidecar_bytes, target.program_folder)
    further = digest.root_records(roots, digest.is_further_model_file) + digest.single_records(_watched(state))
    return _Inputs(pair, state, digest.inputs_digest(digest.root_records(roots, digest.is_gguf), blob, further))


def _roots(state: LoadedState, own: OwnSettings) -> Sequence[str]:
    """Every root of the settings, a blank main root included: their positions are part of the digest."""
    extra = state.settings.category_roots
    by_category = (extra[category] for category in CATEGORIES if category in extra)
    return (state.settings.models_root, *by_category, *(folder.path for folder in own.folders))


def _watched(state: LoadedState) -> list[str]:
    """Files outside the roots whose content shapes the output: chat templates and executables."""
    paths = [row.chat_template_file for row in state.overrides]
    paths += [variant.chat_template_file for row in state.overrides for variant in row.variants]
    paths += executables_of(state.settings)
    return [path for path in paths if "/" in path or "\\" in path]


def _prune(target: Target) -> tuple[str, ...]:
    """Drops the sidecar's rows of files that are gone, so that the digest sees it. What nobody knows in it stays."""
    pair = read_pair(target.settings_file, target.sidecar)
    roots = _roots(pair.state(target.models_dir), pair.own)
    if any(root.strip() and not Path(root).is_dir() for root in roots):
        return ()
    sidecar = pair.sidecar.content
    _, pruned = prune_overrides(sidecar, _is_gone)
    if pruned:
        rows = zip(pair.sidecar.tree.value["overrides"], sidecar.overrides, strict=True)
        kept = [raw for raw, row in rows if row.match not in pruned]
        others = {key: value for key, value in pair.sidecar.tree.value.items() if key != "overrides"}
        write_companion(str(pair.sidecar_path), map_text(others | ({"overrides": kept} if kept else {})))
    return pruned


def _is_gone(path: str) -> bool:
    try:
        Path(path).lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _up_to_date(target: Target, inputs: _Inputs) -> bool:
    if inputs.state.settings.auto_vram or not target.output.exists():
        return False
    try:
        return target.digest_file.read_text().strip() == inputs.digest
    except (OSError, UnicodeDecodeError):
        return False
