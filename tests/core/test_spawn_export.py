"""The spawn guard in files: who gets one, how it is written, compared and read again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from gpus_app.core.budget import machine_budget
from gpus_app.core.gpu_set import gpu_set
from models_app.core.catalog import ArgToken, MemoryTerm, Placement, Plan
from models_app.core.export.document import Document, Entry
from models_app.core.export.guarding import guard_of
from models_app.core.export.host_rules import files_of
from models_app.core.export.llama_swap import Options, convert
from models_app.core.export.render import render
from models_app.core.export.revisions.outline import GUARD, Outline, outline_of_document
from models_app.core.export.validate import validate_text
from models_app.core.imports.allotting import EXACT, SAME, Here, KnownModel, Taken
from models_app.core.imports.mapping import mapped
from models_app.core.imports.meaning import meaning_of
from models_app.core.imports.router_file import RouterFile, read_router_file
from models_app.core.launch.tokens import WINDOWS, split_command
from models_app.core.plans import plan_row
from models_app.core.settings import Override, Settings
from models_app.core.spawn_guard.decision import decide
from models_app.core.spawn_guard.facts import UNCHANGED, Facts
from models_app.core.spawn_guard.options import GuardOptions, read_guarded
from models_app.core.units import GIB
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.planning_run import row_of
from tests.core.test_generate_settings import place, shelf  # noqa: F401 - fixtures
from tests.core.test_spawn_guard import card

PROGRAM = "/opt/q m/.venv/bin/quartermaster-spawn"
OPTIONS = Options("/srv", guard_program=PROGRAM, header_cache="/data/headers.sqlite3")
GUARDED = GuardOptions(target_gb=11.5, min_gpu_fraction=0.5, reserve_gb=0.5)
MODEL = "/m/a b.gguf"
LINES = ("/opt/llama-server", f'-m "{MODEL}"', "--port ${PORT}", "-ngl 99", "-c 8192 --parallel 2")


def document(guard: GuardOptions | None = GUARDED, **fields) -> Document:
    return Document(
        "quartermaster",
        ("Quartermaster config - generated T",),
        models=(Entry("m", LINES, {"ttl": 0}, model_class="llm", base="m", guard=guard),),
        **fields,
    )


def text_of(options: Options = OPTIONS, **fields) -> str:
    return render(convert(document(**fields), options))


def plan(**facts) -> Plan:
    placed = Placement(8192, 99, 0, "f16", "f16", 512, 2048)
    terms = (MemoryTerm("headroom", "", (GIB // 2, GIB // 2), 0, ""), MemoryTerm("measured", "", (0, GIB // 4), 0, ""))
    given = {"placement": placed, "terms": terms, "target_bytes": int(11.509 * GIB), **facts}
    return Plan("m", given.pop("model_class", "llm"), "fits", projection=None, **given)


# --- who gets one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_host", "of_model", "expected"),
    [(False, "", False), (True, "", True), (False, "on", True), (True, "off", False)],
)
def test_the_model_decides_where_it_says_something(on_host, of_model, expected):
    found = guard_of(plan(), Settings(spawn_guard=on_host), Override(spawn_guard=of_model))
    assert (found is not None) == expected


def test_the_options_are_those_of_the_plan():
    found = guard_of(plan(), Settings(spawn_guard=True, min_gpu_fraction=0.3, shared_memory="off"), Override())
    assert found == GuardOptions(11.51, 0.3, 0.75, shared_memory="off")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"placement": Placement(8192, 0, 0, "f16", "f16", 512, 2048)}, False),
        ({"placement": None, "model_class": "tts"}, False),
        ({"placement": None, "model_class": "image", "tokens": (ArgToken("sd-server"), ArgToken("--max-vram"))}, True),
        ({"placement": None, "model_class": "image", "tokens": (ArgToken("sd-server"),)}, False),
    ],
)
def test_only_launches_that_it_can_change_get_one(facts, expected):
    assert (guard_of(plan(**facts), Settings(spawn_guard=True), Override()) is not None) == expected


@pytest.mark.parametrize("target_gib", [5.0301, 6.117, 7.7777, 9.999, 12.0])
@pytest.mark.parametrize("name", ["llama31-8b-q4_k_m", "qwen3-30b-a3b-q4_k_m", "gemma3-12b-q4_k_m"])
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_plan_that_fills_its_target_starts_as_planned(zoo_header, name, target_gib, factor):
    """The options say exactly what planning counted with: nothing is trimmed at every start."""
    settings = Settings(spawn_guard=True, vram_overhead_gb=0.4567, compute_buf_factor=factor)
    header, cards = zoo_header(name), [card(24)]
    budget = machine_budget(gpu_set(cards), cards, target_gib, 64)
    found = plan_row(row_of(header.path, header), header, settings=settings, override=Override(), budget=budget)[0]
    options = guard_of(found, settings, Override())
    decision = decide(("llama-server", *found.argv[1:]), options, Facts(cards, {}, header))
    assert decision.outcome == UNCHANGED, decision.text


# --- how it is written -----------------------------------------------------------------------------------------


def test_the_command_begins_with_it():
    entry = convert(document(), OPTIONS).entries[0]
    assert entry.command[0] == (
        f'"{PROGRAM}" --target-gb 11.5 --min-gpu-fraction 0.5 --reserve-gb 0.5 --header-cache /data/headers.sqlite3 --'
    )
    assert entry.command[1:] == LINES
    assert entry.fields["capabilities"]["context"] == 4096
    words = split_command(" ".join(entry.command))
    guarded = read_guarded(words[1:])
    assert guarded.options == replace(GUARDED, header_cache="/data/headers.sqlite3")
    assert guarded.argv[:3] == ("/opt/llama-server", "-m", MODEL)


def test_the_file_stays_valid():
    assert [item for item in validate_text(text_of(), "llama-swap") if item.severity == "block"] == []


@pytest.mark.parametrize(
    ("options", "rules", "note"),
    [
        (Options("/srv"), "posix", "WARNING: no spawn guard for 1 model: where quartermaster-spawn lies"),
        (OPTIONS, WINDOWS, "NOTE: no spawn guard for 1 model: a program on Windows"),
    ],
)
def test_where_it_cannot_be_the_file_says_so(options, rules, note):
    found = convert(document(word_rules=rules), options)
    assert found.entries[0].command == LINES
    assert any(text.startswith(note) for text in found.notes)
    assert not any("spawn guard" in text for text in convert(document(guard=None, word_rules=rules), options).notes)


def test_other_routers_place_for_themselves():
    assert "quartermaster-spawn" not in render(document())


# --- how it is compared and read -------------------------------------------------------------------------------


def outline(guard=GUARDED) -> Outline:
    built = convert(document(guard), OPTIONS)
    return outline_of_document(built, render(built))


def test_a_comparison_sees_the_program_behind_it():
    with_guard, without = outline().models["m"], outline(None).models["m"]
    assert with_guard.program == without.program == "/opt/llama-server"
    rest = {name: value for name, value in with_guard.flags.items() if name != GUARD}
    assert rest == without.flags
    assert with_guard.flags[GUARD].startswith(f"{PROGRAM} --target-gb 11.5")


def test_its_script_must_be_there_like_any_executable():
    assert files_of(outline()) == {PROGRAM: "m", "/opt/llama-server": "m", MODEL: "m"}
    assert PROGRAM not in files_of(outline(None))


def read(text: str) -> RouterFile:
    return read_router_file(text.encode(), "llama-swap")


def test_a_reader_finds_the_same_command():
    guarded, bare = read(text_of()).entries[0], read(text_of(guard=None)).entries[0]
    assert guarded.argv == bare.argv
    assert (guarded.program, guarded.path) == ("/opt/llama-server", MODEL)
    assert guarded.guard[0] == PROGRAM
    assert bare.guard == ()


def test_it_is_part_of_what_a_file_means():
    guarded, bare = (meaning_of(text.encode(), "llama-swap") for text in (text_of(), text_of(guard=None)))
    assert guarded != bare


@pytest.mark.parametrize("way", [SAME, EXACT])
@pytest.mark.parametrize(
    ("in_file", "here", "expected"),
    [
        (True, Here({}), ["on"]),
        (True, Here({}, guards=True), []),
        (False, Here({}, guards=True), ["off"]),
        (False, Here({}), []),
        (True, Here({}, {"m": ((), {})}, guards=True), ["on"]),
        (True, Here({}, {"m": ((), {})}, guarded=frozenset({"m"})), []),
    ],
)
def test_an_import_pins_only_what_the_host_would_not_do_anyway(way, in_file, here, expected):
    file = read(text_of(guard=GUARDED if in_file else None))
    taken = Taken(file.entries[0], way, model=KnownModel(MODEL, "m", "llama", file.entries[0].argv))
    found = [item.value for item in mapped(file, here, [taken]) if item.target.field == "spawnGuard"]
    assert found == expected


# --- settings files --------------------------------------------------------------------------------------------


def test_generate_writes_it_where_the_settings_say_so(place, monkeypatch):  # noqa: F811
    """The generate file, its sidecar, and the override of a model."""
    settings = {"modelsRoot": str(place.models), "targetVramGB": 24, "maxRamGB": 64}
    monkeypatch.setattr("tests.core.test_generate_settings.Environment", partial(Environment, guard_program=PROGRAM))

    def guarded():
        config = place.config("--dialect", "llama-swap")
        return [PROGRAM in model["cmd"] for model in config["models"].values()]

    place.write({**settings, "spawnGuard": True})
    assert guarded() == [True, False]  # the embedding server is none that the guard knows
    place.write({**settings, "spawnGuard": True}, [{"match": place.gemma, "spawnGuard": "off"}])
    assert guarded() == [False, False]
    place.write(settings, [{"match": place.gemma, "spawnGuard": "on"}])
    assert guarded() == [True, False]
    place.write(settings)
    place.write_sidecar(settings={"spawnGuard": True})
    assert guarded() == [True, False]
