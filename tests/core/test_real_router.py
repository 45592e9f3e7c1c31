"""Presets against a real llama-server in router mode, in the folder that QM_LLAMA_BIN names."""

from __future__ import annotations

import os
import time
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from models_app import routing
from models_app.core.export.document import Document, Entry
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import options, reading
from models_app.core.export.presets.convert import convert
from models_app.core.export.presets.options import FALSE_WORDS, option_of_flag
from models_app.core.export.presets.render import render
from models_app.core.launch.tokens import join_tokens
from models_app.core.settings import Override
from models_app.router import llama_server
from models_app.router.connection import RouterRefused
from models_app.target_file import write_target
from tests.fit_params import stand_ins
from tests.real_router import buffers_of, loaded, mib, model, options_of, planned, router, until
from tests.zoo import zoo

pytestmark = [pytest.mark.llama, pytest.mark.xdist_group("llama")]

CHAT, OTHER, EMBEDDING = "qwen3-0.6b-q8_0", "gemma3-1b-q8_0", "qwen3-embedding-0.6b-q8_0"
ROUNDING_MIB = 0.01
OURS = {"model", "alias", "host", "port", "log-colors", "tags"}
"""What the router sets itself, or what is compared apart."""


@pytest.fixture(scope="module")
def server():
    return Path(os.environ["QM_LLAMA_BIN"]) / "llama-server"


def overrides(folder, device, window):
    """The chat model on a stand-in for a GPU; the others on the CPU, so that each device has one user."""
    return [
        Override(match=str(folder / f"{CHAT}.gguf"), custom_args=f"-c {window} {' '.join(device)}"),
        Override(match=str(folder / f"{OTHER}.gguf"), custom_args="-c 2048 -ngl 0"),
        Override(match=str(folder / f"{EMBEDDING}.gguf"), custom_args="-c 1024 -ngl 0"),
    ]


def test_from_a_plan_to_the_process_and_back(server, tmp_path):
    """Publish, load, edit, reload, roll back: what runs is what was planned, and what was not edited goes on."""
    began = time.monotonic()
    folder, presets = tmp_path / "models", tmp_path / "models.ini"
    for name in (CHAT, OTHER, EMBEDDING):
        zoo.write_model(name, str(folder))
    with stand_ins(server.parent, 1) as device:
        plans: dict = {}
        first = planned(folder, server, overrides(folder, device, 4096), target=presets, plans=plans)
        edited = planned(folder, server, overrides(folder, device, 6144), target=presets)
        assert not first.findings
        presets.write_text(first.text, encoding="utf-8")
        with router(server, presets) as connection:
            _lists_exactly(connection, first.text)
            was = loaded(connection, CHAT)
            other = loaded(connection, OTHER)
            assert was.window_tokens == 4096
            assert options_of(was.command)["rpc"] == device[1]
            _holds_what_was_planned(presets.with_suffix(".log").read_text("utf-8", "replace"), plans, edited=CHAT)
            assert [item.id for item in llama_server.look(connection).held] == sorted([CHAT, OTHER])

            presets.write_text(edited.text, encoding="utf-8")
            llama_server.reload(connection)
            assert model(connection, CHAT).state == "unloaded"
            assert model(connection, OTHER).command == other.command, "an unchanged model keeps its process"
            assert model(connection, OTHER).state == "loaded"
            assert loaded(connection, CHAT).window_tokens == 6144
            _lists_exactly(connection, edited.text)

            presets.write_text(first.text, encoding="utf-8")
            llama_server.reload(connection)
            _lists_exactly(connection, first.text)
            assert loaded(connection, CHAT).window_tokens == 4096
            llama_server.unload_all(connection)
            until(lambda: not llama_server.look(connection).held, 15)
    assert time.monotonic() - began < 90


def _lists_exactly(connection, text):
    """Ids, further names and every argument are those of the file, read by our own reader."""
    meant = reading.read(text)
    state = llama_server.look(connection)
    assert all(item.from_file for item in state.models)
    assert [item.id for item in state.models] == list(meant.models)
    for item in state.models:
        assert set(item.aliases) - {item.id} == set(meant.aliases(item.id)) - {item.id}
        assert _passed(item.command) == _meant(meant.models[item.id])


def _meant(given):
    return {name: value for name, value in reading.passed(given).items() if name not in OURS - {"model"}}


def _passed(command):
    """Option -> value of a child's command, read by the option table instead of by looks: a value may begin with -."""
    found, words = {}, iter(command[1:])
    for word in words:
        option = option_of_flag(word)
        assert option is not None, f"{word!r} is no flag"
        if option.is_switch:
            found[option.name] = "false" if word in option.negated else "true"
        else:
            found[option.name] = next(words)
    return {name: value for name, value in found.items() if name not in OURS - {"model"}}


def _holds_what_was_planned(log, plans, edited):
    held = buffers_of(log)
    gpu, others = plans[edited].projection.devices[0], [plans[OTHER].projection]
    assert held["RPC", "model"] == pytest.approx(mib(gpu.model_bytes), abs=ROUNDING_MIB)
    assert held["RPC", "KV"] == pytest.approx(mib(gpu.context_bytes), abs=ROUNDING_MIB)
    host = [plans[edited].projection.host, *(part for item in others for part in (item.host, *item.devices))]
    assert held["CPU", "model"] == pytest.approx(mib(sum(use.model_bytes for use in host)), abs=2 * ROUNDING_MIB)
    assert held["CPU", "KV"] == pytest.approx(mib(sum(use.context_bytes for use in host)), abs=2 * ROUNDING_MIB)


def test_the_whole_zoo_is_listed_as_planned(server, zoo_folder, tmp_path):
    generated = planned(zoo_folder, server, target=tmp_path / "models.ini")
    assert not generated.report.skipped
    assert len(generated.report.entries) == len(zoo.MODELS)
    (tmp_path / "models.ini").write_text(generated.text, encoding="utf-8")
    with router(server, tmp_path / "models.ini") as connection:
        _lists_exactly(connection, generated.text)


NASTY = "ab01:/,;#=[]*\"'\\ \t\r\n\x1b\x85\u2028\ufeffé漢😀-._$%~{}()|&<>`"
STRANGE = "ab01:/=[*\"'\\ \u2028\ufeffé漢😀-._$%~{}()|&<>`"
"""What a file can hold, and looks as if it could not."""
BATCHES, ENTRIES = 30, 60
BEFORE, AFTER = "!first", "~last"
"""Sections that must not change, whatever stands between them."""


def _nasty(pick):
    alphabet = STRANGE if pick.random() < 0.8 else NASTY
    size = 2048 if pick.random() < 0.1 else pick.randrange(1, 24)
    text = "".join(pick.choice(alphabet) for _ in range(size))
    return text.strip(" ") if alphabet is STRANGE else text


def _entry(name, argv, **fields):
    return Entry(id=name, command=("llama-server", join_tokens(argv)), fields=fields, model_class="llm")


def _hostile(pick):
    """Names, paths, templates and texts of any kind, with values that look like headers and keys among them."""
    value, path = _nasty(pick), f"/srv/{_nasty(pick)}"
    lures = ["\n[~last]\nmodel = /evil\n", "] ; [x", "\r[*]\rctx-size = 1", "[~last]", "= y", "--", value, value, value]
    lure = pick.choice(lures)
    argv = ["-m", path, "--chat-template", value, "--grammar", f"root {lure}", "--override-kv", f"a=str:{value}"]
    if pick.random() < 0.5:
        argv += ["--chat-template-kwargs", '{"a":"#;]\\n[x]"}', pick.choice(["--jinja", "--no-jinja"])]
    return _entry(_nasty(pick), argv, aliases=[_nasty(pick), lure])


def test_hostile_text_never_changes_another_section(server, tmp_path):
    """Read back by the router itself: what is written is what it lists, in every batch, and its neighbours stay."""
    presets, pick = tmp_path / "models.ini", Random(20261130)
    fixed = [
        _entry(name, ["-m", "/srv/fixed.gguf", "-c", "1234"], aliases=[f"{name}-alias"]) for name in (BEFORE, AFTER)
    ]
    presets.write_text(_text([fixed[0], fixed[1]])[1], encoding="utf-8")
    written = 0
    with router(server, presets) as connection:
        before = {name: _passed(model(connection, name).command) for name in (BEFORE, AFTER)}
        for _ in range(BATCHES):
            document, text = _text([fixed[0], *(_hostile(pick) for _ in range(ENTRIES)), fixed[1]])
            presets.write_text(text, encoding="utf-8", newline="")
            llama_server.reload(connection)
            _lists_exactly(connection, text)
            for name, words in before.items():
                assert _passed(model(connection, name).command) == words
                assert f"{name}-alias" in model(connection, name).aliases
            written += len(document.entries) - 2
    assert BATCHES * ENTRIES / 5 < written < BATCHES * ENTRIES * 0.9, "much is written, and much is left out"


def _text(entries):
    document = Document(
        dialect="quartermaster", header=("Quartermaster config - generated T",), top={}, models=tuple(entries), tail={}
    )
    result = convert(document, Options())
    return result, render(result)


def test_every_option_that_can_be_written_is_known(server, tmp_path):
    """One section a key, in every spelling of our table that reaches a model: none makes the router refuse the file."""
    sections = []
    for option in options.options():
        if option.handling in (options.TWO_VALUES, "preset-only"):
            continue
        for flag in (*option.flags, *option.negated):
            value = "true" if option.is_switch else str(len(sections))
            sections.append(f"[s{len(sections)}]\nmodel = /srv/a.gguf\n{flag.lstrip('-')} = {value}\n")
    assert len(sections) > 400
    (tmp_path / "models.ini").write_text("".join(sections), encoding="utf-8")
    with router(server, tmp_path / "models.ini") as connection:
        assert len(llama_server.look(connection).models) > 400


def test_a_bad_file_is_refused_and_changes_nothing(server, tmp_path):
    presets = tmp_path / "models.ini"
    good = "[a]\nmodel = /srv/a.gguf\n"
    presets.write_text(good, encoding="utf-8")
    with router(server, presets) as connection:
        presets.write_text(f"{good}\n[b]\nmodel = /srv/b.gguf\nfoo = 1\n", encoding="utf-8")
        with pytest.raises(RouterRefused, match="foo"):
            llama_server.reload(connection)
        assert [item.id for item in llama_server.look(connection).models] == ["a"]


def test_switches_that_are_off_stay_off(server, tmp_path):
    """A word that means no: our reader and the router agree on every one."""
    presets = tmp_path / "models.ini"
    words = [*sorted(FALSE_WORDS), "no", "False", ""]
    keys = ("jinja", "no-jinja", "metrics", "kv-unified")
    presets.write_text(
        "".join(f"[{key}{n}]\nmodel = /a\n{key} = {word}\n" for key in keys for n, word in enumerate(words)), "utf-8"
    )
    with router(server, presets) as connection:
        _lists_exactly(connection, presets.read_text("utf-8"))


def test_what_a_worker_does_at_its_router(server, tmp_path):
    """Loads, unloads, has a file read, and puts the one before back when the real router refuses it."""
    folder, presets = tmp_path / "models", tmp_path / "models.ini"
    path = zoo.write_model("qwen25-0.5b-f16", str(folder))[0]
    old = f"[small]\nalias = s\nmodel = {path}\nctx-size = 512\nno-warmup = true\n"
    presets.write_text(old, encoding="utf-8")
    with router(server, presets) as connection:
        inputs = {"url": connection.url, "kind": "llama-server"}

        def told(action, name):
            (found,) = routing.act({**inputs, "action": action, "model": name}, print, lambda: True)["router"]["models"]
            return found["state"]

        assert told("load", "small") == "loaded"
        assert told("unload", routing.ALL) == "unloaded"
        twice = f"{old}[other]\nalias = s\nmodel = {path}\n"
        for text, refused in ((f"{old}[b]\nmodel = /b.gguf\n", False), (twice, True)):
            before = presets.read_bytes()
            result = write_target(
                str(presets), text, sha256=sha256(text.encode()).hexdigest(), expected_sha256="", adopt=True
            )
            if refused:
                with pytest.raises(routing.RouterRefusal, match="put back and read again"):
                    routing.reload(inputs, result, before, text)
            else:
                assert routing.reload(inputs, result, before, text)["outcome"] == "reloaded: the router lists 2 models"
        assert presets.read_bytes() == before
        assert loaded(connection, "small").state == "loaded", "after a refused file loads would hang"
