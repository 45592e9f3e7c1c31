"""The header cache: what it saves, when it forgets, and that it never stands in the way (headers.md 13)."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from models_app.core.catalog import Header
from models_app.core.errors import NotThisFormat, SourceUnreadable, TruncatedHeader
from models_app.core.readers import cache as cache_module
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache, fingerprint_of
from tests.core.test_gguf_hostile import SMALL
from tests.core.test_gguf_reader import write_shards


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "model.gguf"
    path.write_bytes(SMALL)
    return str(path)


@pytest.fixture
def database(tmp_path) -> Path:
    return tmp_path / "state" / "headers.sqlite3"


class Parser:
    """Counts how often it is asked."""

    def __init__(self, answer: Header | Exception) -> None:
        self.answer = answer
        self.calls = 0

    def __call__(self) -> Header:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def touch(path: str, delta_ns: int = 1) -> None:
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + delta_ns))


def test_a_hit_does_not_open_the_file(model, database):
    parse = Parser(Header(architecture="x"))
    for _ in range(2):
        cache = HeaderCache(database)
        assert cache.read([model], parse).architecture == "x"
        assert cache.read([model], parse).architecture == "x"
        cache.close()
    assert parse.calls == 1


def test_size_and_time_in_nanoseconds_decide(model, database):
    cache = HeaderCache(database)
    parse = Parser(Header())
    cache.read([model], parse)
    touch(model, 1)
    cache.read([model], parse)
    assert parse.calls == 2
    status = os.stat(model)
    with open(model, "ab") as out:
        out.write(b"x")
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    cache.read([model], parse)
    assert parse.calls == 3


def test_a_new_parser_forgets_everything(model, database, monkeypatch):
    parse = Parser(Header())
    cache = HeaderCache(database)
    cache.read([model], parse)
    cache.close()
    monkeypatch.setattr(cache_module, "PARSER_VERSION", cache_module.PARSER_VERSION + 1)
    HeaderCache(database).read([model], parse)
    assert parse.calls == 2


def test_a_broken_file_is_opened_once(model, database):
    parse = Parser(TruncatedHeader("cut", offset=1, need=9, retryable=False, partial=Header()))
    for _ in range(2):
        cache = HeaderCache(database)
        for _ in range(2):
            with pytest.raises(TruncatedHeader) as caught:
                cache.read([model], parse)
            assert caught.value.need == 9
        cache.close()
    assert parse.calls == 1


def test_each_caller_gets_an_error_of_its_own(model):
    cache = HeaderCache()
    parse = Parser(NotThisFormat("not_gguf", "x"))
    caught = []
    for _ in range(3):
        with pytest.raises(NotThisFormat) as error:
            cache.read([model], parse)
        caught.append(error.value)
    assert len({id(error) for error in caught}) == 3


def test_a_file_that_cannot_be_opened_is_tried_again(model):
    cache = HeaderCache()
    parse = Parser(SourceUnreadable("unreadable", "no permission"))
    for _ in range(2):
        with pytest.raises(SourceUnreadable):
            cache.read([model], parse)
    assert parse.calls == 2


def test_a_missing_file_is_left_to_the_parser(tmp_path, database):
    cache = HeaderCache(database)
    with pytest.raises(SourceUnreadable) as caught:
        read_header(str(tmp_path / "missing.gguf"), cache=cache)
    assert caught.value.code == "unreadable"
    assert sqlite3.connect(database).execute("SELECT count(*) FROM header").fetchone() == (0,)


def test_a_split_set_is_one_entry_that_any_shard_invalidates(tmp_path, database):
    paths = write_shards(tmp_path)
    cache = HeaderCache(database)
    whole = read_header(paths[0], cache=cache)
    assert read_header(paths[1], cache=cache) is whole
    Path(paths[2]).write_bytes(b"GGUF")
    with pytest.raises(TruncatedHeader) as caught:
        read_header(paths[0], cache=cache)
    assert caught.value.path == paths[2]


def test_names_that_are_no_text(tmp_path, database):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n.gguf")
    Path(path).write_bytes(SMALL)
    for _ in range(2):
        cache = HeaderCache(database)
        assert read_header(path, cache=cache).path == path
        assert cache.is_persistent
        cache.close()


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be read as one" * 50, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_corrupt_file_is_put_aside(model, database, content):
    database.parent.mkdir()
    database.write_bytes(content)
    cache = HeaderCache(database)
    assert read_header(model, cache=cache).architecture == "llama"
    assert cache.is_persistent
    assert Path(f"{database}.corrupt").read_bytes() == content


def test_a_table_of_another_shape_is_put_aside(model, database):
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE header (something TEXT)")
    cache = HeaderCache(database)
    assert read_header(model, cache=cache).architecture == "llama"
    assert cache.is_persistent
    assert Path(f"{database}.corrupt").exists()
    cache.close()


def test_a_file_that_breaks_while_in_use_is_done_without(model, database):
    cache = HeaderCache(database)
    cache._database.execute("DROP TABLE header")
    parse = Parser(Header())
    cache.read([model], parse)
    cache.read([model], parse)
    assert parse.calls == 1
    assert not cache.is_persistent


def test_a_record_that_makes_no_sense_is_read_anew(model, database):
    cache = HeaderCache(database)
    cache.read([model], Parser(Header(architecture="x")))
    for record in ("nonsense", "{}", "[]", '{"header": {"unknown": 1}}', '{"error": 1}', "null"):
        cache._database.execute("UPDATE header SET record = ?", (record,))
        cache._memory.clear()
        parse = Parser(Header(architecture="x"))
        assert cache.read([model], parse).architecture == "x"
        assert parse.calls == 1


def test_a_place_that_cannot_be_written_is_done_without(model, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "headers.sqlite3", tmp_path):
        cache = HeaderCache(place)
        assert not cache.is_persistent
        assert read_header(model, cache=cache).architecture == "llama"
        cache.close()
    assert tmp_path.is_dir()


def test_the_map_in_memory_is_bounded(tmp_path):
    cache = HeaderCache()
    for number in range(cache_module.MAX_IN_MEMORY + 10):
        cache.put(str(number), "1:1", Header())
    assert len(cache._memory) == cache_module.MAX_IN_MEMORY
    assert cache.get("0", "1:1") is None
    assert cache.get("20", "1:1") is not None


def test_case_is_folded_where_the_file_system_does(model):
    cache = HeaderCache(fold_case=True)
    cache.put("/M/A.gguf", "1:1", Header(architecture="x"))
    assert cache.get("/m/a.GGUF", "1:1") is not None
    assert HeaderCache().get("/m/a.GGUF", "1:1") is None


def test_vanished_files_are_dropped_but_not_those_of_a_missing_disk(tmp_path, database):
    cache = HeaderCache(database)
    kept, gone, away = tmp_path / "kept.gguf", tmp_path / "gone.gguf", tmp_path / "disk" / "away.gguf"
    away.parent.mkdir()
    for path in (kept, gone, away):
        path.write_bytes(SMALL)
        read_header(str(path), cache=cache)
    gone.unlink()
    away.unlink()
    away.parent.rmdir()
    assert cache.drop_vanished() == 1
    rows = {row[0] for row in cache._database.execute("SELECT path FROM header")}
    assert rows == {os.fsencode(kept), os.fsencode(away)}


def test_several_threads_and_two_processes_worth_of_connections(tmp_path, database):
    paths = []
    for number in range(20):
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(SMALL)
        paths.append(str(path))
    caches = [HeaderCache(database), HeaderCache(database)]
    failures: list[BaseException] = []

    def work(cache: HeaderCache) -> None:
        try:
            for path in paths * 3:
                assert read_header(path, cache=cache).architecture == "llama"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(caches[number % 2],)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(cache.is_persistent for cache in caches)
    assert caches[0].drop_vanished() == 0


def test_the_fingerprint_of_a_set_names_every_file(tmp_path):
    paths = write_shards(tmp_path)
    before = fingerprint_of(paths)
    touch(paths[1])
    assert fingerprint_of(paths) != before
    assert fingerprint_of([*paths, str(tmp_path / "missing")]) is None
    assert fingerprint_of(["bad\0path"]) is None
