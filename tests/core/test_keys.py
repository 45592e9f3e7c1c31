"""API keys in texts: who may call what, placeholders, and the bytes that are written."""

from __future__ import annotations

import pytest

from models_app.core.errors import ExportError
from models_app.core.export import llama_swap, render
from models_app.core.export.document import Document, Entry
from models_app.core.export.keys import (
    ExportKey,
    Served,
    expanded,
    key_fields,
    numbers_in,
    resolved,
    with_key_fields,
    with_keys,
    with_withheld,
)
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets.convert import convert as to_presets
from models_app.core.export.stamp import body_of, read_stamp, sha256_of, stamped, unstamped

FULL = ExportKey("<key-1>")
FILE = ExportKey("<key-2>", everything=False, files=frozenset({"/m/a.gguf"}))
ONE = ExportKey("<key-3>", everything=False, ids=frozenset({"b"}))
GONE = ExportKey("<key-4>", everything=False, files=frozenset({"/m/gone.gguf"}))


def entry(name, path, **fields):
    return Entry(name, ("llama-server -m x --port ${PORT}",), fields, model_class="llm", base=name, path=path)


DOCUMENT = Document(
    "quartermaster",
    ("Quartermaster config - generated now", "figures", "edits"),
    top={"healthCheckTimeout": 60, "promptEnhancers": {"x": {"name": "X"}}},
    models=(
        entry("a", "/m/a.gguf", aliases=("Alpha",)),
        entry("a-32k", "/m/a.gguf"),
        entry("b", "/m/b.gguf"),
        entry("b-vision", "/m/b.gguf"),
    ),
)
SERVED = [Served("a", "/m/a.gguf", ("Alpha",)), Served("a-32k", "/m/a.gguf"), Served("b", "/m/b.gguf")]


def test_a_file_means_all_its_profiles_and_names():
    assert expanded(FILE, SERVED) == ["a", "Alpha", "a-32k"]
    assert expanded(ONE, SERVED) == ["b"], "a single profile stays single"
    assert expanded(GONE, SERVED) == []


def test_a_key_that_reaches_nothing_is_never_written():
    fields = key_fields([FULL, FILE, ONE, GONE], SERVED, scopes=True)
    assert fields == {
        "apiKeys": ["<key-1>", "<key-2>", "<key-3>"],
        "apiKeyModels": {"<key-2>": ["a", "Alpha", "a-32k"], "<key-3>": ["b"]},
    }
    assert key_fields([GONE], SERVED, scopes=True) == {}


def test_limited_keys_are_withheld_where_a_router_cannot_limit():
    assert key_fields([FULL, FILE], SERVED, scopes=False) == {"apiKeys": ["<key-1>"]}
    assert key_fields([FILE], SERVED, scopes=False) == {}


def test_a_document_gets_them_in_their_place():
    document = with_keys(DOCUMENT, [FULL, FILE])
    assert list(document.top) == ["healthCheckTimeout", "apiKeys", "apiKeyModels", "promptEnhancers"]
    assert with_keys(document, [FULL]).top["apiKeys"] == ["<key-1>"]
    assert "apiKeyModels" not in with_keys(document, [FULL]).top
    assert with_keys(DOCUMENT, []) is DOCUMENT


def test_llama_swap_gets_no_scopes_and_never_opens_by_accident():
    swapped = llama_swap.convert(with_keys(DOCUMENT, [FULL, FILE]), Options())
    assert swapped.top["apiKeys"] == ["<key-1>"]
    assert "WARNING: 1 API key limited to some models was left out" in swapped.notes
    with pytest.raises(ExportError, match="open to everyone"):
        llama_swap.convert(with_keys(DOCUMENT, [FILE]), Options())


def test_presets_have_them_in_a_file_beside():
    document = to_presets(
        with_keys(DOCUMENT, [FULL, FILE]), Options(config_folder="/etc/llama", file_name="models.ini")
    )
    [companion] = document.companions
    assert (companion.name, companion.text) == ("models.keys", "<key-1>\n")
    assert "<key-" not in str(document.top)


@pytest.mark.parametrize("before", [(), (FULL,), (FULL, FILE)])
@pytest.mark.parametrize("after", [(FULL,), (FULL, FILE, ONE)])
@pytest.mark.parametrize("top", [{}, {"healthCheckTimeout": 60}, DOCUMENT.top])
def test_other_keys_in_a_text_are_what_rendering_would_have_written(before, after, top):
    from dataclasses import replace

    document = replace(DOCUMENT, top=top)
    old = render.render(with_keys(document, before))
    fields = key_fields(
        after, [Served(e.id, e.path, tuple(e.fields.get("aliases", ()))) for e in document.entries], scopes=True
    )
    assert with_key_fields(old, fields) == render.render(with_keys(document, after))
    assert with_key_fields(old, {}) == render.render(document)


def test_the_warning_about_withheld_keys_follows():
    text = "# a\n# b\n# c\n# NOTE: x\n\nmodels: {}\n"
    one = with_withheld(text, 1)
    assert one == "# a\n# b\n# c\n# NOTE: x\n# WARNING: 1 API key limited to some models was left out\n\nmodels: {}\n"
    assert "2 API keys limited to some models were" in with_withheld(one, 2)
    assert with_withheld(with_withheld(one, 2), 0) == text


def test_secrets_are_put_in_while_writing_and_the_stamp_vouches_for_the_result():
    text = stamped('# a\n# b\n# c\napiKeys:\n  - "<key-7>"\n', host="gpu-a", revision=12)
    assert numbers_in(text) == {7}
    written = resolved(text, {"<key-7>": "qm-secret", "<key-8>": "other"})
    stamp = read_stamp(written)
    assert (stamp.host, stamp.revision, stamp.intact) == ("gpu-a", 12, True)
    assert '"qm-secret"' in written
    assert "other" not in written
    assert resolved("models: {}\n", {}) == "models: {}\n"
    with pytest.raises(KeyError):
        resolved(text, {})


def test_a_stamp_can_be_taken_off():
    plain = "# a\n# b\n# c\nmodels: {}\n"
    text = stamped(plain, host="a", revision=1)
    assert unstamped(text) == plain
    assert sha256_of(body_of(unstamped(text))) == read_stamp(text).body_sha256
