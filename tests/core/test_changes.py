"""What counts as a change between two listings."""

from __future__ import annotations

import os

import pytest

from models_app.core.discovery.changes import QUIET_SECONDS, Difference, baseline_of, compare
from models_app.core.discovery.walk import list_files

SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND
OLD = NOW - 3600 * SECOND
NOTHING = Difference(changed=False, growing=0)


@pytest.fixture
def tree(tmp_path):
    for name in ("one.gguf", "two.gguf"):
        write(tmp_path / name, b"x", OLD)
    return tmp_path


def write(path, content: bytes, mtime_ns: int) -> None:
    path.write_bytes(content)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def difference(tree, baseline, now_ns=NOW) -> Difference:
    return compare(list_files([str(tree)], platform="linux"), baseline, now_ns)


@pytest.fixture
def baseline(tree):
    return baseline_of(list_files([str(tree)], platform="linux"))


def test_nothing(tree, baseline):
    assert difference(tree, baseline) == NOTHING


def test_files_that_are_no_models(tree, baseline):
    (tree / "notes.txt").write_text("x")
    (tree / "half.gguf.part").write_text("x")
    assert difference(tree, baseline) == NOTHING


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: write(tree / "three.gguf", b"x", OLD),
        lambda tree: write(tree / "one.gguf", b"xy", OLD),
        lambda tree: write(tree / "one.gguf", b"x", OLD + 1),
        lambda tree: (tree / "one.gguf").unlink(),
        lambda tree: (tree / "one.gguf").rename(tree / "renamed.gguf"),
        lambda tree: tree.rename(tree.with_name("away")),
        lambda tree: (tree / "broken.gguf").symlink_to(tree / "nowhere"),
    ],
    ids=["added", "longer", "younger", "removed", "renamed", "root gone", "broken link"],
)
def test_one_thing(tree, baseline, change):
    change(tree)
    assert difference(tree, baseline) == Difference(changed=True, growing=0)


@pytest.mark.parametrize("name", ["three.gguf", "one.gguf"])
@pytest.mark.parametrize("age_seconds", [0, QUIET_SECONDS - 1, 1 - QUIET_SECONDS])
def test_a_file_that_is_being_written_waits(tree, baseline, name, age_seconds):
    write(tree / name, b"xyz", NOW - age_seconds * SECOND)
    assert difference(tree, baseline) == Difference(changed=False, growing=1)


@pytest.mark.parametrize("age_seconds", [QUIET_SECONDS, -QUIET_SECONDS])
def test_and_counts_when_it_has_come_to_rest(tree, baseline, age_seconds):
    write(tree / "three.gguf", b"xyz", NOW - age_seconds * SECOND)
    assert difference(tree, baseline) == Difference(changed=True, growing=0)


def test_a_file_that_is_being_written_hides_no_other(tree, baseline):
    write(tree / "three.gguf", b"xyz", NOW)
    write(tree / "four.gguf", b"xyz", OLD)
    assert difference(tree, baseline) == Difference(changed=True, growing=1)


def test_a_fresh_file_that_the_scan_has_seen_is_nothing_new(tree):
    write(tree / "three.gguf", b"xyz", NOW)
    baseline = baseline_of(list_files([str(tree)], platform="linux"))
    assert difference(tree, baseline) == NOTHING
    assert difference(tree, baseline, NOW + 60 * SECOND) == NOTHING


def test_another_set_of_roots(tree, baseline, tmp_path_factory):
    other = str(tmp_path_factory.mktemp("other"))
    listing = list_files([str(tree), other], platform="linux")
    assert compare(listing, baseline, NOW).changed
