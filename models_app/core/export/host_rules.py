"""The validation rules that need a host or a revision (web.md 11.4): files, target, drift, notes, version.

Pure: what is known of the host comes in as values. The rules of the file alone are in `validate` and `presets.check`.
"""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from models_app.core.export.findings import BLOCK, NOTE, WARN, CheckFinding, finding
from models_app.core.export.revisions.outline import GUARD, ModelOutline, Outline

FILE_FLAGS = frozenset(
    {
        *("m", "model", "model-path", "mmproj", "model-draft", "spec-draft-model", "chat-template-file"),
        *("lora", "lora-scaled", "diffusion-model", "vae", "audio-vae", "clip_l", "clip_g", "t5xxl", "llm"),
        *("llm_vision", "dino", "birefnet", "codec"),
    }
)
"""Flags of our servers whose value is a file that must be there, without dashes."""
ADAPTER_FLAGS = frozenset({"lora", "lora-scaled", "lora-model-dir"})
ELSEWHERE = frozenset(
    ["docker", "podman", "nerdctl", "apptainer", "singularity", "ssh", "wsl", "kubectl", "sh", "bash", "env"]
)
"""Programs that start another one, often where paths mean something else: what they name is not looked for."""
MOST_NAMED = 20
"""Findings of one rule; the last of more says how many there are."""
MOST_LINES = 60
"""Notes stand among the first lines of a file."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What is known of the place where a text goes."""

    path: str = ""
    roots: Sequence[str] = ()
    same_path: Sequence[str] = ()
    """Other hosts of the same machine whose file has this path."""
    same_ports: Sequence[str] = ()
    """Other hosts of the same machine whose router hands out the same ports."""
    is_foreign: bool = False
    """A file lies there that Quartermaster never wrote."""
    drift: str = ""
    """What became of the file since it was written, in words; "" for nothing."""


def target_findings(facts: TargetFacts) -> Iterator[CheckFinding]:
    """V-12, V-13, V-14, V-19."""
    if facts.path in facts.roots:
        yield finding("V-12", BLOCK, (), 0, f"{facts.path} is a folder of models")
    for name in facts.same_path:
        yield finding("V-12", BLOCK, (), 0, f"{facts.path} is the file of {name} too, on the same machine")
    if facts.is_foreign:
        yield finding("V-13", BLOCK, (), 0, f"{facts.path} was not written by Quartermaster: import it, or replace it")
    if facts.drift:
        yield finding("V-14", BLOCK, (), 0, f"the file {facts.drift}: decide on the Drift page")
    for name in facts.same_ports:
        yield finding("V-19", WARN, (), 0, f"the router of {name}, on the same machine, hands out the same ports")


def files_of(outline: Outline, *, windows: bool = False) -> dict[str, str]:
    """Every file that a command names by its whole path -> the first model that needs it."""
    is_absolute = ntpath.isabs if windows else posixpath.isabs
    found: dict[str, str] = {}
    for name, model in outline.models.items():
        for path in _paths(model):
            if is_absolute(path):
                found.setdefault(path, name)
    return found


def adapters_of(outline: Outline, *, windows: bool = False) -> list[str]:
    """The whole paths of LoRA adapters, and of folders of them, that commands name."""
    is_absolute = ntpath.isabs if windows else posixpath.isabs
    found = {path for model in outline.models.values() for path in _named(model, ADAPTER_FLAGS)}
    return sorted(path for path in found if is_absolute(path))


def adapters_among(words: Sequence[str], *, windows: bool = False) -> list[str]:
    """The same of the words of one command."""
    flags: dict[str, list[str]] = {}
    for flag, value in pairwise(words):
        flags.setdefault(flag, []).append(value)
    return adapters_of(Outline({"": ModelOutline(flags=flags)}), windows=windows)


def _paths(model: ModelOutline) -> Iterator[str]:
    """The program's words, and the values of flags that name a file."""
    words = model.program.split(" ")
    if words[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") in ELSEWHERE:
        return
    if isinstance(guard := model.flags.get(GUARD, ""), str):
        yield guard.partition(" --")[0]
    program, verb, rest = model.program.partition(" serve ")  # vllm takes the model as a word of its own
    if " " not in program or not verb:
        yield program  # with blanks of its own, where it is quoted in the file
    yield rest
    yield from _named(model, FILE_FLAGS)


def _named(model: ModelOutline, flags: Collection[str]) -> Iterator[str]:
    """The values of these flags, which are paths."""
    for flag, value in model.flags.items():
        key = flag.lstrip("-")
        if key not in flags:
            continue
        for text in (value,) if isinstance(value, str) else value:
            if key == "lora":
                yield from text.split(",")
            else:
                yield _without_scale(text) if key == "lora-scaled" else text


def _without_scale(text: str) -> str:
    """`path:scale` or `path scale`, as llama-server takes them."""
    head, mark, tail = text.replace(" ", ":").rpartition(":")
    try:
        float(tail)
    except ValueError:
        return text
    return head if mark else text


def file_findings(files: Mapping[str, str], gone: Collection[str]) -> Iterator[CheckFinding]:
    """V-07: files that the host reported as gone."""
    lost = sorted(path for path in files if path in gone)
    for path in lost[:MOST_NAMED]:
        yield finding("V-07", BLOCK, ("models", files[path]), 0, f"{path} is not there any more")
    if len(lost) > MOST_NAMED:
        yield finding("V-07", BLOCK, (), 0, f"{len(lost) - MOST_NAMED} more files are not there any more")


def stale_findings(age_minutes: int | None) -> Iterator[CheckFinding]:
    """V-07 where the last look at the folders is old: the host looks again before it writes."""
    if age_minutes is None:
        yield finding("V-07", WARN, (), 0, "the folders were not looked at yet; the host looks before it writes")
    elif age_minutes >= 10:
        text = f"the folders were looked at {age_minutes} minutes ago; the host looks again before it writes"
        yield finding("V-07", WARN, (), 0, text)


def note_findings(text: str) -> Iterator[CheckFinding]:
    """V-17: what a dialect could not say stands in the notes of the file."""
    for number, line in enumerate(text.split("\n", MOST_LINES)[:MOST_LINES], 1):
        body = line.lstrip("#; ")
        if body.startswith(("NOTE: ", "WARNING: ")):
            yield finding("V-17", NOTE, (), number, body.partition(": ")[2])


def program_findings(
    outline: Outline, planned: Collection[str], programs: Collection[str], guard: str = "", *, windows: bool = False
) -> Iterator[CheckFinding]:
    """V-04 for the entries that are `planned`: each starts with one of these programs, perhaps behind the spawn guard.

    `guard` is where the host has it, "" where that is not known. What people wrote by hand starts as they say.
    """
    known = {_same_path(path, windows) for path in programs}
    strange: dict[str, list[str]] = {}
    for name, model in outline.models.items():
        if name not in planned or not model.program:
            continue
        before = str(model.flags.get(GUARD, ""))
        if before and guard and not _starts_with(before, {guard}):
            strange.setdefault(f"{before.partition(' --')[0]} is not the spawn guard of this host", []).append(name)
        if not _starts_with(_same_path(model.program, windows), known):
            strange.setdefault(f"{model.program} is no program that this host has for its models", []).append(name)
    for reason, names in list(strange.items())[:MOST_NAMED]:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield finding("V-04", BLOCK, ("models", names[0]), 0, f"{reason}; {names[0]}{others} would start with it")


def _same_path(path: str, windows: bool) -> str:
    return path.replace("\\", "/").casefold() if windows else path


def _starts_with(words: str, programs: Collection[str]) -> bool:
    """Whether words joined by blanks begin with one of these paths, which may hold blanks themselves."""
    return words in programs or any(words.startswith(f"{program} ") for program in programs)


def version_findings(before: str, after: str, untouched: Sequence[str]) -> Iterator[CheckFinding]:
    """V-21: models that change although nobody touched them, because the planner is another one."""
    if not untouched or not before or before == after:
        return
    names = ", ".join(untouched[:MOST_NAMED])
    more = f" and {len(untouched) - MOST_NAMED} more" if len(untouched) > MOST_NAMED else ""
    yield finding("V-21", NOTE, (), 0, f"planned by {after} instead of {before}; nobody touched {names}{more}")
