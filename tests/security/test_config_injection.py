"""YAML, INI and argument injection: what people and files name lands in a router's file as that text, or not at all."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import budget_of
from models_app.core.errors import LaunchError
from models_app.core.export import load
from models_app.core.export.build import build_document
from models_app.core.export.dialects import DIALECTS
from models_app.core.export.document import Skipped
from models_app.core.export.entry import PlannedModel
from models_app.core.export.fragments import Fragments, with_fragments
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import reading
from models_app.core.export.presets.writing import served_id
from models_app.core.launch.tokens import quote, split_command
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.settings import Override, PromptEnhancer, Settings, Variant
from models_app.core.units import GIB
from tests.core.test_plan_row import row_of
from tests.zoo import zoo

BUDGET = budget_of([24 * GIB], 64 * GIB)
NASTY = (
    "x\nmodels:\n  evil:\n    cmd: /bin/sh -c id",
    "x\r\n  evil: 1",
    'x"\n    cmd: "/bin/sh',
    "x # cut here",
    "x: y",
    "- x",
    "{x: y}",
    "[x]",
    "*alias",
    "&anchor x",
    "!!python/object/apply:os.system [id]",
    "${env.HOME}",
    "${PORT}",
    "${MODEL_ID}",
    "$(id)",
    "`id`",
    "; rm -rf /",
    "x && id",
    "| id",
    "> /tmp/x",
    "x\u2028  evil: 1",
    "x\x85evil: 1",
    "x\x00y",
    "x\x1b[2J",
    "\ufeffx",
    "\u202egnp.exe",
    "'",
    '"',
    "\\",
    "\\n",
    "x\\",
    "%0a",
    "[evil]\ncmd = x",
    "]\n[evil]",
    "x = y",
    "; comment",
    "~",
    "null",
    "yes",
    "1e3",
    "0x10",
    "--host 0.0.0.0",
    "-",
    " x ",
    "\tx",
    "é漢\U0001f600",
)
TEXTS = st.sampled_from(NASTY) | st.lists(st.sampled_from(NASTY), min_size=2, max_size=3).map("".join)
TOP = {
    "apiKeys", "captureBuffer", "groups", "healthCheckTimeout", "listeners", "logLevel", "macros", "matrix", "models",
    "promptEnhancers", "ramBudgetGB", "slotCache", "vramBudgetGB", "globalTTL", "startPort",
}  # fmt: skip
"""Keys that a file of ours may have at its top."""


@pytest.fixture(scope="module")
def header(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    zoo.write_model("qwen3-0.6b-q8_0", str(folder))
    return read_header(str(next(folder.glob("*.gguf"))))


def document_of(header, override, fleet=None, **row):
    fleet = fleet or Settings()
    found = row_of(header, **row)
    plans = plan_row(found, header, settings=fleet, override=override, budget=BUDGET, headers=lambda path: None)
    return build_document([PlannedModel(found, header, plans, override, budget=BUDGET)], fleet, "T")


def check(document):
    """The file of every dialect holds what its document holds and nothing else; our own check agrees."""
    for dialect in DIALECTS:
        converted = dialect.convert(document, Options())
        text = dialect.render(converted)
        meant = {entry.id: entry for entry in converted.entries}
        broken = [item for item in dialect.verify(converted, text) if item.severity == "block" and item.rule == "V-22"]
        assert not broken, (dialect.slug, broken)
        if dialect.file_name.endswith(".ini"):
            assert set(reading.read(text).models) == {served_id(name) for name in meant}
            continue
        tree = load.load(text).value
        assert set(tree) <= TOP, dialect.slug
        assert set(tree.get("models") or {}) == set(meant), dialect.slug
        for name, entry in meant.items():
            written = tree["models"][name]
            assert set(written) == {"cmd", *entry.fields}, dialect.slug
            if (words := words_of(entry)) is not None:
                assert split_command(written["cmd"]) == words
            assert "evil" not in written
    return document


def words_of(entry):
    """The words of a command; None where a person's text leaves a quote open, which the router says then."""
    try:
        return split_command("\n".join(entry.command))
    except LaunchError:
        return None


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_names(header, text):
    """Of the file, the id that it is served under, its variants, and what is kept by hand for it."""
    path = f"/models/{text}/{text}.gguf"
    check(document_of(header, Override(), id=text, full_path=path, file_name=f"{text}.gguf"))
    chosen = Override(served_id=text, swap_group=text, variants=(Variant(name=text, served_id=f"{text}2"),))
    check(document_of(header, chosen))
    by_hand = {"aliases": [text, "b"], "env": [f"NAME={text}"], "description": text, "metadata": {text: {text: text}}}
    check(with_fragments(document_of(header, Override()), Fragments(top={}, models={"m": by_hand})))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(TEXTS, min_size=1, max_size=3))
def test_words_of_a_launch_survive(header, words):
    """A word that a person quoted is that word for the server, whatever it holds; or the model is left out."""
    text = " ".join(f"--grammar {quote(word)}" for word in words)
    for alone in (False, True):
        document = check(document_of(header, Override(custom_args=text, custom_args_only=alone)))
        for argv in map(words_of, document.entries):
            given = [value for flag, value in zip(argv, argv[1:], strict=False) if flag == "--grammar"]
            assert given
            assert set(given) <= set(words)


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_a_launch_text_is_words_and_never_a_shell(header, text):
    """Without quotes too: `;`, `|`, `>` and `$(…)` are words like others, a line break starts no key."""
    document = check(document_of(header, Override(custom_args=f"--grammar x {text}", custom_args_only=True)))
    for entry in document.entries:
        assert entry.command[0] == "llama-server"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=TEXTS, prompt=TEXTS, path=TEXTS)
def test_what_stands_beside_the_models(header, name, prompt, path):
    fleet = Settings(prompt_enhancers=(PromptEnhancer(model=name, system_prompt=prompt),))
    override = Override(chat_template_file=f"/templates/{path}", override_tensor=path, tensor_split=path)
    check(document_of(header, override, fleet))


def test_reasons_are_comments():
    """What is left out is named in a comment; it stays one, whatever it is called."""
    for text in NASTY:
        check(build_document([Skipped(text, text, text)], Settings(), text))


def test_a_quoted_word_is_that_word_for_a_shell_too():
    """Nobody gives our commands to a shell; a person who pastes one is not harmed all the same."""
    for text in NASTY:
        if "\x00" not in text:
            assert split_command(quote(text)) == [text]
            if not set("$`\n\r") & set(text):
                assert shlex.split(quote(text)) == [text]
