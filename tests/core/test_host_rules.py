"""The validation rules that need a host or a revision."""

from __future__ import annotations

import pytest

from models_app.core.export.findings import unstable
from models_app.core.export.host_rules import (
    TargetFacts,
    file_findings,
    files_of,
    note_findings,
    program_findings,
    stale_findings,
    target_findings,
    version_findings,
)
from models_app.core.export.revisions.outline import outline_of

TEXT = """# Quartermaster
# TargetVramGB=8
# Edits here are detected
# NOTE: not expressible here: vramBudgetGB
# WARNING: 1 API key limited to some models was left out
models:
  "a":
    cmd: >
      /opt/llama/llama-server
      -m /models/a.gguf --mmproj /models/mm.gguf -md /models/d.gguf
      --lora /l/one.gguf,/l/two.gguf --lora-scaled /l/three.gguf:0.5
      --chat-template-file rel.jinja --slot-save-path /cache --api-prefix /v1 --port ${PORT}
  "b":
    cmd: /usr/bin/sd-server --diffusion-model /models/x.gguf --vae /models/v.gguf --listen-port ${PORT}
"""


def test_the_files_of_commands():
    files = files_of(outline_of("llama-swap", TEXT))
    assert files == {
        "/opt/llama/llama-server": "a",
        "/models/a.gguf": "a",
        "/models/mm.gguf": "a",
        "/models/d.gguf": "a",
        "/l/one.gguf": "a",
        "/l/two.gguf": "a",
        "/l/three.gguf": "a",
        "/usr/bin/sd-server": "b",
        "/models/x.gguf": "b",
        "/models/v.gguf": "b",
    }


def test_files_of_another_system():
    text = 'models:\n  "a":\n    cmd: llama-server -m C:/models/a.gguf --mmproj /models/b.gguf --port ${PORT}\n'
    assert "C:/models/a.gguf" in files_of(outline_of("llama-swap", text), windows=True)
    assert "C:/models/a.gguf" not in files_of(outline_of("llama-swap", text))


@pytest.mark.parametrize("program", ["docker run -v /srv:/models image", "/usr/bin/ssh box llama-server", "bash -c x"])
def test_paths_in_a_container_or_on_another_machine_are_not_looked_for(program):
    text = f'models:\n  "a":\n    cmd: {program} --model /models/a.gguf --port ${{PORT}}\n'
    assert files_of(outline_of("llama-swap", text)) == {}


def test_blanks_in_the_path_of_a_program():
    text = 'models:\n  "a":\n    cmd: "\\"/opt/my llama/llama-server\\" -m \\"/models/a b.gguf\\" --port ${PORT}"\n'
    assert set(files_of(outline_of("llama-swap", text))) == {"/opt/my llama/llama-server", "/models/a b.gguf"}
    text = 'models:\n  "a":\n    cmd: /usr/bin/vllm serve /models/a b --port ${PORT}\n'
    assert set(files_of(outline_of("llama-swap", text))) == {"/usr/bin/vllm", "/models/a b"}


def test_presets_name_files_too():
    text = "version = 1\n\n[a]\nmodel = /models/a.gguf\nmmproj = /models/mm.gguf\n"
    assert files_of(outline_of("llama-server", text)) == {"/models/a.gguf": "a", "/models/mm.gguf": "a"}


PROGRAMS = frozenset({"/opt/llama/llama-server", "/usr/bin/sd-server"})
GUARD = "/opt/qm/bin/quartermaster-spawn"


def started(command: str, *, planned=("a",), programs=PROGRAMS, guard=GUARD, windows=False) -> list[str]:
    """What V-04 says of one model with this command."""
    text = f"models:\n  a:\n    cmd: '{command} --port ${{PORT}}'\n"
    outline = outline_of("llama-swap", text, rules="windows" if windows else "posix")
    found = list(program_findings(outline, planned, programs, guard, windows=windows))
    assert all((item.rule, item.severity, item.where) == ("V-04", "block", "models.a") for item in found)
    return [item.message for item in found]


@pytest.mark.parametrize(
    "command",
    [
        "/opt/llama/llama-server -m /m/a.gguf",
        f"{GUARD} --reserve-gb 0.5 -- /opt/llama/llama-server -m /m/a.gguf",
        "/usr/bin/sd-server serve /m/a.gguf",
    ],
)
def test_a_command_starts_with_a_program_of_the_host(command):
    assert started(command) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/old/llama-server -m /m/a.gguf", "/old/llama-server is no program"),
        ("/opt/llama/llama-server2 -m /m/a.gguf", "llama-server2 is no program"),
        ("env A=1 /opt/llama/llama-server -m /m/a.gguf", "is no program"),
        (f"{GUARD} --reserve-gb 0.5 -- /old/llama-server -m /m/a.gguf", "/old/llama-server is no program"),
        (f"{GUARD} /opt/llama/llama-server -m /m/a.gguf", "is no program"),
        ("/old/quartermaster-spawn -- /opt/llama/llama-server -m /m/a.gguf", "is not the spawn guard"),
    ],
)
def test_another_program_blocks(command, said):
    (message,) = started(command)
    assert said in message
    assert started(command, planned=()) == [], "what people wrote by hand starts as they say"


def test_programs_of_windows_and_those_with_blanks():
    assert started('"/opt/my llama/llama-server" -m /m/a.gguf', programs={"/opt/my llama/llama-server"}) == []
    path = "C:\\Llama\\llama-server.exe"
    assert started("c:/llama/llama-server.exe -m C:/a.gguf", programs={path}, windows=True) == []
    assert started("c:/llama/llama-server.exe -m C:/a.gguf", programs={path}) != []
    assert started("/elsewhere/quartermaster-spawn -- /usr/bin/sd-server -m x", guard="") == []


def test_models_with_the_same_strange_program_are_one_finding():
    text = "models:\n" + "".join(f"  m{n}:\n    cmd: /old/llama-server --port ${{PORT}}\n" for n in range(30))
    (found,) = program_findings(outline_of("llama-swap", text), [f"m{n}" for n in range(30)], PROGRAMS)
    assert "m0 and 29 more would start with it" in found.message


def test_presets_start_with_their_router():
    outline = outline_of("llama-server", "version = 1\n\n[a]\nmodel = /models/a.gguf\n")
    assert list(program_findings(outline, ["a"], PROGRAMS)) == []


def test_gone_files_block():
    found = list(file_findings({"/m/a": "a", "/m/b": "b"}, {"/m/b", "/m/other"}))
    assert [(item.rule, item.severity, item.where) for item in found] == [("V-07", "block", "models.b")]
    many = list(file_findings({f"/m/{n}": "a" for n in range(30)}, {f"/m/{n}" for n in range(30)}))
    assert len(many) == 21
    assert "10 more files" in many[-1].message


@pytest.mark.parametrize(("minutes", "expected"), [(0, []), (9, []), (10, ["warn"]), (None, ["warn"])])
def test_an_old_look_warns(minutes, expected):
    assert [item.severity for item in stale_findings(minutes)] == expected


def test_the_target():
    assert list(target_findings(TargetFacts(path="/c.yaml", roots=["/models"]))) == []
    facts = TargetFacts(
        path="/models",
        roots=["/models"],
        same_path=["Other"],
        same_ports=["Third"],
        is_foreign=True,
        drift="was edited by hand",
    )
    found = [(item.rule, item.severity) for item in target_findings(facts)]
    expected = [("V-12", "block"), ("V-12", "block"), ("V-13", "block"), ("V-14", "block"), ("V-19", "warn")]
    assert found == expected


def test_notes_of_the_file():
    found = list(note_findings(TEXT))
    assert [(item.rule, item.severity, item.line) for item in found] == [("V-17", "note", 4), ("V-17", "note", 5)]
    assert found[0].message == "not expressible here: vramBudgetGB"
    assert list(note_findings("; NOTE: listed all the same: a\nversion = 1\n"))[0].line == 1


def test_another_planner():
    assert list(version_findings("1.0", "1.1", [])) == []
    assert list(version_findings("1.0", "1.0", ["a"])) == []
    [item] = version_findings("1.0", "1.1", [f"m{n}" for n in range(25)])
    assert (item.rule, item.severity) == ("V-21", "note")
    assert "m19 and 5 more" in item.message


def test_unstable_output_is_a_bug_that_blocks():
    assert unstable("a", "a") == ()
    assert [(item.rule, item.severity) for item in unstable("a", "b")] == [("V-22", "block")]
