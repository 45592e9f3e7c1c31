"""The plan panel as a page shows it: a core `Plan` turned into finished text, rows of a table and a drawing.

Nothing is computed anew: every figure is the plan's own, rounded once, so that columns add up and the drawing, the
table and the sentence agree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import MemoryTerm, Plan
from models_app.pages.component_words import WIRED
from models_app.pages.context_curve import CurveSection
from models_app.pages.device_list import MachineDevice, device_lines
from models_app.pages.how_text import HowPlace, how_places
from models_app.pages.layer_strip import LayerStrip, layer_strip
from models_app.pages.memory_columns import device_totals, memory_columns, shown_terms
from models_app.pages.placement_text import placement_sentence
from models_app.pages.verdict_text import details, headline
from quartermaster_site.access.redaction import redact
from quartermaster_site.drawings import MemoryBar, Part, Track, memory_bar
from quartermaster_site.figures import UNKNOWN, gib, hundredths_text

_COLOURS = {"runtime": "other", "measured": "headroom", "checkpoints": "other", "component": "projector"}
_SHORT = {"weights": "weights", "kv": "context", "compute": "compute", "projector": "projector", "drafter": "drafter"}
_TONES = {"fits": "ok", "spills": "warn", "over": "bad", "unknown": "warn", "unplanned": ""}
_ENGINES = {
    "exact": "Memory follows llama.cpp's own allocation rules.",
    "approximate": "This architecture is not known here yet: memory is a careful guess.",
    "classic": "The tensor table is incomplete: memory is estimated from the file size.",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the bar needs to know of a host. `target_bytes` is the pooled VRAM target."""

    devices: tuple[MachineDevice, ...]
    ram_total_bytes: int
    ram_budget_bytes: int

    def of_plan(self, plan: Plan) -> Machine:
        """With the devices that a plan's figures are about, in its order: a variant may use others than its model."""
        by_label = {device.label: device for device in self.devices}
        labels = [f"GPU {number}" for number in plan.device_numbers]
        known = labels and all(label in by_label for label in labels)
        return replace(self, devices=tuple(by_label[label] for label in labels)) if known else self


@dataclass(frozen=True, slots=True)
class PartRow:
    """One line of the memory table; `cells` is one text per device."""

    key: str
    colour: str
    label: str
    how: str
    cells: tuple[str, ...]
    vram: str
    ram: str
    places: tuple[HowPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasonLine:
    shape: str
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One argument with its values. `css` is c for custom, x for replaced."""

    text: str
    css: str
    note: str


@dataclass(frozen=True, slots=True)
class PlanPanel:
    """Everything the panel prints. `say` is the one sentence for assistive technology."""

    tone: str
    headline: str
    details: str
    say: str
    dock_word: str
    dock_text: str
    bar: MemoryBar | None
    columns: tuple[str, ...]
    parts: tuple[PartRow, ...]
    totals: PartRow | None
    engine: str
    strip: LayerStrip | None
    placement: str
    reasons: tuple[ReasonLine, ...]
    suggestions: tuple[str, ...]
    command: tuple[CommandLine, ...]
    command_text: str
    custom_count: int
    replaced_count: int
    profile_id: str
    environment: tuple[str, ...] = ()
    """Variables that the entry sets beside the command."""
    curve: CurveSection | None = None
    devices: tuple[str, ...] = ()
    """What each of several devices gets."""
    guarded: bool = False


def plan_panel(
    plan: Plan,
    machine: Machine,
    *,
    block_count: int,
    pinned: Collection[str] = (),
    curve: CurveSection | None = None,
    environment: Sequence[str] = (),
    guarded: bool = False,
) -> PlanPanel:
    """The panel of one profile. `pinned` are the knobs that a person set, `environment` is what its entry sets."""
    machine, say = machine.of_plan(plan), headline(plan, machine.ram_budget_bytes)
    labels = _labels(plan, machine)
    parts, totals = _table(plan, labels)
    placement = plan.placement
    return PlanPanel(
        tone=_TONES.get(plan.verdict, ""),
        headline=say,
        details=details(plan, block_count),
        say=say,
        dock_word=say.partition(":")[0],
        dock_text=say.partition(":")[2].strip(),
        bar=memory_bar(_tracks(plan, machine), _bar_label(plan, machine)),
        columns=labels if len(labels) > 1 else (),  # a single one would repeat the VRAM column
        parts=parts,
        totals=totals,
        engine=_ENGINES.get(plan.projection.engine, "") if plan.projection else "",
        strip=layer_strip(block_count, placement) if placement else None,
        placement=placement_sentence(placement, block_count) if placement else "",
        reasons=_reasons(plan),
        suggestions=plan.suggestions,
        command=command_lines(plan, pinned),
        command_text=str(redact(" \\\n  ".join(plan.lines))),
        custom_count=sum(token.source == "custom" for token in plan.tokens),
        replaced_count=sum(token.source == "replaced" for token in plan.tokens),
        profile_id=plan.profile_id,
        environment=tuple(environment) if plan.lines else (),
        guarded=guarded,
        curve=curve if plan.placement else None,
        devices=device_lines(machine.devices, placement, block_count) if placement else (),
    )


def _table(plan: Plan, labels: Sequence[str]) -> tuple[tuple[PartRow, ...], PartRow | None]:
    """The rows and the total: columns are rounded so that each sums to its total, rows sum by construction."""
    terms = shown_terms(plan)
    if not terms:
        return (), None
    devices, ram = memory_columns(plan)
    rows = []
    for row, term in enumerate(terms):
        cells = tuple(_cell(column.steps[row], column.sizes[row]) for column in devices)
        vram = _cell(sum(column.steps[row] for column in devices), sum(term.device_bytes))
        colour = _COLOURS.get(term.key, term.key)
        in_ram = _cell(ram.steps[row], term.ram_bytes)
        label = _part_name(term)
        rows.append(PartRow(term.key, colour, label, term.how, cells, vram, in_ram, how_places(term, labels)))
    total = PartRow(
        "total",
        "",
        "Total",
        "",
        tuple(hundredths_text(column.total) for column in devices),
        hundredths_text(sum(column.total for column in devices)),
        hundredths_text(ram.total),
    )
    return tuple(rows), total


def _part_name(term: MemoryTerm) -> str:
    """Component files go by their role in the launch."""
    name = WIRED.get(term.label, term.label) if term.key == "component" else term.label
    return f"{name[:1].upper()}{name[1:]}"


def _cell(steps: int, size_bytes: int) -> str:
    return hundredths_text(steps) if size_bytes else UNKNOWN


def _labels(plan: Plan, machine: Machine) -> tuple[str, ...]:
    """What the devices of the plan are called, in its order."""
    width = max((len(term.device_bytes) for term in plan.terms), default=0)
    known = [device.label for device in machine.devices]
    return tuple(known[place] if width <= len(known) else f"GPU {place}" for place in range(width))


def _tracks(plan: Plan, machine: Machine) -> list[Track]:
    terms = shown_terms(plan)
    totals = device_totals(plan)
    tracks = []
    for index, device in enumerate(machine.devices):
        parts = _parts(terms, [term.device_bytes[index] if index < len(term.device_bytes) else 0 for term in terms])
        used = hundredths_text(totals[index] if index < len(totals) else 0)
        note = f"{used} of {gib(device.budget_bytes)}"
        tracks.append(Track(device.name, note, parts, device.capacity_bytes, device.budget_bytes))
    ram = _parts(terms, [term.ram_bytes for term in terms])
    in_ram = sum(part.size_bytes for part in ram)
    if ram and (not machine.devices or plan.verdict in ("spills", "over")):
        note = f"{gib(in_ram)} of {gib(machine.ram_budget_bytes)}"
        tracks.append(Track("RAM", note, ram, machine.ram_total_bytes, machine.ram_budget_bytes))
    return tracks


def _parts(terms: list[MemoryTerm], sizes: list[int]) -> tuple[Part, ...]:
    return tuple(
        Part(_COLOURS.get(term.key, term.key), term.label, _SHORT.get(term.key, ""), size)
        for term, size in zip(terms, sizes, strict=True)
        if size > 0
    )


def _bar_label(plan: Plan, machine: Machine) -> str:
    sentences = [
        f"{track.name}: {track.note} GiB planned, {gib(track.capacity_bytes, 0)} GiB fitted."
        for track in _tracks(plan, machine)
    ]
    return f"Memory by device. {' '.join(sentences)} The table below has every figure."


def _reasons(plan: Plan) -> tuple[ReasonLine, ...]:
    lines = [ReasonLine(_shape(reason.kind), "", reason.text) for reason in plan.reasons]
    lines += [ReasonLine("info", "", _sentence(text)) for text in plan.notes]
    lines += [ReasonLine("warn", "warn", _sentence(text)) for text in plan.warnings]
    return tuple(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def _shape(kind: str) -> str:
    if "pinned" in kind:
        return "lock"
    return "dash" if "not-modelled" in kind else "info"


def command_lines(plan: Plan, pinned: Collection[str] = ()) -> tuple[CommandLine, ...]:
    """The command as one line per argument, each with its values; a custom or replaced one says so."""
    lines: list[CommandLine] = []
    for token in plan.tokens:
        css = {"custom": "c", "replaced": "x"}.get(token.source, "")
        note = {"custom": "custom", "replaced": "replaced"}.get(token.source, "")
        if not note and token.knob in pinned:
            note = "set here"
        starts = not lines or (token.text.startswith("-") and not token.text[1:2].isdigit())
        if starts or lines[-1].css != css:
            lines.append(CommandLine(token.text, css, note))
        else:
            lines[-1] = CommandLine(f"{lines[-1].text} {token.text}", css, lines[-1].note or note)
    return tuple(replace(line, text=str(redact(line.text))) for line in lines)
