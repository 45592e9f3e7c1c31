"""Two texts compared: models, flags, keys, estimates, causes, effects, the mass-change guard, and the text diff."""

from __future__ import annotations

import difflib
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from models_app.core.errors import ExportError
from models_app.core.export.presets import router
from models_app.core.export.revisions.causes import Inputs, Section, causes_between, inputs_from_json
from models_app.core.export.revisions.compare import MAX_FIELDS, compare
from models_app.core.export.revisions.effects import effect_of
from models_app.core.export.revisions.mass_change import mass_change
from models_app.core.export.revisions.outline import (
    ModelOutline,
    Outline,
    outline_from_json,
    outline_of,
    taken_apart,
)
from models_app.core.export.revisions.text_diff import text_diff

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = {
    "llama-swap": "shelf.llama-swap.yaml",
    "quartermaster": "shelf.quartermaster.yaml",
    "llama-server": "shelf.llama-server.ini",
}


def golden(dialect):
    return (GOLDEN / FILES[dialect]).read_text()


def yaml_of(*models, head=""):
    """A small llama-swap file: each model is (id, command, further lines)."""
    text = head + "models:\n"
    for name, command, *rest in models:
        text += f'  "{name}":\n    cmd: >\n' + "".join(f"      {line}\n" for line in command.split("\n"))
        text += "".join(f"    {line}\n" for line in rest)
    return text


def difference(before, after, dialect="llama-swap"):
    return compare(outline_of(dialect, before), outline_of(dialect, after))


def said(change):
    return [(field.kind, field.name, field.before, field.after) for field in change.fields]


@pytest.mark.parametrize("dialect", FILES)
def test_a_file_is_the_same_as_itself(dialect):
    found = difference(golden(dialect), golden(dialect), dialect)
    assert found.is_empty
    assert found.same == found.before == found.after > 3


@pytest.mark.parametrize("dialect", FILES)
def test_a_window_is_one_changed_flag_in_every_dialect(dialect):
    before = golden(dialect)
    old, new = ("ctx-size = 131072", "ctx-size = 65536") if dialect == "llama-server" else ("-c 131072", "-c 65536")
    assert old in before
    found = difference(before, before.replace(old, new, 1), dialect)
    [change] = found.models
    assert change.kind == "changed"
    assert said(change) == [("flag", "ctx-size", "131072", "65536")]
    assert change.path.endswith(".gguf")


@pytest.mark.parametrize("dialect", FILES)
def test_an_outline_survives_its_json(dialect):
    outline = outline_of(dialect, golden(dialect))
    assert outline_from_json(outline.as_json()) == outline


def test_order_comments_and_quotes_are_no_change():
    one = yaml_of(("a", "llama-server -m /a.gguf -c 4096 --jinja", "ttl: 5"), ("b", "llama-server -m /b.gguf"))
    other = (
        "# a comment\nmodels:\n  b:\n    cmd: 'llama-server --model /b.gguf'\n"
        "  a:\n    ttl: 5\n    cmd: \"llama-server --jinja --ctx-size=4096 -m '/a.gguf'\"\n"
    )
    assert difference(one, other).is_empty


def test_added_removed_renamed():
    before = yaml_of(("a", "llama-server -m /a.gguf -c 4096"), ("b", "llama-server -m /b.gguf"))
    after = yaml_of(("c", "llama-server -m /c.gguf"), ("new-a", "llama-server -m /a.gguf -c 8192"))
    found = difference(before, after)
    assert [(change.kind, change.was_id, change.id) for change in found.models] == [
        ("renamed", "a", "new-a"),
        ("added", "", "c"),
        ("removed", "", "b"),
    ]
    assert said(found.models[0]) == [("flag", "ctx-size", "4096", "8192")]


def test_of_several_profiles_of_a_file_each_finds_its_own_launch():
    tiers = [("a", "llama-server -m /a.gguf -c 4096"), ("a-8k", "llama-server -m /a.gguf -c 8192")]
    found = difference(yaml_of(*tiers), yaml_of(*((f"x-{name}", command) for name, command in tiers)))
    assert [(change.was_id, change.id, change.fields) for change in found.models] == [
        ("a", "x-a", ()),
        ("a-8k", "x-a-8k", ()),
    ]


def test_flags_with_repeats_negative_numbers_and_unknown_names():
    program, flags = taken_apart("/opt/llama-server -m /a.gguf -ngl -1 -ot 'a=CPU' -ot b=CPU --new x y --no-kv-unified")
    assert program == "/opt/llama-server"
    assert flags == {
        "model": "/a.gguf",
        "n-gpu-layers": "-1",
        "override-tensor": ["a=CPU", "b=CPU"],
        "--new": "x y",
        "no-kv-unified": "",
    }
    assert taken_apart("python serve.py --scale -0.5 -v") == ("python serve.py", {"--scale": "-0.5", "-v": ""})


def test_a_command_that_cannot_be_split_is_still_compared():
    [change] = difference(yaml_of(("a", "x 'open")), yaml_of(("a", "x 'other"))).models
    assert [field.name for field in change.fields] == [""]


def test_lists_tell_what_came_and_went():
    before = yaml_of(("a", "x"), head='groups:\n  all:\n    members: ["a", "b", "c"]\n')
    after = yaml_of(("a", "x"), head='groups:\n  all:\n    members: ["c", "a", "d"]\n')
    [field] = difference(before, after).top
    assert (field.name, field.before, field.after, field.is_list) == ("groups.all.members", "b", "d", True)


def test_estimates_of_each_dialect_and_of_the_report():
    swap = "metadata: {quartermaster: {estVramGB: 2.04}}"
    [change] = difference(yaml_of(("a", "x", swap)), yaml_of(("a", "x", swap.replace("2.04", "3.5")))).models
    assert said(change) == [("estimate", "VRAM", "2.04", "3.50")]
    text = "[a]\nmodel = /a.gguf\n"
    known = outline_of("llama-server", text, [{"id": "a", "est_vram_gib": 1.23456, "est_ram_gib": 0}])
    assert (known.models["a"].vram_gb, known.models["a"].ram_gb) == (1.23, 0)


def test_a_broken_text_is_an_error_of_ours():
    for dialect, text in (("llama-swap", "models: ["), ("llama-server", "[a\n"), ("llama-server", "[a]\nnone = 1\n")):
        with pytest.raises(ExportError):
            outline_of(dialect, text)


@pytest.mark.parametrize(
    "text", ["", "models:\n", "models: 3\n", "models: {a: 3}\n", "- a\n", "models: {a: {cmd: 3}}\n"]
)
def test_odd_files_have_an_outline(text):
    assert compare(outline_of("llama-swap", text), outline_of("llama-swap", text)).is_empty


def test_lists_and_texts_are_bounded():
    many = {f"--f{n}": "x" * 1000 for n in range(200)}
    [change] = compare(Outline({"a": ModelOutline(flags=many)}), Outline({"a": ModelOutline()})).models
    assert (len(change.fields), change.more) == (MAX_FIELDS, 200 - MAX_FIELDS)
    assert max(len(field.before) for field in change.fields) <= 300


def test_llama_swap_stops_every_model_and_our_router_none():
    before, after = (yaml_of(("a", f"llama-server -m /a.gguf -c {n}"), ("b", "llama-server -m /b")) for n in (1, 2))
    outlines = outline_of("llama-swap", before), outline_of("llama-swap", after)
    assert effect_of("llama-swap", *outlines, compare(*outlines)).stops == "all"
    ours = effect_of("quartermaster", *outlines, compare(*outlines))
    assert (ours.stops, ours.models) == ("none", ("a",))


def test_llama_server_stops_those_whose_section_changed():
    before = golden("llama-server")
    after = before.replace("ctx-size = 131072", "ctx-size = 65536", 1).replace("version = 1", "version = 1\n")
    outlines = outline_of("llama-server", before), outline_of("llama-server", after)
    effect = effect_of("llama-server", *outlines, compare(*outlines))
    assert effect.stops == "some"
    assert effect.models == router.changed_models(before, after, tuple(outlines[0].models))
    alias = replace(outlines[0].models[effect.models[0]])
    named = Outline({"x": replace(alias, flags={**alias.flags, "alias": "y"})})
    plain = Outline({"x": alias})
    assert effect_of("llama-server", plain, named, compare(plain, named)).stops == "none", (
        "a further name stops nothing"
    )


@pytest.mark.parametrize(
    ("dropped", "kept", "held"), [(3, 6, True), (3, 7, False), (2, 1, False), (2, 0, True), (1, 0, True), (0, 3, False)]
)
def test_the_mass_change_guard(dropped, kept, held):
    before = Outline({f"m{n}": ModelOutline(flags={"model": f"/{n}"}) for n in range(dropped + kept)})
    after = Outline({f"m{n}": ModelOutline(flags={"model": f"/{n}"}) for n in range(kept)})
    assert mass_change(compare(before, after)).holds is held


def test_a_root_that_is_away_holds_too():
    found = mass_change(compare(Outline(), Outline()), ["/mnt/models"])
    assert (found.holds, found.drops_many) == (True, False)


def test_causes_are_settings_files_backends_budget_and_version():
    before = Inputs(
        {"memory": Section({"targetVramGB": 22})}, {"/a": "1", "/b": "1"}, {"llama": "/old"}, {"GPU 0": 5}, "1.0"
    )
    after = Inputs(
        {"memory": Section({"targetVramGB": 16, "ttlSec": 5}, "edda", "2026-01-01")},
        {"/a": "2", "/c": "1"},
        {"llama": "/new"},
        {"GPU 0": 4},
        "1.1",
    )
    found = causes_between(before, after)
    assert [(cause.kind, cause.name, cause.before, cause.after) for cause in found.host] == [
        ("setting", "targetVramGB", 22, 16),
        ("setting", "ttlSec", None, 5),
        ("backend", "llama", "/old", "/new"),
        ("budget", "GPU 0", 5, 4),
        ("version", "version", "1.0", "1.1"),
    ]
    assert found.host[0].by == "edda"
    assert {path: (cause.before, cause.after) for path, cause in found.files.items()} == {
        "/a": ("1", "2"),
        "/b": ("1", None),
        "/c": (None, "1"),
    }
    assert not causes_between(Inputs(), after).known
    assert inputs_from_json({"sections": {"a": {"values": {}, "by": "", "at": ""}}, "version": "1"}).is_known


def test_a_text_diff_leads_from_one_text_to_the_other():
    chance = random.Random(7)
    for _ in range(200):
        before = [chance.choice("abcdefg") + chance.choice("xyz") * 2 for _ in range(chance.randrange(30))]
        after = list(before)
        for _ in range(chance.randrange(5)):
            at = chance.randrange(len(after) + 1)
            after[at : at + chance.randrange(3)] = [chance.choice("abcnew")] * chance.randrange(3)
        found = text_diff("\n".join(before), "\n".join(after))
        shown_old = {line.before: line.text for line in found.lines if line.before}
        shown_new = {line.after: line.text for line in found.lines if line.after}
        assert all(before[n - 1] == text for n, text in shown_old.items())
        assert all(after[n - 1] == text for n, text in shown_new.items())
        gone = [line.text for line in found.lines if line.mark == "-"]
        come = [line.text for line in found.lines if line.mark == "+"]
        rest = [line for n, line in enumerate(before, 1) if shown_old.get(n) is None or _is_same(found, n)]
        assert len(gone) == found.removed
        assert len(come) == found.added
        assert len(before) - found.removed == len(after) - found.added == len(rest)


def _is_same(found, number):
    return any(line.mark == " " and line.before == number for line in found.lines)


def test_a_text_diff_is_as_short_as_that_of_the_library_for_a_small_change():
    before = golden("llama-swap")
    after = before.replace("-c 131072", "-c 65536", 1)
    found = text_diff(before, after)
    expected = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))[2:]
    assert [f"{line.mark}{line.text}" for line in found.lines if line.mark != "@"] == [
        line for line in expected if not line.startswith("@@")
    ]
    assert (found.added, found.removed, found.cut) == (1, 1, False)


def test_a_header_is_not_compared():
    found = text_diff("# one\n# two\nx\n", "# eins\n# zwei\ny\n", skipped=2)
    assert [(line.mark, line.text) for line in found.lines][1:] == [
        (" ", "# eins"),
        (" ", "# zwei"),
        ("-", "x"),
        ("+", "y"),
    ]
    assert text_diff("", "# a\nx\n", skipped=1).added == 1


def test_a_text_diff_is_cut():
    found = text_diff("", "\n".join(str(n) for n in range(100)), most=10)
    assert (len(found.lines), found.added, found.cut) == (10, 100, True)


def test_thousands_of_new_models_and_of_moved_ones_are_compared_fast():
    """The first text of a large shelf, and one in which every model has another id and another launch."""
    models = {f"model-{n}": ModelOutline("llama-server", {"model": f"/models/{n}.gguf"}) for n in range(4000)}
    moved = {
        f"other-{n}": ModelOutline("llama-server", {"model": f"/models/{n}.gguf", "jinja": ""}) for n in range(4000)
    }
    began = time.process_time()
    assert compare(Outline(), Outline(models)).of("added") == 4000
    assert compare(Outline(models), Outline(moved)).of("renamed") == 4000
    assert time.process_time() - began < 2


def test_a_thousand_models_with_four_profiles_are_compared_fast():
    command = (
        "llama-server\n-m /models/model-{n}.gguf\n--port ${{PORT}}\n-ngl 99\n-c {c}\n-fa on -ctk f16 -ctv f16\n--jinja"
    )
    models = [(f"model-{n}-{k}", command.format(n=n, c=4096 << k), "ttl: 600") for n in range(1000) for k in range(4)]
    before = yaml_of(*models)
    after = before.replace("-c 8192", "-c 9000")
    outlines = [outline_of("llama-swap", text) for text in (before, after)]
    stored = [outline.as_json() for outline in outlines]
    began = time.process_time()
    found = compare(*(outline_from_json(item) for item in stored))
    diff = text_diff(before, after)
    assert time.process_time() - began < 1
    assert found.of("changed") == diff.added == 1000
