"""Path traversal: what people type, upload or link to leads nowhere but to where it may."""

from __future__ import annotations

import io
import os

import pytest

from gpus_app.core.errors import QuartermasterError
from gpus_app.models import Backend, Host
from models_app import backend_probing, target_file
from models_app.browsing import list_folder, sight
from models_app.core.discovery.walk import list_files
from models_app.import_file import read_text
from models_app.models import ImportBatch, Root, Voice
from models_app.target_look import found_at
from quartermaster_site.jobs.models import Job
from tests.speech_files import wav

OUT = (
    "..",
    "../",
    "../secret",
    "in/../../secret",
    "in/./../../secret",
    "in//..//..//secret",
    "link",
    "link/",
    "link/deeper",
    "in/up",
    "in/../link",
    "..\\secret",
    "%2e%2e/secret",
    "in\x00/../../secret",
    "in/\udcff",
    "x" * 5000,
    "x/" * 3000,
)
"""Below the permitted folder, and out of it."""
ELSEWHERE = (
    "/",
    "/etc",
    "//etc",
    "/proc/self/environ",
    "~",
    "~root",
    "$HOME",
    "",
    ".",
    "\\\\server\\share",
    "C:\\",
    "file:///etc",
)


@pytest.fixture
def permitted(tmp_path):
    """A folder that may be looked into, beside one that may not; links lead out of it."""
    inside, secret = tmp_path / "permitted", tmp_path / "secret"
    (inside / "in").mkdir(parents=True)
    (secret / "deeper").mkdir(parents=True)
    (secret / "zqsecret.yaml").write_text("zqsecret")
    (secret / "zqserver").write_text("#!/bin/sh\necho zqsecret\n")
    (secret / "zqserver").chmod(0o755)
    (inside / "link").symlink_to(secret)
    (inside / "in" / "up").symlink_to("../../secret")
    (inside / "in" / "config.yaml").symlink_to("../../secret/zqsecret.yaml")
    (inside / "server").symlink_to(secret / "zqserver")
    (tmp_path / "permitted-too").mkdir()
    return inside


def places(permitted):
    return [f"{permitted}/{path}" for path in OUT] + [*ELSEWHERE, f"{permitted}-too"]


def test_the_folder_browser_stays_inside(permitted):
    for path in places(permitted):
        try:
            found = list_folder(path, [str(permitted)])
        except QuartermasterError:
            continue
        names = {entry["name"] for entry in found["entries"]}
        below = os.path.relpath(os.path.realpath(permitted), found["path"]).split(os.sep)[0]
        assert found["path"].startswith(str(permitted)) or names <= {below}, path
        assert not names & {"zqsecret.yaml", "deeper"}, path


def test_it_goes_in_all_the_same(permitted):
    assert {entry["name"] for entry in list_folder(f"{permitted}/in", [str(permitted)])["entries"]}
    with pytest.raises(QuartermasterError):
        list_folder(f"{permitted}/nothing/..\0", [str(permitted)])


def test_a_file_is_imported_from_inside_alone(permitted):
    tried = [*places(permitted), f"{permitted}/in/config.yaml", f"{permitted}/link/zqsecret.yaml"]
    for path in (*tried, *(f"{path}/zqsecret.yaml" for path in places(permitted))):
        with pytest.raises(QuartermasterError):
            read_text(path, (str(permitted),))


def test_a_scan_stays_inside(permitted):
    """Of what lies outside not even its being there is told."""
    secret = permitted.parent / "secret"
    for folder in (permitted, permitted / "in", secret, secret / "deeper"):
        (folder / "model.gguf").write_bytes(b"GGUF")
    (permitted / "in" / "linked.gguf").symlink_to(secret / "model.gguf")
    (permitted / "again.gguf").symlink_to("in/model.gguf")
    roots = [*places(permitted), str(secret), str(permitted)]
    listing = list_files(
        [path for path in roots if "\0" not in path], platform="linux", may_see=sight([str(permitted)])
    )
    found = {entry.path for entry in listing.files}
    assert found == {f"{permitted}/{name}" for name in ("model.gguf", "again.gguf", "in/model.gguf")}
    assert {str(secret), f"{permitted}/link", f"{permitted}/in/up"} <= set(listing.unread)
    assert f"{permitted}/in/linked.gguf" in listing.unread_files
    outside = {finding.text for finding in listing.findings if finding.path in (str(secret), f"{secret}/nothing")}
    assert len(outside) == 1, outside


def test_adapters_of_a_text_lie_inside(permitted):
    (permitted / "lora").mkdir()
    target_file.require_seen([str(permitted / "lora")], (str(permitted),))
    target_file.require_seen(["/etc"], ())
    ways_out = ("..", "../secret", "in/../../secret", "link", "link/deeper", "in/up", "in/../link", "in\0", "../x")
    for path in (*(f"{permitted}/{way}" for way in ways_out), f"{permitted}-too", "/etc", "~", ""):
        with pytest.raises(QuartermasterError):
            target_file.require_seen([path], (str(permitted),))


def test_a_program_is_run_from_inside_alone(permitted):
    started = []
    prober = backend_probing.Prober(lambda command, seconds: started.append(command), (str(permitted),))
    secret = permitted.parent / "secret" / "zqserver"
    tried = (secret, permitted / "server", permitted / "link" / "zqserver", permitted / ".." / "secret" / "zqserver")
    for path in (*map(str, tried), *places(permitted), "zqserver", "./zqserver", "sh -c id", f"{permitted}\0"):
        assert prober.probe(path, fresh=True)["problem"], path
    assert not started


def test_files_beside_the_config_stay_beside_it(tmp_path):
    folder = tmp_path / "router"
    folder.mkdir()
    text = "x"
    digest = target_file.hashlib.sha256(text.encode()).hexdigest()
    for name in ("../x", "a/../../x", "/x", "..", "", ".", "a\\..\\x", "C:x", "a:b", "x\0", "a" * 5000):
        with pytest.raises(QuartermasterError):
            target_file.write_target(
                str(folder / "config.yaml"),
                text,
                sha256=digest,
                expected_sha256="",
                adopt=False,
                companions=[(name, "y")],
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["router"]
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "path", ["x", "../x", "~/x", "$HOME/x", "x\0", "/no/such/folder/x", "/dev/null/x", "/" + "x" * 5000]
)
def test_a_target_is_a_whole_path_of_a_file(path):
    digest = target_file.hashlib.sha256(b"x").hexdigest()
    with pytest.raises(QuartermasterError):
        target_file.write_target(path, "x", sha256=digest, expected_sha256="", adopt=True)


def test_other_files_of_a_host_are_neither_read_nor_written(tmp_path, permitted, monkeypatch):
    """Whoever sets the target of a host gets neither its keys to see nor its start files to fill."""
    monkeypatch.setenv("QM_TARGET_ROOTS", str(permitted))
    (permitted / "key").write_text("zqsecret")
    (permitted / "key.yaml").symlink_to("key")
    outside = permitted.parent / "secret" / "zqsecret.yaml"
    reached = (
        permitted / "key",
        permitted / "key.yaml",
        outside,
        permitted / "in" / "config.yaml",
        permitted / "x\0.yaml",
    )
    for path in map(str, reached):
        found = found_at(path, ())
        assert found["problem"], path
        assert not found["text"], path
        with pytest.raises(QuartermasterError):
            target_file.require_place(path, (str(permitted),))
    (permitted / "config.yaml").write_text("models: {}")
    assert found_at(str(permitted / "config.yaml"), ())["text"] == "models: {}"


TYPED = (
    "..",
    "../x",
    "x",
    "~/models",
    "$HOME",
    "\\\\server\\share",
    "C:\\models",
    "/x\0y",
    "/x\ny",
    "/x\u202ey",
    "/" + "x" * 1100,
)
FIELDS = {
    "a folder": ("/hosts/local/folders/add/", "path", {}),
    "a folder to look into": ("/hosts/local/folders/browse/", "path", {"for": "folder", "back": "/hosts/"}),
    "a program": ("/hosts/local/backends/", "path", {"kind": "llama"}),
    "the router's file": ("/config/local/target/", "path", {"dialect": "llama-swap"}),
    "a file to import": ("/import/on/local/", "path", {"kind": "auto"}),
}


@pytest.mark.parametrize("field", FIELDS)
def test_paths_that_are_typed(visit, tree, field):
    """Refused beside the field. Nothing is stored, no host is asked."""
    client, (address, name, data) = visit("admin", raise_request_exception=False), FIELDS[field]
    before = (Root.objects.count(), Backend.objects.count(), Job.objects.count(), ImportBatch.objects.count())
    for path in TYPED:
        assert client.post(address, {**data, name: path}).status_code == 422, path
    assert before == (Root.objects.count(), Backend.objects.count(), Job.objects.count(), ImportBatch.objects.count())
    assert Host.objects.get(slug="local").publish_path == "/srv/config.yaml"


def test_a_folder_is_stored_without_its_detours(visit, tree):
    visit("admin").post("/hosts/local/folders/add/", {"path": "/srv/./a/../b//"})
    assert Root.objects.filter(path="/srv/b").exists()


UPLOADED = (
    "../../x.yaml",
    "/etc/passwd",
    "..\\..\\x.yaml",
    "C:\\x.yaml",
    "x\0.yaml",
    "x\r\ny.yaml",
    "<zq>.yaml",
    "x" * 290,
)


@pytest.mark.parametrize("name", UPLOADED, ids=repr)
def test_names_of_uploads_are_names(visit, tree, name, tmp_path, monkeypatch):
    """What was uploaded is kept in the database; its name is text."""
    monkeypatch.chdir(tmp_path)
    stream = io.BytesIO(b"models: {}\n")
    stream.name = name
    answer = visit("editor", raise_request_exception=False).post("/import/on/local/", {"kind": "auto", "file": stream})
    assert answer.status_code in (302, 422)
    for batch in ImportBatch.objects.filter(state="reading"):
        assert "/" not in batch.name
        assert "\\" not in batch.name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "a\\b", "/x", "x\0", "~", "é", "", " ", "x" * 200])
def test_names_of_voices_are_names(visit, tree, name):
    """They become parts of requests and of file names on a host."""
    before = Voice.objects.count()
    stream = io.BytesIO(wav())
    stream.name = "x.wav"
    client = visit("editor", raise_request_exception=False)
    assert client.post("/voices/local/new/", {"name": name, "wav": stream}).status_code == 422
    assert Voice.objects.count() == before


DOWNLOADS = (
    "..",
    "../overrides.csv",
    "..%2foverrides.csv",
    "overrides.csv%00",
    "%2e%2e%2fx",
    "/etc/passwd",
    "x.yaml",
    "OVERRIDES.CSV",
)


@pytest.mark.parametrize("name", DOWNLOADS)
def test_downloads_are_those_of_the_list(visit, tree, name):
    answer = visit("admin").get(f"/export/local/{name}")
    assert answer.status_code in (302, 404)
    assert "Content-Disposition" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/static/../manage.py", "/static/..%2fmanage.py", "/static/%2e%2e/manage.py", "/static//etc/passwd"]
)
def test_static_files_are_those_of_the_folder(visit, tree, path):
    answer = visit("admin").get(path)
    assert answer.status_code in (302, 404)
    assert b"DJANGO_SETTINGS_MODULE" not in answer.content
