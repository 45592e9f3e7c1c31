"""The walk over models folders: order, links, loops, unreadable places, hostile names, speed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from models_app.core.discovery import walk
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.roots import Root
from models_app.core.discovery.walk import list_files


def put(folder: Path, name: str, size_bytes: int = 10) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, size_bytes)
    return path


def listed(*roots: object, platform: str = "linux", **more: object) -> Listing:
    return list_files([root if isinstance(root, Root) else str(root) for root in roots], platform=platform, **more)


def names(listing: Listing, base: Path) -> list[str]:
    return [os.path.relpath(entry.path, base) for part in listing.roots for entry in part.files]


def kinds(listing: Listing) -> list[str]:
    return [finding.kind for finding in listing.findings]


def test_files_come_in_byte_order_with_their_sizes(tmp_path: Path) -> None:
    put(tmp_path, "b/x.gguf", 7)
    put(tmp_path, "B/y.gguf")
    put(tmp_path, "a.gguf", 3)
    put(tmp_path, ".hidden/z.gguf")
    listing = listed(tmp_path)
    assert names(listing, tmp_path) == ["a.gguf", ".hidden/z.gguf", "B/y.gguf", "b/x.gguf"]
    assert listing.total_bytes == 30
    assert listing.findings == ()
    assert not listing.stopped


def test_only_model_files_and_configs_are_kept(tmp_path: Path) -> None:
    for name in ("m.GGUF", "n.gguf.part", "readme.md", "config.json", "w.safetensors", "tokenizer.json", "s.ggml"):
        put(tmp_path, name)
    assert names(listed(tmp_path), tmp_path) == ["config.json", "m.GGUF", "s.ggml", "w.safetensors"]


def test_missing_root_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    put(tmp_path, "here/m.gguf")
    listing = listed(tmp_path / "gone", tmp_path / "here")
    assert kinds(listing) == ["root-missing"]
    assert listing.unread == (str(tmp_path / "gone"),)
    assert names(listing, tmp_path) == ["here/m.gguf"]


def test_a_file_as_root_is_a_finding(tmp_path: Path) -> None:
    listing = listed(put(tmp_path, "m.gguf"))
    assert kinds(listing) == ["root-missing"]


def test_no_root_means_an_empty_listing() -> None:
    assert listed("", "  ").roots == ()


def test_unreadable_folder_is_a_finding_and_the_rest_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "closed/m.gguf")
    put(tmp_path, "open/m.gguf")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(walk.os, "scandir", scandir)
    listing = listed(tmp_path)
    assert kinds(listing) == ["folder-unreadable"]
    assert "permission denied" in listing.findings[0].text
    assert listing.unread == (str(tmp_path / "closed"),)
    assert names(listing, tmp_path) == ["open/m.gguf"]


def test_folder_that_vanishes_during_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a/m.gguf")
    put(tmp_path, "b/m.gguf")

    def on_progress(seen: int, folder: str) -> None:
        if folder == str(tmp_path / "a"):
            (tmp_path / "b" / "m.gguf").unlink()
            (tmp_path / "b").rmdir()

    listing = listed(tmp_path, on_progress=on_progress)
    assert names(listing, tmp_path) == ["a/m.gguf"]
    assert kinds(listing) == ["folder-unreadable"]


def test_link_loop_ends_and_is_named(tmp_path: Path) -> None:
    put(tmp_path, "models/a/m.gguf")
    (tmp_path / "models/a/up").symlink_to(tmp_path / "models")
    listing = listed(tmp_path / "models")
    assert names(listing, tmp_path) == ["models/a/m.gguf"]
    assert kinds(listing) == ["folder-repeated"]
    assert "link back to a folder above" in listing.findings[0].text


def test_two_links_that_point_at_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    put(tmp_path, "m.gguf")
    assert names(listed(tmp_path), tmp_path) == ["m.gguf"]


def test_linked_folder_is_followed_once(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/m.gguf", 5)
    (tmp_path / "models").mkdir()
    for name in ("one", "two"):
        (tmp_path / "models" / name).symlink_to(tmp_path / "elsewhere")
    listing = listed(tmp_path / "models")
    assert names(listing, tmp_path) == ["models/one/m.gguf"]
    assert listing.roots[0].files[0].real_path == str(tmp_path / "elsewhere/m.gguf")


def test_a_root_that_is_a_link_is_walked(tmp_path: Path) -> None:
    put(tmp_path, "real/m.gguf")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(listed(tmp_path / "link"), tmp_path) == ["link/m.gguf"]


def test_linked_file_has_the_size_of_its_target(tmp_path: Path) -> None:
    blob = put(tmp_path, "blobs/abc", 4321)
    snapshot = tmp_path / "snapshots/m.gguf"
    snapshot.parent.mkdir()
    snapshot.symlink_to(blob)
    entry = listed(tmp_path).roots[0].files[0]
    assert (entry.size_bytes, entry.real_path) == (4321, str(blob))


def test_broken_link_and_odd_files_are_findings(tmp_path: Path) -> None:
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.gguf")
    listing = listed(tmp_path)
    assert [(finding.kind, Path(finding.path).name) for finding in listing.findings] == [
        ("file-unreadable", "gone.gguf"),
        ("file-unreadable", "pipe.gguf"),
    ]
    assert listing.file_count == 0


@pytest.mark.parametrize(
    "name",
    [
        "two\nlines.gguf",
        "tab\t.gguf",
        "back\\slash.gguf",
        "${PORT}.gguf",
        "a${x.gguf",
        "sep\u2028.gguf",
        "turned\u202efugg.exe.gguf",
        os.fsdecode(b"bad\xff.gguf"),
    ],
)
def test_hostile_names_are_reported_and_left_out(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    put(tmp_path, "good.gguf")
    listing = listed(tmp_path)
    assert names(listing, tmp_path) == ["good.gguf"]
    (finding,) = listing.findings
    assert finding.kind == "unsafe-name"
    finding.path.encode("utf-8")
    assert finding.path.isprintable()


def test_overlapping_roots_report_a_fault_once(tmp_path: Path) -> None:
    put(tmp_path, "inner/two\nlines.gguf")
    assert kinds(listed(tmp_path, tmp_path / "inner")) == ["unsafe-name"]


def test_hostile_folder_is_reported_and_not_entered(tmp_path: Path) -> None:
    put(tmp_path, "x${HOME}/m.gguf")
    listing = listed(tmp_path)
    assert kinds(listing) == ["unsafe-name"]
    assert listing.file_count == 0


@pytest.mark.parametrize("name", ["it's.gguf", 'say "hi".gguf', "模型 7b.gguf", "a$b {c}.gguf", "e\u0301.gguf"])
def test_quotes_blanks_and_other_scripts_are_fine(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    listing = listed(tmp_path)
    assert names(listing, tmp_path) == [name]
    assert listing.findings == ()


def test_findings_of_one_walk_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_FINDINGS", 5)
    for number in range(20):
        put(tmp_path, f"{number}\n.gguf")
    assert len(listed(tmp_path).findings) == 5


def test_fingerprint_changes_with_any_file(tmp_path: Path) -> None:
    path = put(tmp_path, "a/m.gguf")
    (tmp_path / "empty").mkdir()
    first = listed(tmp_path).fingerprint
    assert listed(tmp_path).fingerprint == first
    os.utime(path, ns=(1, 1))
    second = listed(tmp_path).fingerprint
    put(tmp_path, "b.gguf")
    third = listed(tmp_path).fingerprint
    assert len({first, second, third}) == 3


def test_stop_ends_the_walk_between_folders(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"{number}/m.gguf")
    calls = []

    def should_stop() -> bool:
        calls.append(1)
        return len(calls) > 3

    listing = listed(tmp_path, should_stop=should_stop)
    assert listing.stopped
    assert listing.file_count < 5


def test_roots_with_one_path_key_are_walked_once(tmp_path: Path) -> None:
    put(tmp_path, "m.gguf")
    listing = listed(Root(str(tmp_path)), Root(str(tmp_path), "image"))
    assert [part.root.category for part in listing.roots] == [""]


def test_package_bytes_count_every_file_below(tmp_path: Path) -> None:
    put(tmp_path, "T/pipeline.json", 100)
    put(tmp_path, "T/ckpts/a.safetensors", 1000)
    put(tmp_path, "T/deep/er/notes.txt", 10)
    listing = listed(tmp_path)
    assert dict(listing.package_bytes) == {str(tmp_path / "T"): 1110}


def test_cache_reference_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "models--o--r"
    put(folder, "snapshots/abc/m.gguf")
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text("abc\n")
    assert dict(listed(tmp_path).cache_commits) == {str(folder): "abc"}


def test_a_tree_deeper_than_the_call_stack_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depth = 1100
    monkeypatch.chdir(tmp_path)
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    Path("m.gguf").touch()
    try:
        assert listed(tmp_path).file_count == 1
    finally:
        os.unlink("m.gguf")
        for _ in range(depth):  # the way back: removing such a tree recursively overflows the stack of older Pythons
            os.chdir("..")
            os.rmdir("d")


@pytest.mark.slow
def test_ten_thousand_tiny_files_cost_little_more_than_a_plain_walk(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / str(folder)).mkdir()
        for number in range(100):
            (tmp_path / str(folder) / f"m{number}.gguf").touch()

    def plain() -> int:
        count = 0
        for folder, _, files in os.walk(tmp_path):
            for name in files:
                count += 1
                os.stat(os.path.join(folder, name))
        return count

    def seconds(call: object) -> float:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    assert plain() == listed(tmp_path).file_count == 10_000
    baseline = min(seconds(plain) for _ in range(3))
    ours = min(seconds(lambda: listed(tmp_path)) for _ in range(3))
    assert ours < 3 * baseline, f"{ours:.3f} s against {baseline:.3f} s"
