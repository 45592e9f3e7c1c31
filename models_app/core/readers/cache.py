"""Header facts kept between runs: by path, size, modification time and parser version (headers.md 13).

Size and time alone would take a file for another that was moved or copied into its place with both kept, as archives
and `cp -p` do: the number of the file and the time of its last change of any kind count too.

The cache only ever saves work. A file that is corrupt is put aside, one that cannot be written is done without; no
failure of the cache is a failure of the caller.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from models_app.core.catalog import Header
from models_app.core.errors import HeaderError, RecordError
from models_app.core.readers.error_record import error_from_json, error_to_json
from models_app.core.readers.record import header_from_json, header_to_json

PARSER_VERSION = 6
"""Raised whenever a reader finds other facts in the same bytes: every stored record is stale then."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS header (
    path BLOB PRIMARY KEY, fingerprint TEXT NOT NULL, parser INTEGER NOT NULL, record TEXT NOT NULL
) WITHOUT ROWID
"""
_BUSY_SECONDS = 2.0
MAX_IN_MEMORY = 1_024
_SIDE_FILES = ("", "-wal", "-shm", "-journal")

Entry = Header | HeaderError


class HeaderCache:
    """Records by path and fingerprint, in a small map in front of a file that several processes may share.

    Safe to use from several threads. Without a file, or when the file cannot be used, it lasts as long as the process.
    `fold_case` is for file systems where `A.gguf` and `a.gguf` are one file. `in_memory` is the size of the map: those
    who ask for each file once need none.
    """

    def __init__(self, file: Path | None = None, *, fold_case: bool = False, in_memory: int = MAX_IN_MEMORY) -> None:
        self._lock = threading.RLock()
        self._in_memory = in_memory
        self.parse_count = 0
        """How often a parser was asked, because the answer was not here."""
        self._fold_case = fold_case
        self._memory: dict[str, tuple[str, Entry]] = {}
        self._database = _open(file) if file is not None else None

    @property
    def is_persistent(self) -> bool:
        """Does it outlive the process?"""
        return self._database is not None

    def read(self, paths: Sequence[str], parse: Callable[[], Header]) -> Header:
        """The facts of a file (or of the shards of a set) from the cache, else from `parse`, whose answer is kept.

        A parse error is kept too and raised each time, so an unchanged broken file is opened once. The fingerprint is
        taken before the parse; when that fails, the parser reports the real error and nothing is stored.
        """
        fingerprint = fingerprint_of(paths)
        if fingerprint is None:
            self.parse_count += 1
            return parse()
        key = "\n".join(paths)
        entry = self.get(key, fingerprint)
        if isinstance(entry, HeaderError):
            raise error_from_json(error_to_json(entry))  # a fresh one: an error object collects its tracebacks
        if entry is not None:
            return entry
        self.parse_count += 1
        try:
            header = parse()
        except HeaderError as error:
            self.put(key, fingerprint, error)
            raise
        self.put(key, fingerprint, header)
        return header

    def get(self, path: str, fingerprint: str) -> Entry | None:
        """The entry stored under a path, when its fingerprint still holds."""
        key = self._key(path)
        with self._lock:
            stored = self._memory.get(key)
            if stored is not None and stored[0] == fingerprint:
                return stored[1]
            entry = self._load(key, fingerprint)
            if entry is not None:
                self._remember(key, fingerprint, entry)
            return entry

    def put(self, path: str, fingerprint: str, entry: Entry) -> None:
        """Store facts, or the error that stands in their place. A file that cannot be opened may be readable the next
        time without having changed, so that error is not kept."""
        if isinstance(entry, HeaderError) and entry.code == "unreadable":
            return
        if isinstance(entry, HeaderError):
            entry = error_from_json(error_to_json(entry))  # without frames and partial records
        key = self._key(path)
        with self._lock:
            self._remember(key, fingerprint, entry)
            if self._database is None:
                return
            record = _dump(entry)
            row = (_blob(key), fingerprint, PARSER_VERSION, _checksum(key, fingerprint, record) + record)
            try:
                self._database.execute("INSERT OR REPLACE INTO header VALUES (?, ?, ?, ?)", row)
            except sqlite3.Error:
                self._give_up()

    def forget(self, paths: Sequence[str]) -> None:
        """Have the files (the shards of a set together, and each by itself) read afresh the next time."""
        keys = [self._key(path) for path in ("\n".join(paths), *paths)]
        with self._lock:
            for key in keys:
                self._memory.pop(key, None)
            if self._database is None:
                return
            try:
                self._database.executemany("DELETE FROM header WHERE path = ?", [(_blob(key),) for key in keys])
            except sqlite3.Error:
                self._give_up()

    def drop_vanished(self) -> int:
        """Forget files that are gone from folders that are still there; returns how many. A folder that cannot be
        seen (an unmounted disk) keeps its entries."""
        with self._lock:
            if self._database is None:
                return 0
            try:
                keys = [bytes(row[0]) for row in self._database.execute("SELECT path FROM header")]
                gone = [(key,) for key in keys if _is_gone(key.split(b"\n", 1)[0])]
                self._database.executemany("DELETE FROM header WHERE path = ?", gone)
            except sqlite3.Error:
                self._give_up()
                return 0
            self._memory.clear()
            return len(gone)

    def close(self) -> None:
        with self._lock:
            self._give_up()

    def _load(self, key: str, fingerprint: str) -> Entry | None:
        if self._database is None:
            return None
        query = "SELECT record FROM header WHERE path = ? AND fingerprint = ? AND parser = ?"
        try:
            row = self._database.execute(query, (_blob(key), fingerprint, PARSER_VERSION)).fetchone()
        except sqlite3.Error:
            self._give_up()
            return None
        return _restore(_checked(row[0], key, fingerprint)) if row is not None else None

    def _remember(self, key: str, fingerprint: str, entry: Entry) -> None:
        self._memory.pop(key, None)
        self._memory[key] = (fingerprint, entry)
        while len(self._memory) > self._in_memory:
            del self._memory[next(iter(self._memory))]

    def _give_up(self) -> None:
        """Go on without the file."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _key(self, path: str) -> str:
        key = path.replace(os.sep, "/")
        return key.lower() if self._fold_case else key


def fingerprint_of(paths: Sequence[str]) -> str | None:
    """Size, times in nanoseconds and number of each file; None when one of them cannot be looked at."""
    parts = []
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        parts.append(f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}")
    return ",".join(parts)


def _open(file: Path) -> sqlite3.Connection | None:
    """The database, created when missing. A file that is no database is put aside once."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return _connect(file)
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # text that is no UTF-8 has none
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            return None  # locked, read-only, disk full: not corrupt; the plain error is a table of another shape
    except OSError:
        return None
    try:
        for suffix in _SIDE_FILES:
            side = Path(f"{file}{suffix}")
            if side.exists():
                os.replace(side, f"{file}.corrupt{suffix}")
        return _connect(file)
    except (OSError, sqlite3.Error):
        return None


def _connect(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        # a write-ahead log lets readers and one writer work at once; a lost tail only means reading a header again
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_size = -1024")
        database.execute(_SCHEMA)
        with closing(database.execute("SELECT path, fingerprint, parser, record FROM header LIMIT 1")) as rows:
            rows.fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _dump(entry: Entry) -> str:
    record = {"error": error_to_json(entry)} if isinstance(entry, HeaderError) else {"header": header_to_json(entry)}
    return json.dumps(record, separators=(",", ":"))


def _checksum(key: str, fingerprint: str, record: str) -> str:
    """Eight characters in front of a record: damage that leaves a database readable must not become a fact."""
    covered = "\n".join((key, fingerprint, record))
    return f"{zlib.crc32(_blob(covered)):08x}"


def _checked(stored: object, key: str, fingerprint: str) -> str:
    """The record without its checksum, "" when they do not belong together."""
    if not isinstance(stored, str) or stored[:8] != _checksum(key, fingerprint, stored[8:]):
        return ""
    return stored[8:]


def _restore(text: str) -> Entry | None:
    """The entry of a stored text; None for one that this version does not understand."""
    try:
        record = json.loads(text)
        if "error" in record:
            return error_from_json(record["error"])
        return header_from_json(record.get("header"))
    except (RecordError, ValueError, AttributeError, TypeError, RecursionError):
        return None


def _blob(key: str) -> bytes:
    """File names need not be valid text."""
    return key.encode("utf-8", "surrogateescape")


def _is_gone(path: bytes) -> bool:
    return not os.path.lexists(path) and os.path.isdir(os.path.dirname(path) or b".")
