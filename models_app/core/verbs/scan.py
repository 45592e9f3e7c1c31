"""Folders to rows for the headless verbs: walk, read every header, pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.discovery.hostile_names import printable
from models_app.core.discovery.inventory import Inventory, discover, reader_of
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import ExportError, HeaderError
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
    headers = _read(listing, environment, use_cache)
    return Scanned(discover(listing, reader_of(headers)), headers)


def _read(listing: Listing, environment: Environment, use_cache: bool) -> dict[str, Header | HeaderError]:
    folds_case = environment.platform != "linux"
    cache = HeaderCache(environment.header_cache, fold_case=folds_case) if use_cache else None
    candidates = select(listing).candidates
    results: dict[str, Header | HeaderError] = {}
    try:
        for done, candidate in enumerate(candidates, 1):
            environment.note(f"headers {done}/{len(candidates)} {shown(candidate.path)}")
            try:
                results[candidate.path] = read_header(candidate.path, cache=cache)
            except HeaderError as error:
                results[candidate.path] = error
    finally:
        if cache is not None:
            cache.close()
    return results
