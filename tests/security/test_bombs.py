"""Files and requests that are small to send and large to take in: refused within seconds, in bounded memory."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import struct
import time
import tracemalloc
import zipfile
import zlib

import pytest
from django.test import Client

from models_app.core.errors import ExportError
from models_app.core.export.load import LoadError, load
from models_app.core.export.presets import check as presets
from models_app.core.settings_files.archive import texts_of_zip, zip_of
from quartermaster_site.access.models import ApiToken
from tests.security.conftest import Visit

SECONDS = 8
"""Of the processor, not of the clock: machines that test are busy."""
MIB = 1 << 20
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
MERGES = "m0: &m0 {k: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 30))
YAML = {
    "aliases of aliases": LAUGHS,
    "merges of merges": MERGES,
    "an alias of itself": "a: &a [*a]\n",
    "a thousand aliases of a thousand values": f"a: &a [{'x, ' * 900}x]\nb: [{'*a, ' * 900}*a]\n",
    "a million brackets": "[" * 1_000_000,
    "a million braces": "{a: " * 500_000,
    "a million dashes": "- " * 500_000,
    "a deep block": "".join(f"{' ' * depth}a:\n" for depth in range(3000)),
    "too many keys": "".join(f"k{number}: 1\n" for number in range(300_000)),
    "a million of the same key": "k: 1\n" * 1_000_000,
    "a key of 10 MiB": "k" * 10 * MIB + ": 1\n",
    "a value of 17 MiB": "k: " + "x" * 17 * MIB,
    "an open quote": 'k: "' + "x" * 4 * MIB,
    "a key that is a list": "? [a]\n: 1\n",
    "python's tags": "!!python/object/apply:os.system [id]\n",
    "a tag of one's own": "%TAG ! tag:evil.example,2026:\n---\n!x y\n",
    "many directives": "".join(f"%TAG !{number}! tag:x,2026:\n" for number in range(5_000)) + "---\nx\n",
    "a number of a million digits": "k: " + "9" * 1_000_000,
    "sixties": "k: " + "1:" * 100_000 + "1",
    "many documents": "---\nx\n" * 100_000,
    "comments alone": "# x\n" * 500_000,
    "blanks alone": " " * 4 * MIB + "\n" + "\t" * MIB,
    "NULs": "\0" * MIB,
}
TAKEN = {"merges of merges", "many directives", "comments alone", "a number of a million digits", "sixties"}
"""Large, and no trouble: these may be read."""


class Bounded:
    """Work that must end soon and keep little."""

    def __init__(self, most_mib: int = 0) -> None:
        self.most_mib = most_mib

    def __enter__(self) -> None:
        self.started = time.process_time()
        if self.most_mib:
            tracemalloc.start()

    def __exit__(self, *failure: object) -> None:
        if self.most_mib:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < self.most_mib * MIB
        assert time.process_time() - self.started < SECONDS


@pytest.mark.parametrize("name", YAML)
def test_yaml(name):
    with Bounded():
        if name in TAKEN:
            load(YAML[name])
            return
        with pytest.raises(LoadError) as refused:
            load(YAML[name])
        assert len(str(refused.value)) < 1000, "the message repeats the file"


@pytest.mark.parametrize(
    "text",
    [
        "[" * MIB,
        "[a]\n" * 60_000,
        "k = " + " " * 4 * MIB + "x",
        "k" * 4 * MIB,
        "[a\n" * MIB,
        ";" * 4 * MIB,
        "\r" * MIB,
        "a = 1\n" * 60_000,
    ],
    ids=["brackets", "headers", "blanks", "a key", "open headers", "comments", "returns", "the same key"],
)
def test_presets(text):
    with Bounded():
        presets.check_bytes(text.encode())


def packed(name: str, kind: int, size_mib: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive, archive.open(name, "w") as entry:
        for _ in range(size_mib):
            entry.write(bytes(MIB))
    return stream.getvalue()


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["zip", "bz2", "lzma"]
)
def test_a_zip_that_grows_by_a_thousand(kind):
    """Also by compressors that give a block whole, however large it is."""
    data = packed("generate.yaml", kind, 64)
    assert len(data) < MIB
    with Bounded(most_mib=12), pytest.raises(ExportError):
        texts_of_zip(data, ["generate.yaml"], MIB)


def broken(data: bytes, where: bytes, by: int, new: bytes) -> bytes:
    place = data.index(where) + by
    return data[:place] + new + data[place + len(new) :]


LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
TINY = zip_of({"generate.yaml": "x" * 99})
ZIPS = {
    "says lzma": broken(broken(TINY, CENTRAL, 10, b"\x0e\0"), LOCAL, 8, b"\x0e\0"),
    "says bzip2": broken(broken(TINY, CENTRAL, 10, b"\x0c\0"), LOCAL, 8, b"\x0c\0"),
    "says deflate": broken(broken(TINY, CENTRAL, 10, b"\x08\0"), LOCAL, 8, b"\x08\0"),
    "says deflate64": broken(broken(TINY, CENTRAL, 10, b"\x09\0"), LOCAL, 8, b"\x09\0"),
    "says encrypted": broken(broken(TINY, CENTRAL, 8, b"\x01\0"), LOCAL, 6, b"\x01\0"),
    "claims four gigabytes": broken(TINY, CENTRAL, 24, b"\xff\xff\xff\xfe"),
    "names an offset outside": broken(TINY, CENTRAL, 42, b"\xff\xff\xff\x7f"),
    "another checksum": broken(TINY, CENTRAL, 16, b"\0\0\0\0"),
    "cut": TINY[:-30],
    "the end alone": b"PK\x03\x04" + b"PK\x05\x06" + bytes(18),
    "more than ten thousand entries": zip_of({f"{number}": "" for number in range(10_001)}),
    "twice the name": zip_of({"a/generate.yaml": "x", "b/generate.yaml": "y"}),
    "lzma of a huge dictionary": b"",
}


HARMLESS = {"claims four gigabytes", "the end alone"}


@pytest.mark.parametrize("name", ZIPS)
def test_zips_that_lie(name):
    data = ZIPS[name]
    if name == "lzma of a huge dictionary":
        properties = struct.pack("<BBHBI", 9, 4, 5, 0x5D, 0xFFFFFFFF)
        data = packed("generate.yaml", zipfile.ZIP_LZMA, 1).replace(properties[4:5], properties[4:9], 1)
    with Bounded(most_mib=64):
        if name in HARMLESS:
            assert texts_of_zip(data, ["generate.yaml"], MIB) in ({}, {"generate.yaml": b"x" * 99})
        else:
            with pytest.raises(ExportError):
                texts_of_zip(data, ["generate.yaml"], MIB)


def test_a_zip_writes_nothing_and_names_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = zip_of({"../../generate.yaml": "a", "/etc/passwd": "b", "C:\\x\\sidecar.json": "c", "~/x": "d"})
    assert texts_of_zip(data, ["generate.yaml", "sidecar.json"], MIB) == {"generate.yaml": b"a", "sidecar.json": b"c"}
    assert not list(tmp_path.iterdir())


@pytest.fixture
def admin(visit: Visit) -> Client:
    return visit("admin", raise_request_exception=False)


def upload(client: Client, data: bytes, name: str = "config.yaml", kind: str = "auto", **more: object) -> object:
    stream = io.BytesIO(data)
    stream.name = name
    return client.post("/import/on/local/", {"kind": kind, "file": stream}, **more)


def test_uploads_over_the_limit(admin):
    with Bounded():
        assert upload(admin, b"#" * 17 * MIB).status_code == 422
        assert upload(admin, b"#" * 23 * MIB).status_code == 413
        claimed = {"CONTENT_LENGTH": "9" * 30}
        assert admin.post("/account/", b"", "application/x-www-form-urlencoded", **claimed).status_code == 413


@pytest.mark.parametrize("packer", [zlib.compress, bz2.compress, lzma.compress], ids=["zlib", "bz2", "lzma"])
@pytest.mark.parametrize("kind", ["auto", "settings"])
def test_nothing_else_is_unpacked(admin, packer, kind):
    """Neither by its first bytes nor by what a header says."""
    bomb = packer(bytes(16 * MIB))
    with Bounded():
        assert upload(admin, bomb, kind=kind).status_code == 422
        assert upload(admin, bomb, kind=kind, headers={"Content-Encoding": "gzip"}).status_code == 422


@pytest.mark.parametrize("name", ["says lzma", "says encrypted", "another checksum", "cut", "the end alone"])
def test_a_zip_that_lies_is_a_message(admin, name):
    assert upload(admin, ZIPS[name], "x.zip", "settings").status_code == 422


def test_forms_of_too_many_parts(admin):
    with Bounded():
        assert admin.post("/account/", {f"f{number}": "x" for number in range(4001)}).status_code == 413
        many = "&".join(f"f{number}=x" for number in range(200_000))
        answer = admin.post("/account/", many, "application/x-www-form-urlencoded")
        assert answer.status_code == 413
        files = {f"f{number}": io.BytesIO(b"x") for number in range(101)}
        assert admin.post("/import/on/local/", files).status_code in (400, 413)


JSON = {
    "brackets": "[" * 200_000,
    "braces": '{"values": ' * 100_000,
    "closed brackets": '{"values": {"ctx": ' + "[" * 50_000 + "]" * 50_000 + "}}",
    "digits": '{"values": {"ctx": ' + "9" * 1_000_000 + "}}",
    "an exponent": '{"values": {"ctx": 1e999999999}}',
    "no number": '{"values": {"ctx": NaN}}',
    "keys": json.dumps({"values": dict.fromkeys(map(str, range(100_000)), 1)}),
    "a long key": json.dumps({"values": {"k" * MIB: 1}}),
    "a long value": json.dumps({"values": {"ctx": "9" * MIB}}),
    "a half of a pair": '{"values": {"ctx": "\\ud800"}}',
    "NUL": '{"values": {"ctx": "\\u0000"}}',
    "no text": b"\xff\xfe\x00",
    "nothing": "",
}


@pytest.mark.parametrize("name", JSON)
def test_json(db, tree, name, visit):
    token = secret_of(visit)
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {token}"}
    with Bounded():
        path = f"/api/v1/models/{tree['model']}/preview/"
        answer = client.post(path, JSON[name], "application/json", headers=headers)
    assert answer.status_code in (400, 422), answer.content[:200]
    assert len(answer.content) < 100_000, "the answer repeats the question"


def secret_of(visit: Visit) -> str:
    answer = visit("admin").post("/account/tokens/", {"name": "x", "days": "30"})
    assert ApiToken.objects.exists()
    return answer.context["secret"]
