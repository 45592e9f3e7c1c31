"""Installing builds: rules for names, addresses that may be used, and archives that try to get out."""

from __future__ import annotations

import io
import json
import stat
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.core.install import builds, catalogue, naming, picking
from models_app.core.install.addresses import parse_repo, valid_asset_url, validate_repo
from models_app.core.install.unpack import ArchiveError, unpack


def tar(folder, *entries):
    """Entries are (path, link target or None, bytes)."""
    path = folder / "build.tar.gz"
    with tarfile.open(path, "w:gz") as bundle:
        for name, link, data in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if link is None:
                info.size = len(data)
            else:
                info.type, info.linkname = tarfile.SYMTYPE, link
            bundle.addfile(info, io.BytesIO(data))
    return path


def unpacked(archive, folder):
    target = folder / "target"
    target.mkdir()
    unpack(str(archive), str(target))
    return target


def test_files_links_and_modes(tmp_path):
    target = unpacked(tar(tmp_path, ("b/lib.so", "lib.so.1", b""), ("b/lib.so.1", None, b"x")), tmp_path)
    assert (target / "b/lib.so").read_bytes() == b"x"
    assert (target / "b/lib.so.1").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    "entries",
    [
        [("/etc/passwd", None, b"x")],
        [("a/../../x", None, b"x")],
        [("C:x", None, b"x")],
        [("..\\x", None, b"x")],
        [("a", "/etc/passwd", b"")],
        [("a", "../outside", b"")],
        [("a", None, b"1"), ("a", None, b"2")],
        [("d", "z", b""), ("d/x", None, b"1")],
    ],
    ids=lambda entries: entries[-1][0],
)
def test_what_leaves_the_folder_is_refused(tmp_path, entries):
    (tmp_path / "out").write_text("secret")
    with pytest.raises(ArchiveError):
        unpacked(tar(tmp_path, *entries), tmp_path)
    outside = {path.name for path in tmp_path.iterdir()}
    assert outside == {"out", "build.tar.gz", "target"}


def test_a_link_through_a_link_stays_inside(tmp_path):
    (tmp_path / "out").write_text("secret")
    entries = [("z/.keep", None, b""), ("a/b/p", "../../z", b""), ("a/b/q", "p/../../out", b""), ("l", "l", b"")]
    target = unpacked(tar(tmp_path, *entries), tmp_path)
    assert not (target / "a/b/q").exists()


def test_a_device_in_an_archive_is_refused(tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as bundle:
        info = tarfile.TarInfo("null")
        info.type = tarfile.CHRTYPE
        bundle.addfile(info)
    with pytest.raises(ArchiveError, match="neither a file"):
        unpacked(path, tmp_path)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_an_error_not_a_crash(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    (folder / "x.zip").write_bytes(data)
    with pytest.raises(ArchiveError, match=r"x\.zip cannot be unpacked"):
        unpacked(folder / "x.zip", folder)


def test_a_broken_zip_is_an_error(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("a", b"abc" * 1000)
    raw = bytearray(path.read_bytes())
    raw[40] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(ArchiveError):
        unpacked(path, tmp_path)


@pytest.mark.parametrize("text", ["../../etc", "..", "", "a/b", "x" * 200, "v1\n", "\\\\srv", "ü"])
def test_folders_of_builds_stay_where_they_belong(text):
    for path in (builds.install_dir("/r", "c", text, "v"), builds.install_dir("/r", text, "1", text)):
        parts = path.split("/")
        assert parts[:3] == ["", "r", "bin"]
        assert len(parts) == 5
        assert all(0 < len(part) <= 64 and part.strip(".") for part in parts[3:])


@pytest.mark.parametrize("exe", ["../other", "/bin/sh", "missing", "", "link"])
def test_a_manifest_that_points_elsewhere_is_no_build(tmp_path, exe):
    folder = tmp_path / "build"
    folder.mkdir()
    (tmp_path / "other").write_text("x")
    (folder / "link").symlink_to(tmp_path / "other")
    manifest = {"component": "c", "version": "1", "variant": "v", "exe": exe}
    (folder / builds.MANIFEST).write_text(json.dumps(manifest))
    assert builds.installed_build(str(folder)) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"exe": 5}', "[" * 100_000])
def test_a_manifest_that_is_none(tmp_path, content):
    (tmp_path / builds.MANIFEST).write_text(content)
    assert builds.installed_build(str(tmp_path)) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://user@github.com/x",
        "https://github.com:8443/x",
        "https://github.com\\@evil.example/x",
        "https://githubusercontent.com/x",
        "https://[::1/x",
        "ftp://github.com/x",
        "https://xgithub.com/x",
    ],
)
def test_addresses_that_are_refused(url):
    assert not valid_asset_url(url)


def test_addresses_that_are_taken():
    assert valid_asset_url("https://github.com/o/r/releases/download/b1/x.zip")
    assert valid_asset_url("https://objects.githubusercontent.com/x?y=1")


@pytest.mark.parametrize("repo", ["a/b\n", "a/", "/b", "./b", "a b/c"])
def test_repositories_that_are_none(repo):
    assert not validate_repo(repo)


def test_pasted_repositories():
    assert parse_repo("https://www.github.com/a/b/releases/tag/v1") == "a/b"
    assert parse_repo("github.com/a/b.git") == "a/b"
    assert parse_repo("http://[") == ""


NAMES = st.lists(st.from_regex(r"[a-z]{1,4}(-(b\d{3}|win|linux|\d\.\d|x64)){0,4}\.zip", fullmatch=True), min_size=1)


@given(assets=NAMES)
def test_a_derived_rule_matches_its_pick_alone(assets):
    names = list(dict.fromkeys(assets))
    for pick in names:
        rule = naming.derive_rule(pick, names)
        assert [name for name in names if picking.re.fullmatch(rule, name)] == [pick]


def test_words_of_hexadecimal_letters_stay_words():
    assert not naming.is_version("deadbeef"[:4] + "face")
    assert naming.is_version("eb7f35c")


def test_the_closest_name_after_a_renaming():
    assert naming.closest_asset("llama-win-vulkan.zip", ["a.zip", "llama-bin-win-vulkan.zip"])[0].startswith("llama")
    assert naming.closest_asset("x", []) == ("", 0.0)


def test_every_component_knows_its_systems():
    for component in catalogue.COMPONENTS:
        assert component.manual or any(component.variants(system) for system in ("windows", "linux", "darwin"))
    assert picking.default_variant(catalogue.component_of("llama-server"), ["NVIDIA RTX 4090"], "linux") == "vulkan"
    assert picking.default_variant(catalogue.component_of("vllm"), [], "linux") == ""
    with pytest.raises(picking.NoAsset, match="own tools"):
        picking.match_asset(catalogue.component_of("vllm"), "any", "linux", [])
