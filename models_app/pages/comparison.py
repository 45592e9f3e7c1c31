"""Two plans of one model side by side: what they share, what differs, and by how much.

Figures are those of the two plan panels, rounded as there; a difference is that of the rounded figures, so that it adds
up on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from models_app.core.catalog import Placement, Plan
from models_app.core.planning.kv_types import KvPair
from models_app.pages.context_curve import pair_text
from models_app.pages.memory_columns import PART_ORDER, Column, memory_columns, shown_terms
from models_app.pages.placement_text import placement_sentence
from models_app.pages.plan_panel import CommandLine, PlanPanel, command_lines
from quartermaster_site.figures import UNKNOWN, count, hundredths_text

BOTH, ONLY_A, ONLY_B = "both", "a", "b"


@dataclass(frozen=True, slots=True)
class Line:
    """One fact or figure of both sides. `change` is empty where nothing is to be counted."""

    label: str
    a: str
    b: str
    change: str = ""

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class Place:
    """The memory of one device, or of the host."""

    name: str
    lines: tuple[Line, ...]
    total: Line


@dataclass(frozen=True, slots=True)
class SidedText:
    """A sentence and whose it is."""

    side: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the page prints. `say` is the sentence at its head."""

    facts: tuple[Line, ...]
    places: tuple[Place, ...]
    reasons: tuple[SidedText, ...]
    command: tuple[CommandLine, ...]
    removed_count: int
    added_count: int
    say: str


def comparison(
    a: Plan, b: Plan, panels: tuple[PlanPanel, PlanPanel], *, device_names: Sequence[str], block_count: int
) -> Comparison:
    """The plan `a` against the plan `b`, with the panels made of them."""
    facts = _facts(a, b, panels, block_count)
    places = _places(a, b, device_names)
    command = _command_changes(a, b)
    removed = sum(line.css == "x" for line in command)
    added = sum(line.css == "c" for line in command)
    return Comparison(
        facts=facts,
        places=places,
        reasons=_sided(_why(panels[0]), _why(panels[1])),
        command=command,
        removed_count=removed,
        added_count=added,
        say=_say(facts, places, removed + added),
    )


def _say(facts: Sequence[Line], places: Sequence[Place], changed_words: int) -> str:
    """What differs, in one sentence."""
    names = [line.label for line in facts if line.differs]
    if not names and not changed_words and not any(place.total.differs for place in places):
        return "The two plans are the same."
    changes = [f"{place.name} {place.total.change} GiB" for place in places if place.total.differs]
    listed = ", ".join([name.lower() if name[1:2].islower() else name for name in names])
    memory = f"; memory of B against A: {', '.join(changes)}" if changes else "; memory is the same"
    return f"Different: {listed or 'the command'}{memory}."


def _facts(a: Plan, b: Plan, panels: tuple[PlanPanel, PlanPanel], block_count: int) -> tuple[Line, ...]:
    verdicts = tuple(panel.headline.partition(":")[0] for panel in panels)
    lines = [Line("Verdict", verdicts[0], verdicts[1])]
    if a.placement is None or b.placement is None:
        return tuple(lines)
    for label, left, right in zip(
        _LABELS, _placed(a.placement, block_count), _placed(b.placement, block_count), strict=True
    ):
        if label != "Split" or left != right or left != UNKNOWN:
            lines.append(Line(label, left, right))
    return tuple(lines)


_LABELS = (
    "Context per conversation",
    "Conversations at once",
    "Cache type",
    "Placement",
    "Split",
    "Micro-batch",
    "Batch",
)


def _placed(placement: Placement, block_count: int) -> tuple[str, ...]:
    """One text for each of the labels."""
    return (
        count(placement.ctx_tokens),
        count(placement.slots),
        pair_text(KvPair(placement.type_k, placement.type_v)),
        placement_sentence(placement, block_count),
        " : ".join(f"{share:g}" for share in placement.tensor_split) or UNKNOWN,
        count(placement.ubatch),
        count(placement.batch),
    )


def _places(a: Plan, b: Plan, device_names: Sequence[str]) -> tuple[Place, ...]:
    """Every device that either plan uses, then RAM."""
    (devices_a, ram_a), (devices_b, ram_b) = memory_columns(a), memory_columns(b)
    places = []
    for index in range(max(len(devices_a), len(devices_b))):
        name = device_names[index] if index < len(device_names) else f"GPU {index}"
        places.append(_place(name, a, b, _column(devices_a, index), _column(devices_b, index)))
    return (*places, _place("RAM", a, b, ram_a, ram_b))


def _column(columns: Sequence[Column], index: int) -> Column | None:
    """The column of a device; None where that side plans without it."""
    return columns[index] if index < len(columns) else None


def _place(name: str, a: Plan, b: Plan, column_a: Column | None, column_b: Column | None) -> Place:
    by_key_a, by_key_b = _by_key(a, column_a), _by_key(b, column_b)
    labels = {term.key: term.label for plan in (a, b) for term in shown_terms(plan)}
    lines = [
        _figures(labels[key], by_key_a.get(key), by_key_b.get(key))
        for key in PART_ORDER
        if key in by_key_a or key in by_key_b
    ]
    total = _figures("Total", column_a.total if column_a else None, column_b.total if column_b else None)
    return Place(name, tuple(lines), total)


def _by_key(plan: Plan, column: Column | None) -> dict[str, int]:
    """Steps of the terms that hold anything there."""
    if column is None:
        return {}
    figures = zip(shown_terms(plan), column.sizes, column.steps, strict=True)
    return {term.key: steps for term, size, steps in figures if size}


def _figures(label: str, a: int | None, b: int | None) -> Line:
    left, right = (UNKNOWN if steps is None else hundredths_text(steps) for steps in (a, b))
    difference = (b or 0) - (a or 0)
    sign = "+" if difference > 0 else "−"
    return Line(label, left, right, f"{sign}{hundredths_text(abs(difference))}" if difference else "")


def _why(panel: PlanPanel) -> list[str]:
    return [line.text for line in panel.reasons] + list(panel.suggestions)


def _sided(a: Sequence[str], b: Sequence[str]) -> tuple[SidedText, ...]:
    """Sentences in order; those that both have once."""
    found = []
    for tag, left, right in _changes(a, b):
        found += [SidedText(BOTH, text) for text in left if tag == "equal"]
        found += [SidedText(ONLY_A, text) for text in left if tag != "equal"]
        found += [SidedText(ONLY_B, text) for text in right if tag != "equal"]
    return tuple(found)


def _command_changes(a: Plan, b: Plan) -> tuple[CommandLine, ...]:
    """The command of A as it becomes that of B: x for what only A has, c for what only B has."""
    lines = []
    for tag, left, right in _changes(_words(a), _words(b)):
        if tag == "equal":
            lines += [CommandLine(text, "", "") for text in left]
        else:
            lines += [CommandLine(text, "x", "only A") for text in left]
            lines += [CommandLine(text, "c", "only B") for text in right]
    return tuple(lines)


def _words(plan: Plan) -> list[str]:
    """Flags with their values, as they run."""
    return [line.text for line in command_lines(plan) if line.css != "x"]


def _changes(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, Sequence[str], Sequence[str]]]:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return [(tag, a[i1:i2], b[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes()]
