"""Adapters of the area `router-ini`: the presets of llama.cpp's own router."""

from __future__ import annotations

from typing import Any

from models_app.core.errors import ExportError
from models_app.core.export.document import Document, Entry
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import reading, render, router
from models_app.core.export.presets.check import findings_of, verify
from models_app.core.export.presets.convert import convert
from models_app.core.export.presets.grammar import PresetSyntaxError
from models_app.core.export.presets.writing import (
    Unwritable,
    alias_text,
    comment_text,
    id_text,
    json_text,
    served_id,
    value_text,
)
from models_app.core.launch.tokens import join_tokens
from tests.adapters.given import Answer, Given, keywords

WRITERS = {"value": value_text, "json": json_text, "id": id_text, "alias": alias_text, "comment": comment_text}
EXECUTABLE = "llama-server"


def ini_escape(kind: str, text: str) -> Answer:
    try:
        written = WRITERS[kind](text)
    except Unwritable:
        return {"refused": True}
    return {"refused": False, "text": written, "served": served_id(text) if kind == "id" else None}


def entry_of(given: Given) -> Entry:
    unknown = given.keys() - {"id", "class", "argv", "entry"}
    if unknown:
        raise KeyError(f"unknown fields of an entry: {sorted(unknown)}")
    return Entry(
        id=given["id"],
        command=(EXECUTABLE, join_tokens(given["argv"])),
        fields=given["entry"],
        model_class=given["class"],
    )


def converted(entries: list[Given], top: Given | None = None) -> tuple[Document, str]:
    document = Document(
        dialect="quartermaster", header=("x",), top=top or {}, models=tuple(entry_of(one) for one in entries)
    )
    result = convert(document, Options(router_executable=EXECUTABLE))
    text = render.render(result)
    blocking = [item for item in verify(result, text) if item.severity == "block"]
    assert not blocking, blocking
    return result, text


def ini_entry(**given: Any) -> Answer:
    document, text = converted([given])
    comments = [line for line in text.splitlines() if line.startswith(";")]
    if not document.entries:
        return {"emitted": False, "comments": comments}
    [section] = document.entries
    return {"emitted": True, "keys": dict(section.fields), "comments": comments}


def ini_document(entries: list[Given], top: Given | None = None) -> Answer:
    try:
        document, text = converted(entries, top)
    except ExportError:
        return {"refused": True}
    start = next(line for line in text.splitlines() if line.startswith("; RUN:")).split()
    aliases = {entry.id: _names(entry.fields.get("alias", "")) for entry in document.entries}
    return {
        "refused": False,
        "sections": [entry.id for entry in document.entries],
        "skipped": [item.id for item in document.skipped],
        "aliases": aliases,
        "models_max": int(start[start.index("--models-max") + 1]),
        "text": text,
    }


def _names(text: str) -> list[str]:
    return text.split(",") if text else []


def ini_models_max(est_gb: list[float | None], budget_gb: float) -> Answer:
    return {"models_max": router.models_max(est_gb, budget_gb)}


def _bytes(text: str | None, raw_hex: str | None) -> bytes:
    return text.encode() if text is not None else bytes.fromhex(raw_hex or "")


def ini_parse(text: str | None = None, raw_hex: str | None = None) -> Answer:
    try:
        presets = reading.read(reading.decode(_bytes(text, raw_hex)))
    except (reading.PresetError, PresetSyntaxError):
        return {"loads": False}
    return {
        "loads": not reading.refusal_at_start(presets),
        "models": {name: reading.passed(given) for name, given in presets.models.items()},
        "aliases": {name: list(presets.aliases(name)) for name in presets.models},
    }


def ini_parse_finding(text: str | None = None, raw_hex: str | None = None) -> Answer:
    found = findings_of(_bytes(text, raw_hex))
    return {"findings": [_finding(item) for item in found]}


def _finding(item: Any) -> Answer:
    return {
        "rule": item.rule,
        "severity": item.severity,
        "section": item.section or None,
        "key": item.key or None,
    }


def ini_evict(
    models_max: int,
    loaded: list[str],
    target: str,
    by: str,
    busy: list[str] | None = None,
    loading: list[str] | None = None,
) -> Answer:
    found = router.evict(
        models_max, loaded, target, busy=busy or (), loading=loading or (), by_call={"load": True, "request": False}[by]
    )
    return {"evict": list(found.evict), "waits": found.waits, "status": found.status}


def ini_reload(old: str, new: str | None, running: list[str]) -> Answer:
    found = router.reload(old, new, running)
    return {
        "status": found.status,
        "stopped": list(found.stopped),
        "listed": list(found.listed),
        "loads_hang": found.loads_hang,
    }


ADAPTERS = {
    "ini_escape": keywords(ini_escape),
    "ini_entry": keywords(ini_entry),
    "ini_document": keywords(ini_document),
    "ini_models_max": keywords(ini_models_max),
    "ini_parse": keywords(ini_parse),
    "ini_parse_finding": keywords(ini_parse_finding),
    "ini_evict": keywords(ini_evict),
    "ini_reload": keywords(ini_reload),
}
