"""A scan of this machine's folders: list, read headers, discover, and report as it goes. Imports no Django.

When everything is listed as the control side has it, nothing is read at all. Headers that it already has (same path,
size, time and parser) are read from this worker's own cache and not sent again. A file that cannot be read is a
finding; the rest of the scan goes on. Of a header only what discovery asks for is kept: memory hardly grows with the
number of files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from models_app import records, watching
from models_app.core.catalog import FileEntry, Finding, Header, WeightTable
from models_app.core.components.scan import PROJECTOR_TYPE_KEYS, Survey, survey
from models_app.core.components.signals import AUDIO_PART, MATTING
from models_app.core.discovery.inventory import Inventory, discover, reader_of
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.roots import Root
from models_app.core.discovery.selection import HF, Candidate, Selection, select
from models_app.core.discovery.vanishing import Vanishing
from models_app.core.discovery.walk import OUTSIDE, list_files
from models_app.core.errors import TRANSIENT, HeaderError, SourceUnreadable
from models_app.core.readers import read_header, read_shard_set
from models_app.core.readers.cache import PARSER_VERSION, HeaderCache
from models_app.core.readers.record import header_to_json
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.reporting import Reporter

HEADERS_PER_BATCH = 40
ROWS_PER_BATCH = 200
FINDINGS_PER_BATCH = 400
MAX_NOTES = 2000
"""Files that are no models, of one scan: a tree of nothing else must not fill a database with remarks."""
_INTERIM_SECONDS = 3.0
_INTERIM_SHARE = 20
"""Interim results may take a twentieth of the time."""
_NO_WEIGHTS = WeightTable()


@dataclass
class Scan:
    """One scan. `known` is path -> [size, mtime_ns, parser version] of what the control side has.

    `seen` is the fingerprint of the last listing of which it has everything, "" when it wants everything anyway.
    `may_see` tells of a path without links whether this machine lets it be listed; None: everything.
    """

    report: Reporter
    cache: HeaderCache
    platform: str
    known: Mapping[str, Any]
    seen: str = ""
    may_see: Callable[[str], bool] | None = None
    clock: Callable[[], float] = time.monotonic
    results: dict[str, Header | HeaderError] = field(default_factory=dict)
    _unsent: list[dict[str, Any]] = field(default_factory=list)
    _sent_rows: dict[str, int] = field(default_factory=dict)
    _interim_at: float = 0.0
    _fingerprint: str = ""
    _vanishing: Vanishing = field(default_factory=lambda: Vanishing(Listing("")))
    _transient: list[str] = field(default_factory=list)

    def run(self, roots: Iterable[Root]) -> dict[str, Any]:
        """The closing result. Raises Cancelled with what is known when somebody asked to stop."""
        wanted = tuple(roots)
        listing = list_files(
            wanted,
            platform=self.platform,
            should_stop=self.report.is_cancelled,
            on_progress=self._listed,
            may_see=self.may_see,
        )
        if listing.stopped:
            raise Cancelled(self._summary(listing, wanted, Inventory((), (), ())))
        self._fingerprint = watching.remember(listing)
        if self._fingerprint == self.seen:
            return self._summary(listing, wanted, Inventory((), (), ())) | {"unchanged": True}
        return self._look_inside(listing, wanted)

    def _look_inside(self, listing: Listing, wanted: tuple[Root, ...]) -> dict[str, Any]:
        self._vanishing = Vanishing(listing)
        selection = select(listing)
        self._interim_at = self.clock() + _INTERIM_SECONDS
        self._read_all(selection, wanted)
        self._vanishing.check_roots()
        if self._vanishing.count:
            listing = self._vanishing.remaining()
            self._fingerprint = watching.remember(listing)
            selection = select(listing)
        count = len(selection.candidates)
        self.report.progress("Pairing files", count, count, unit="files")
        found = survey(selection, reader_of(self.results))
        self._send_components(found)
        inventory = self._discover(only_read=False)
        self._send_findings((*inventory.findings, *found.findings, *_notes(inventory, found)))
        return self._summary(listing, wanted, inventory)

    def _read_all(self, selection: Selection, wanted: tuple[Root, ...]) -> None:
        candidates = selection.candidates
        for number, candidate in enumerate(candidates):
            self.report.progress("Reading headers", number, len(candidates), unit="files", current=candidate.path)
            self._stop_if_asked(wanted)
            self._read(candidate)
            self._show_interim()
        self._send_headers()
        others = [file for file in selection.components if file.path not in self.results]
        for number, file in enumerate(others):
            self.report.progress("Reading components", number, len(others), unit="files", current=file.path)
            self._stop_if_asked(wanted)
            if not self._vanishing.holds(file.path):
                self._keep(file.path, read_component(file.path, self.cache), [file])

    def _stop_if_asked(self, wanted: tuple[Root, ...]) -> None:
        if self.report.is_cancelled():
            self._send_headers()
            raise Cancelled(self._summary(self._vanishing.remaining(), wanted, self._discover(only_read=True)))

    def _listed(self, seen: int, folder: str) -> None:
        self.report.progress("Listing files", seen, unit="files", current=folder)

    def _read(self, candidate: Candidate) -> None:
        if self._vanishing.holds(candidate.path):
            return
        parsed_before = self.cache.parse_count
        result = read_candidate(candidate, self.cache)
        was_parsed = self.cache.parse_count > parsed_before
        if not self._keep(candidate.path, result, candidate.parts):
            return
        stamp = [candidate.size_bytes, candidate.mtime_ns, PARSER_VERSION]
        if isinstance(result, HeaderError):
            self.report.warnings += 1
            self.report.log(f"{candidate.path}: {result.message}")
        elif self.known.get(candidate.path) == stamp and not was_parsed:
            return
        self._unsent.append(header_record(candidate, result))
        if len(self._unsent) >= HEADERS_PER_BATCH:
            self._send_headers()

    def _keep(self, path: str, result: Header | HeaderError, parts: Sequence[FileEntry]) -> bool:
        """False where the file has gone. Most of a header is tables and keys that only planning asks for."""
        if isinstance(result, HeaderError):
            if result.code in TRANSIENT:
                if self._vanishing.explains(path, parts):
                    return False
                self._transient.append(path)
            self.results[path] = result
            return True
        extra = {key: result.extra[key] for key in PROJECTOR_TYPE_KEYS if key in result.extra}
        self.results[path] = replace(result, weights=_NO_WEIGHTS, extra=extra)
        return True

    def _send_headers(self) -> None:
        if self._unsent:
            self.report.batch({"headers": self._unsent})
            self._unsent = []

    def _show_interim(self) -> None:
        """Rows appear while the scan still runs, when it takes long enough for somebody to look."""
        started = self.clock()
        if started < self._interim_at:
            return
        self._send_headers()
        self._discover(only_read=True)
        ended = self.clock()
        self._interim_at = ended + max(_INTERIM_SECONDS, _INTERIM_SHARE * (ended - started))

    def _discover(self, *, only_read: bool) -> Inventory:
        """Rows of what has been read, sent as far as they are new or changed. The last time nothing is kept after."""
        inventory = discover(self._vanishing.remaining(), reader_of(self.results) if only_read else self._hand_over)
        fresh = [
            row
            for row in inventory.rows
            if not (only_read and not self._is_known(row.full_path)) and self._sent_rows.get(row.full_path) != hash(row)
        ]
        for start in range(0, len(fresh), ROWS_PER_BATCH):
            part = fresh[start : start + ROWS_PER_BATCH]
            self.report.batch({"rows": [records.row_to_json(row) for row in part]})
            self._sent_rows.update({row.full_path: hash(row) for row in part})
        return inventory

    def _hand_over(self, path: str) -> Header:
        """A header that nobody will ask for again."""
        result = self.results.pop(path, None)
        return reader_of({path: result} if result is not None else {})(path)

    def _is_known(self, path: str) -> bool:
        return path in self.results or not path.lower().endswith(".gguf")

    def _send_components(self, found: Survey) -> None:
        entries = [records.component_to_json(entry) for entry in found.entries]
        for start in range(0, len(entries), ROWS_PER_BATCH):
            self.report.batch({"components": entries[start : start + ROWS_PER_BATCH]})

    def _send_findings(self, found: Sequence[Finding]) -> None:
        findings = [records.finding_to_json(finding) for finding in found]
        for start in range(0, len(findings), FINDINGS_PER_BATCH):
            self.report.batch({"findings": findings[start : start + FINDINGS_PER_BATCH]})
        worse = sum(finding.level != "info" for finding in found)
        self.report.warnings = max(self.report.warnings, worse)

    def _summary(self, listing: Listing, roots: tuple[Root, ...], inventory: Inventory) -> dict[str, Any]:
        unread = set(listing.unread)
        kept_out = {finding.path for finding in listing.findings if finding.kind == OUTSIDE}
        return {
            "roots": [_root_summary(root, listing, unread, kept_out) for root in roots],
            "unread": sorted({*unread, *listing.unread_files, *self._transient})[:1000],
            "files": listing.file_count,
            "seen": listing.seen_count,
            "models": len(inventory.rows),
            "dropped": len(inventory.dropped),
            "fingerprint": self._fingerprint,
            "transient": len(self._transient) + self._vanishing.count,
        }


def _notes(inventory: Inventory, found: Survey) -> Sequence[Finding]:
    """Files that are no rows, without those that a worse or clearer finding or their role explains already."""
    named = {finding.path for finding in (*inventory.findings, *found.findings)}
    named |= {entry.path for entry in found.entries if entry.role in (MATTING, AUDIO_PART)}
    return [note for note in inventory.notes if note.path not in named][:MAX_NOTES]


def _root_summary(root: Root, listing: Listing, unread: set[str], kept_out: set[str]) -> dict[str, Any]:
    """How far one root could be read: `ok`, `missing`, `unreadable` or `partial`.

    Folders that the owner of the machine keeps out leave nothing to wait for; of a root that is one of them, not even
    its being there is told.
    """
    path = os.path.abspath(root.path)
    part = next((part for part in listing.roots if part.root.path == path), None)
    below = path.rstrip(os.sep) + os.sep
    state, reason = "ok", ""
    if part is None:
        state, reason = "partial", "the scan was stopped before this folder"
    elif path in unread:
        state = "unreadable" if path in kept_out or os.path.isdir(path) else "missing"
        reason = next((finding.text for finding in listing.findings if finding.path == path), "")
    elif listing.stopped or any(folder.startswith(below) for folder in unread - kept_out):
        state, reason = "partial", "some folders below could not be listed"
    return {"path": root.path, "state": state, "reason": reason, "files": len(part.files) if part else 0}


def read_candidate(candidate: Candidate, cache: HeaderCache | None) -> Header | HeaderError:
    """The header of one candidate. A file that changes while it is read is an error: it will be read again."""
    result = _header_or_error(candidate, cache)
    if isinstance(result, HeaderError) and result.code in TRANSIENT:
        return result
    try:
        _check_unchanged(candidate)
    except HeaderError as error:
        return error
    except (OSError, ValueError) as error:
        return SourceUnreadable("unreadable", f"the file cannot be read: {error}", path=candidate.path)
    return result


def _header_or_error(candidate: Candidate, cache: HeaderCache | None) -> Header | HeaderError:
    try:
        if candidate.kind != HF and len(candidate.parts) > 1:
            return read_shard_set([part.path for part in candidate.parts], cache=cache)
        return read_header(candidate.path, cache=cache)
    except HeaderError as error:
        return error
    except (OSError, ValueError) as error:
        return SourceUnreadable("unreadable", f"the file cannot be read: {error}", path=candidate.path)


def read_component(path: str, cache: HeaderCache | None) -> Header | HeaderError:
    """The header of a file that is no candidate for a row."""
    try:
        return read_header(path, cache=cache)
    except HeaderError as error:
        return error
    except (OSError, ValueError) as error:
        return SourceUnreadable("unreadable", f"the file cannot be read: {error}", path=path)


def _check_unchanged(candidate: Candidate) -> None:
    for part in candidate.parts:
        status = os.stat(part.path)
        if (status.st_size, status.st_mtime_ns) != (part.size_bytes, part.mtime_ns):
            raise SourceUnreadable("changed", "the file changed while it was read", path=part.path)


def header_record(candidate: Candidate, result: Header | HeaderError) -> dict[str, Any]:
    """One header, or why there is none, as the control side stores it."""
    record: dict[str, Any] = {
        "path": candidate.path,
        "size_bytes": candidate.size_bytes,
        "mtime_ns": candidate.mtime_ns,
        "parser_version": PARSER_VERSION,
    }
    if isinstance(result, HeaderError):
        return record | {"error": {"code": result.code, "text": result.message, "offset": result.offset}}
    return record | {"facts": header_to_json(result)}
