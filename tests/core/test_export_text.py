"""Rendered text: quoting, blocks, comments, and that every reader gets back what was meant."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.core.export import load, render, scalars
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.router.load_rules import load_config

HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(list("\n\r\t\0\x7f\x85\u2028\u2029\ufeff\ufffe#:'\"\\{}[]&*!|>%@`-? ${}~") + ["\x1b", "\x07"]),
    ),
    max_size=60,
)
WORDS = st.text(alphabet=string.ascii_letters + string.digits + "-./=_", min_size=1, max_size=20)


def both_readers(text):
    """PyYAML in pure Python and libyaml: they refuse different things."""
    return [yaml.load(text, Loader=loader) for loader in (yaml.SafeLoader, yaml.CSafeLoader)]


@given(HOSTILE)
def test_a_quoted_text_reads_back_whole(text):
    for value in both_readers(f"k: {scalars.quote(text)}\n"):
        assert value == {"k": text}
    assert load.load(f"k: {scalars.quote(text)}\n").value == {"k": text}


@given(HOSTILE, st.integers(min_value=0, max_value=3))
def test_prose_survives_byte_for_byte(text, level):
    indent = 2 * level
    opening = "".join(f"{'  ' * step}a:\n" for step in range(level))
    block = f"{opening}{' ' * indent}p: {scalars.long_text(text, indent)}\n{' ' * indent}after: 1\n"
    for value in [*both_readers(block), load.load(block).value]:
        for _ in range(level):
            value = value["a"]
        assert value == {"p": text, "after": 1}


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "two\nlines",
        "two\nlines\n",
        "ends in a blank line\n\n",
        "  indented\nfirst",
        "\nstarts blank",
        "a\n\n\nb",
        "trailing blanks  \nb",
        "tab\tinside\n\tand in front",
        "# looks like a comment\nnot: yaml",
        "---\n...\n",
    ],
)
def test_prompts_are_readable_where_they_can_be(text):
    written = f"p: {scalars.long_text(text, 0)}\n\nnext: 1\n"
    assert both_readers(written) == [{"p": text, "next": 1}] * 2


@given(HOSTILE)
def test_a_comment_is_one_physical_line(text):
    written = "\n".join(f"# {scalars.one_line(text)}".splitlines()) + "\nk: 1\n"
    assert len(f"# {scalars.one_line(text)}".splitlines()) == 1
    assert both_readers(written) == [{"k": 1}] * 2


@given(
    st.lists(HOSTILE.filter(bool), min_size=1, max_size=4, unique=True),
    st.lists(st.one_of(WORDS, HOSTILE.map(str.strip).filter(bool)), min_size=1, max_size=5),
    HOSTILE,
)
@settings(max_examples=150)
def test_a_document_reads_back_as_it_was_meant(ids, lines, text):
    entries = tuple(
        Entry(
            name,
            tuple(lines),
            {
                "ttl": 600,
                "env": [text],
                "name": text,
                "aliases": [text],
                "promptEnhancerPrompt": text,
                "metadata": {"k": {text or "x": [text, 1.5, True]}},
                "capabilities": {"in": ["text"], "reasoningEffort": [text]},
            },
            comments=(text, f"arch={text}"),
        )
        for name in ids
    )
    document = Document(
        "quartermaster",
        header=(text,),
        notes=(f"WARNING: {text}",),
        top={"apiKeys": [text], "promptEnhancers": {text or "x": {"systemPrompt": text}}},
        models=(*entries, Skipped(text, text)),
        tail={"groups": {text or "x": {"swap": True, "members": ids}}, "listeners": {text or "x": {"groups": [text]}}},
    )
    written = render.render(document)
    for found in [*both_readers(written), load.load(written).value]:
        assert list(found["models"]) == ids
        for fields in found["models"].values():
            assert fields["cmd"] in (" ".join(lines), " ".join(lines) + "\n")
            assert fields["name"] == text
            assert fields["promptEnhancerPrompt"] == text
            assert fields["metadata"]["k"][text or "x"] == [text, 1.5, True]
        assert found["promptEnhancers"][text or "x"].get("systemPrompt", "") == text
        assert found["groups"][text or "x"]["members"] == ids


def test_the_layout_of_an_entry():
    entry = Entry(
        "gemma-3-12b-it-q4_k_m",
        ("/opt/llama-server", "-m /models/g.gguf", "--port ${PORT}"),
        {
            "ttl": 600,
            "env": ["CUDA_DEVICE_ORDER=PCI_BUS_ID"],
            "estVramGB": 11.2,
            "checkEndpoint": "/health",
            "aliases": ["gemma"],
            "capabilities": {"in": ["text", "image"], "out": ["3d"], "reasoningEffort": ["low", "off"]},
        },
        comments=("arch=gemma3 size=6.8GB",),
    )
    document = Document("quartermaster", header=("one", "two"), top={"healthCheckTimeout": 300}, models=(entry,))
    assert render.render(document) == (
        "# one\n# two\n\nhealthCheckTimeout: 300\n\nmodels:\n\n"
        "  # arch=gemma3 size=6.8GB\n"
        '  "gemma-3-12b-it-q4_k_m":\n'
        "    cmd: >\n"
        "      /opt/llama-server\n"
        "      -m /models/g.gguf\n"
        "      --port ${PORT}\n"
        "    ttl: 600\n"
        "    env:\n"
        '      - "CUDA_DEVICE_ORDER=PCI_BUS_ID"\n'
        "    estVramGB: 11.2\n"
        "    checkEndpoint: /health\n"
        '    aliases: ["gemma"]\n'
        "    capabilities:\n"
        "      in: [text, image]\n"
        "      out: [3d]\n"
        '      reasoningEffort: ["low", "off"]\n'
    )


def test_no_models_is_an_empty_mapping():
    text = render.render(Document("llama-swap", models=(Skipped("x", "no\nreason"),)))
    assert "models: {}" in text
    assert '  # SKIPPED "x": no reason' in text
    assert load_config("llama-swap", text, {}).loads


@pytest.mark.parametrize("line", ["a\nb", "a\tb", "-x 'a\x7fb'", "trailing\\ ", "\u2028"])
def test_a_line_that_a_folded_block_would_change_is_quoted(line):
    text = render.render(Document("quartermaster", models=(Entry("m", ("srv", line)),)))
    assert yaml.safe_load(text)["models"]["m"]["cmd"] == f"srv {line}"


@pytest.mark.parametrize(
    ("value", "expected"), [(7.0, "7"), (7.5, "7.5"), (11.254, "11.25"), (0.005, "0.01"), (12.345, "12.35")]
)
def test_gb_figures(value, expected):
    assert scalars.number(scalars.gb(value)) == expected


def test_keys_keep_their_order():
    document = Document("quartermaster", models=(Entry("m", ("srv",), {"metadata": {"b": 1, "a": 2}}),))
    text = render.render(document)
    assert text.index("b: 1") < text.index("a: 2")
    assert render.render(document) == text
