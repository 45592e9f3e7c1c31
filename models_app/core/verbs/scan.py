"""Folders to rows for the headless verbs: walk, read every header, pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.components.pool import PoolEntry
from models_app.core.components.scan import survey
from models_app.core.discovery.hostile_names import printable
from models_app.core.discovery.inventory import Inventory, discover, reader_of
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import ExportError, HeaderError
from models_app.core.plans.engines.request import WITH_COMPONENTS
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache
from models_app.core.verbs.answers import shown
from models_app.core.verbs.environment import Environment

ROOT_MISSING = "root-missing"


@dataclass(frozen=True, slots=True)
class Scanned:
    """Rows of the folders, and the header or the error of everything that was read for them."""

    inventory: Inventory
    headers: Mapping[str, Header | HeaderError]
    components: tuple[PoolEntry, ...] = ()
    """Files that serve other models; looked for only where some model could use them."""

    def header_of(self, path: str) -> Header | None:
        """None where there is none, or it could not be read."""
        header = self.headers.get(path)
        return header if isinstance(header, Header) else None


def scan(folders: Sequence[str], environment: Environment, *, use_cache: bool) -> Scanned:
    """All rows of some folders. Raises `ExportError` for a folder that cannot be read: its models would be dropped."""
    listing = list_files(
        folders,
        platform=environment.platform,
        on_progress=lambda seen, folder: environment.note(f"{seen} files {shown(folder)}"),
    )
    lost = {printable(folder) for folder in folders} & {printable(folder) for folder in listing.unread}
    for finding in listing.findings:
        if finding.kind == ROOT_MISSING or finding.path in lost:
            raise ExportError(f"{finding.path}: {finding.text}")
    selection = select(listing)
    headers = _read([item.path for item in selection.candidates], environment, use_cache)
    inventory = discover(listing, reader_of(headers))
    if not any(row.model_class in WITH_COMPONENTS for row in inventory.rows):
        return Scanned(inventory, headers)
    headers |= _read([item.path for item in selection.components if item.path not in headers], environment, use_cache)
    return Scanned(inventory, headers, survey(selection, reader_of(headers)).entries)


def _read(paths: Sequence[str], environment: Environment, use_cache: bool) -> dict[str, Header | HeaderError]:
    folds_case = environment.platform != "linux"
    cache = HeaderCache(environment.header_cache, fold_case=folds_case) if use_cache else None
    results: dict[str, Header | HeaderError] = {}
    try:
        for done, path in enumerate(paths, 1):
            environment.note(f"headers {done}/{len(paths)} {shown(path)}")
            try:
                results[path] = read_header(path, cache=cache)
            except HeaderError as error:
                results[path] = error
    finally:
        if cache is not None:
            cache.close()
    return results
