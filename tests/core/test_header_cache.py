"""The header cache: what it saves, when it forgets, and that it never stands in the way (headers.md 13)."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
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


OTHER = SMALL.replace(b"llama", b"llamb")
"""Another model in as many bytes."""


def write(path: Path, content: bytes) -> Path:
    """A file of a time that all such files have."""
    path.write_bytes(content)
    os.utime(path, ns=(1_700_000_000_000_000_000, 1_700_000_000_000_000_000))
    return path


def move_over(other: Path, model: Path) -> None:
    other.replace(model)


def copy_over(other: Path, model: Path) -> None:
    shutil.copy2(other, model)


def remove_and_make_anew(other: Path, model: Path) -> None:
    model.unlink()
    write(model, other.read_bytes())  # many file systems give it the same number again


def swap(other: Path, model: Path) -> None:
    aside = model.with_name("aside")
    model.rename(aside)
    other.rename(model)
    aside.rename(other)


def link_anew(other: Path, model: Path) -> None:
    model.unlink()
    model.symlink_to(other)


@pytest.mark.parametrize("replace", [move_over, copy_over, remove_and_make_anew, swap, link_anew])
def test_another_file_of_the_same_size_and_time_in_its_place(tmp_path, database, replace):
    model, other = write(tmp_path / "model.gguf", SMALL), write(tmp_path / "other.gguf", OTHER)
    cache = HeaderCache(database)
    assert read_header(str(model), cache=cache).architecture == "llama"
    time.sleep(0.02)  # a change in the same tick of the file system's clock has the same time
    replace(other, model)
    status = os.stat(model)
    assert (status.st_size, status.st_mtime_ns) == (len(SMALL), 1_700_000_000_000_000_000)
    assert read_header(str(model), cache=cache).architecture == "llamb"
    cache.close()
    assert read_header(str(model), cache=HeaderCache(database)).architecture == "llamb"


def test_a_renamed_file_is_read_under_its_new_name(tmp_path, database):
    model = write(tmp_path / "model.gguf", SMALL)
    cache = HeaderCache(database)
    read_header(str(model), cache=cache)
    moved = model.rename(tmp_path / "moved.gguf")
    assert read_header(str(moved), cache=cache).path == str(moved)
    with pytest.raises(SourceUnreadable):
        read_header(str(model), cache=cache)


def test_records_of_one_file_are_never_found_under_another_path(tmp_path, database):
    """Damage that leaves a database whole: the paths of two records have changed places."""
    model, other = write(tmp_path / "model.gguf", SMALL), write(tmp_path / "other.gguf", OTHER)
    cache = HeaderCache(database)
    for path in (model, other):
        read_header(str(path), cache=cache)
    cache.close()
    with closing(sqlite3.connect(database)) as damaged, damaged:
        for old, new in ((model, b"x"), (other, os.fsencode(model)), (b"x", os.fsencode(other))):
            damaged.execute("UPDATE header SET path = ? WHERE path = ?", (new, os.fsencode(old)))
    cache = HeaderCache(database)
    assert read_header(str(model), cache=cache).architecture == "llama"
    assert read_header(str(other), cache=cache).architecture == "llamb"


def test_a_flipped_digit_is_no_fact(tmp_path, database):
    model = write(tmp_path / "model.gguf", SMALL)
    cache = HeaderCache(database)
    blocks = read_header(str(model), cache=cache).block_count
    cache.close()
    with closing(sqlite3.connect(database)) as damaged, damaged:
        wrong = f'"block_count":{blocks + 1}'
        damaged.execute("UPDATE header SET record = replace(record, ?, ?)", (f'"block_count":{blocks}', wrong))
        assert wrong in damaged.execute("SELECT record FROM header").fetchone()[0]
    assert read_header(str(model), cache=HeaderCache(database)).block_count == blocks


@pytest.mark.parametrize("cut_bytes", [1, 100, 4096, 6000])
def test_a_file_that_was_cut_is_no_loss(tmp_path, database, cut_bytes):
    models = [write(tmp_path / f"{number}.gguf", SMALL if number % 2 else OTHER) for number in range(40)]
    cache = HeaderCache(database)
    for model in models:
        read_header(str(model), cache=cache)
    cache.close()
    whole = database.read_bytes()
    database.write_bytes(whole[:-cut_bytes])
    cache = HeaderCache(database)
    for number, model in enumerate(models):
        assert read_header(str(model), cache=cache).architecture == ("llama" if number % 2 else "llamb")


def test_random_damage_never_mixes_files_up(tmp_path, database):
    models = [write(tmp_path / f"{number}.gguf", SMALL if number % 2 else OTHER) for number in range(20)]
    cache = HeaderCache(database)
    for model in models:
        read_header(str(model), cache=cache)
    cache.close()
    whole, rng = database.read_bytes(), random.Random(5)
    for _ in range(60):
        damaged = bytearray(whole)
        start = rng.randrange(len(damaged))
        damaged[start : start + 64] = rng.randbytes(len(damaged[start : start + 64]))
        database.write_bytes(damaged)
        cache = HeaderCache(database)
        for number, model in enumerate(models):
            assert read_header(str(model), cache=cache).architecture == ("llama" if number % 2 else "llamb")
        cache.close()
        for left in database.parent.iterdir():
            left.unlink()


_WRITER = """
import sys
from pathlib import Path
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache
cache = HeaderCache(Path(sys.argv[1]))
for _ in range(3):
    for path in sys.argv[2:]:
        wanted = "llama" if int(Path(path).stem) % 2 else "llamb"
        assert read_header(path, cache=cache).architecture == wanted
        cache.forget([path])
        assert read_header(path, cache=cache).architecture == wanted
assert cache.is_persistent
"""


def test_two_processes_write_at_once(tmp_path, database):
    models = [write(tmp_path / f"{number}.gguf", SMALL if number % 2 else OTHER) for number in range(30)]
    command = [sys.executable, "-c", _WRITER, str(database), *map(str, models)]
    root = Path(__file__).resolve().parents[2]
    writers = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors.decode()
    cache = HeaderCache(database)
    for number, model in enumerate(models):
        header = cache.read([str(model)], Parser(AssertionError("it was there")))
        assert header.architecture == ("llama" if number % 2 else "llamb")


def test_the_fingerprint_of_a_set_names_every_file(tmp_path):
    paths = write_shards(tmp_path)
    before = fingerprint_of(paths)
    touch(paths[1])
    assert fingerprint_of(paths) != before
    assert fingerprint_of([*paths, str(tmp_path / "missing")]) is None
    assert fingerprint_of(["bad\0path"]) is None
