"""Adapters of the area `backends`: the registry of executables, devices of audio.cpp, and installing builds."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

from models_app.core.classes.tts import tts_engine
from models_app.core.install import addresses, builds, catalogue, naming, picking, unpack
from models_app.core.launch import audio_devices
from models_app.core.launch import backends as registry
from models_app.core.launch.executables import resolve_executable
from models_app.core.settings import BackendEntry
from tests.adapters import given as read
from tests.adapters.given import Answer, Given, keywords


def entries(rows: list[Given]) -> list[BackendEntry]:
    return [read.record(BackendEntry, row) for row in rows]


def kind_classes(kind: str) -> Answer:
    return {"classes": list(registry.kind_classes(kind))}


def resolve_backend(backends: list[Given], override: Given, **given: str) -> Answer:
    backend_class = given.pop("class")
    if given:
        raise KeyError(f"unknown input fields {sorted(given)}")
    found = registry.resolve_backend(entries(backends), read.override(override).backend, backend_class)
    return {"id": found.id if found else ""}


def class_taken(rows: list[Given], kind: str) -> Answer:
    return {"result": registry.class_taken(entries(rows), kind)}


def resolve_exe(**given: object) -> Answer:
    model_class = given.pop("class")
    settings, override = read.settings(given.pop("settings")), read.override(given.pop("override", None))
    header, file_name = read.header(given.pop("meta", None)), given.pop("file_name", "")
    assert not given, given
    engine = tts_engine(header.architecture, file_name) if model_class == "tts" else ""
    found = resolve_executable(settings, override.backend, model_class, engine)
    return {"exe": found.path, "kind": found.kind, "flavour": found.flavour}


def audiocpp_flavour(variant: str) -> Answer:
    return {"flavour": audio_devices.flavour_of(variant)}


def parse_audiocpp_devices(lines: list[str]) -> Answer:
    found = audio_devices.parse_devices(lines)
    return {"devices": [{"backend": d.backend, "index": d.index, "name": d.name, "kind": d.kind} for d in found]}


def audio_device(given: Given) -> audio_devices.AudioDevice:
    return audio_devices.AudioDevice(given["backend"], given["index"], "", given["kind"])


def pick_audiocpp_device(devices: list[Given], flavour: str) -> Answer:
    return {"index": audio_devices.pick_device([audio_device(one) for one in devices], flavour)}


def audiocpp_device_arg(exe: str, flavour: str, override: Given) -> Answer:
    """The binaries of these cases do not exist, so nothing is listed."""
    assert not os.path.exists(exe)
    pinned = read.override(override).audio_device
    return {"arg": " ".join(audio_devices.device_argument([], flavour, pinned))}


def component(component_id: str) -> catalogue.Component:
    found = catalogue.component_of(component_id)
    if found is None:
        raise KeyError(component_id)
    return found


def match_asset(assets: list[str], variant: str, os: str, **given: str) -> Answer:
    try:
        found = picking.match_asset(component(given.pop("component")), variant, os, assets)
    except picking.NoAsset:
        return {"error": True}
    return {"asset": found.asset, "extras": list(found.extras)}


def suggest_variant(gpus: list[str]) -> Answer:
    return {"variant": picking.suggest_variant(gpus)}


def default_variant(gpus: list[str], os: str, **given: str) -> Answer:
    return {"variant": picking.default_variant(component(given.pop("component")), gpus, os)}


def pick_release(releases: list[Given], tag: str, installable: list[str] | None, **given: bool) -> Answer:
    rows = [picking.Release(row["tag"], row.get("prerelease", False)) for row in releases]
    allowed = given.pop("allowPrerelease")
    return {"tag": picking.pick_release(rows, tag, allow_prerelease=allowed, installable=installable)}


def derive_rule(pick: str, assets: list[str]) -> Answer:
    """Which names the rule must and must not match is the expectation's to say (vector_compare)."""
    return {"rule": naming.derive_rule(pick, assets)}


def suggest_label(asset: str) -> Answer:
    return {"label": naming.suggest_label(asset)}


def validate_repo(repo: str) -> Answer:
    return {"result": addresses.validate_repo(repo)}


def parse_repo(text: str) -> Answer:
    return {"repo": addresses.parse_repo(text)}


def valid_asset_url(url: str) -> Answer:
    return {"result": addresses.valid_asset_url(url)}


def extract(archive: str, entries: list[Given]) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "archive", Path(folder) / "target"
        target.mkdir()
        source.write_bytes({"zip": zip_of, "tar.gz": tar_of}[archive](entries))
        try:
            unpack.unpack(str(source), str(target))
        except unpack.ArchiveError:
            return {"error": True}
        return {"resolvable": [entry["path"] for entry in entries if (target / entry["path"]).is_file()]}


def zip_of(entries: list[Given]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for entry in entries:
            info = zipfile.ZipInfo(entry["path"])
            link = entry["kind"] == "link"
            info.external_attr = ((stat.S_IFLNK if link else stat.S_IFREG) | 0o644) << 16
            package.writestr(info, entry["target"] if link else entry.get("text", ""))
    return buffer.getvalue()


def tar_of(entries: list[Given]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as bundle:
        for entry in entries:
            info = tarfile.TarInfo(entry["path"])
            data = entry.get("text", "").encode()
            if entry["kind"] == "link":
                info.type, info.linkname = tarfile.SYMTYPE, entry["target"]
            else:
                info.size = len(data)
            bundle.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def install_dir(**given: object) -> Answer:
    name, wanted = given["component"], given["builds"]
    found = [builds.install_dir("/r", name, one["tag"], one["variant"]) for one in wanted]
    parent = f"/r/bin/{name}"
    return {
        "distinct": len(set(found)),
        "all_inside": all(os.path.dirname(os.path.normpath(path)) == parent for path in found),
    }


def installed(files: dict[str, int], manifest: Given | None) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        for name, size in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
        if manifest is not None:
            (Path(folder) / builds.MANIFEST).write_text(json.dumps(manifest))
        build = builds.installed_build(folder)
    return {"count": int(build is not None), "size_at_least": build.size_bytes if build else 0}


def merge_sources(sources: list[Given]) -> Answer:
    tracked = [catalogue.Source(one["id"], one.get("repo", ""), one.get("kind", "")) for one in sources]
    merged = catalogue.merge_sources(tracked)
    builtin = {one.id for one in catalogue.COMPONENTS}
    return {
        "ids_added": [one.id for one in merged if one.id not in builtin],
        "repos": {one.id: one.repo for one in merged if one.id in builtin},
    }


ADAPTERS = {
    "kind_classes": keywords(kind_classes),
    "resolve_backend": keywords(resolve_backend),
    "class_taken": keywords(class_taken),
    "resolve_exe": keywords(resolve_exe),
    "audiocpp_flavour": keywords(audiocpp_flavour),
    "parse_audiocpp_devices": keywords(parse_audiocpp_devices),
    "pick_audiocpp_device": keywords(pick_audiocpp_device),
    "audiocpp_device_arg": keywords(audiocpp_device_arg),
    "match_asset": keywords(match_asset),
    "suggest_variant": keywords(suggest_variant),
    "default_variant": keywords(default_variant),
    "pick_release": keywords(pick_release),
    "derive_rule": keywords(derive_rule),
    "suggest_label": keywords(suggest_label),
    "validate_repo": keywords(validate_repo),
    "parse_repo": keywords(parse_repo),
    "valid_asset_url": keywords(valid_asset_url),
    "extract": keywords(extract),
    "install_dir": keywords(install_dir),
    "installed": keywords(installed),
    "merge_sources": keywords(merge_sources),
}
