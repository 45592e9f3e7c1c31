"""The controls of the editor as the page draws them: what each holds, what applies without it, and who set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models_app.core.fields import Field
from models_app.core.fields.field import CHOICE, INTEGER, INTEGERS, MODEL, MULTILINE, NUMBER, OWN, RECORDS, SWITCH
from models_app.core.fields.groups import GROUPS, OPEN_GROUPS, grouped
from models_app.core.planning.question import WINDOW_STEP
from models_app.core.settings import Settings
from models_app.core.state.checks import ROPE_FACTOR
from models_app.core.state.typed import control_text
from models_app.editor_form import NONE, EditorForm, mode_of

TRI, CHECK, SELECT, TEXT, AREA, SENTINEL = "tri", "check", "select", "text", "area", "sentinel"
PLANNER = "planner"
_MOST_RADIOS = 3
_LONGEST_AUTOMATIC = 24
_HOST_KEYS = frozenset({"vramTargetGB", "threads", "ttlSec", "dry"})
"""Fields whose automatic value is a setting of the host."""
_PRIORITIES = (("1", "Medium"), ("2", "High"), ("3", "Realtime"))
_WINDOWS = (8192, 16384, 32768, 65536, 131072)


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    text: str
    on: bool


@dataclass(frozen=True, slots=True)
class Slide:
    """A slider beside a window, in tokens. RoPE scaling lifts its end from `trained` to `scaled`."""

    step: int
    trained: int
    scaled: int
    now: int


@dataclass(frozen=True, slots=True)
class Control:
    """One field. `automatic` is what holds while it is empty; `locked` the flag of the launch text that owns it."""

    key: str
    label: str
    shape: str
    text: str
    help: str
    unit: str = ""
    options: tuple[Option, ...] = ()
    placeholder: str = ""
    origin: str = ""
    automatic: str = ""
    error: str = ""
    locked: str = ""
    inputmode: str = ""
    multiline: bool = False
    picks: tuple[Option, ...] = ()
    slide: Slide | None = None

    @property
    def set(self) -> bool:
        return bool(self.text) and not self.locked


@dataclass(frozen=True, slots=True)
class ControlGroup:
    slug: str
    title: str
    controls: tuple[Control, ...]
    is_open: bool
    nothing: str
    """What the summary says where nothing is set."""

    @property
    def has_set(self) -> bool:
        return any(control.set for control in self.controls)

    @property
    def summary(self) -> str:
        count = sum(control.set for control in self.controls)
        return f"{count} set" if count else self.nothing


@dataclass(frozen=True, slots=True)
class Facts:
    """What the page knows beside the form."""

    settings: Settings
    automatic: Mapping[str, Any] = field(default_factory=dict)
    """Values that hold while a field is empty, as the plan runs with them."""
    authors: Mapping[str, str] = field(default_factory=dict)
    """Key -> who set it last and when."""
    source: str = "this model"
    unset: str = PLANNER
    """Who decides where a field is empty, or in a variant where one is that it inherits."""
    inherited: Mapping[str, Any] = field(default_factory=dict)
    """A variant's model: what it hands down, by key."""
    backends: tuple[tuple[str, str], ...] = ()
    """(id, name) of the backends that may run the model."""
    chains: tuple[str, ...] = ()
    """Chains of speculative decoding that the model can run."""
    window_tokens: int = 0
    """What the plan of this form runs with, 0 where it has no window of its own."""


def control_groups(form: EditorForm, facts: Facts) -> list[ControlGroup]:
    """All controls of a form by group; a group in which something is set or wrong is open."""
    groups = []
    for slug, fields in grouped(form.fields).items():
        controls = tuple(control_of(form, row, facts) for row in fields)
        busy = any(control.set or control.error or control.locked for control in controls)
        nothing = "nothing set" if form.on_variant else "all automatic"
        groups.append(ControlGroup(slug, GROUPS[slug], controls, busy or slug in OPEN_GROUPS, nothing))
    return groups


def control_of(form: EditorForm, row: Field, facts: Facts) -> Control:
    """One control."""
    locked = form.locked.get(row.key, "")
    text = "" if locked else form.typed.get(row.key, "")
    automatic = "" if locked else _automatic(form, row, facts)
    shape = _shape(form, row, facts)
    return Control(
        key=row.key,
        label=row.label,
        shape=shape,
        text="" if shape == SENTINEL and mode_of(row, text) == NONE else text,
        help=_help(form, row),
        unit=row.unit,
        options=_options(form, row, facts, text, automatic),
        placeholder=automatic,
        origin=_origin(form, row, facts, text, locked),
        automatic=automatic if text else "",
        error=form.errors.get(row.key, ""),
        locked=locked,
        multiline=row.kind == MULTILINE,
        inputmode={INTEGER: "numeric", NUMBER: "decimal"}.get(row.kind, ""),
        picks=_picks(form, row, facts, text),
        slide=None if locked else _slide(form, row, facts),
    )


def _shape(form: EditorForm, row: Field, facts: Facts) -> str:
    if form.on_variant and row.sentinel:
        return SENTINEL
    if (row.key == "backend" and facts.backends) or row.key == "prio":
        return SELECT
    if row.kind == SWITCH:
        return TRI if row.nullable else CHECK
    if row.kind == CHOICE:
        return TRI if len(row.choices) <= _MOST_RADIOS else SELECT
    return AREA if row.kind in (MULTILINE, RECORDS) else TEXT


def _options(form: EditorForm, row: Field, facts: Facts, text: str, automatic: str) -> tuple[Option, ...]:
    empty = "Inherit" if form.on_variant else "Automatic"
    shape = _shape(form, row, facts)
    if shape == SENTINEL:
        now, first = mode_of(row, text), f"Inherit ({automatic})" if automatic else "Inherit"
        names = (("inherit", first), ("none", "None"), ("set", "Set"))
        return tuple(Option(value, name, value == now) for value, name in names)
    named: tuple[tuple[str, str], ...] = ()
    if row.key == "backend":
        named = facts.backends
    elif row.key == "prio":
        named = _PRIORITIES
    elif row.kind == SWITCH and row.nullable:
        named = (("on", "On"), ("off", "Off"))
    elif row.kind == CHOICE:
        named = tuple((value, _choice_name(value)) for value in row.choices)
    if not named:
        return ()
    first = f"{empty} ({automatic})" if automatic else empty
    chosen = text.strip().lower() if row.kind == CHOICE else text
    known = {value for value, _ in named}
    extra = ((text, f"{text} (not among the choices)"),) if chosen and chosen not in known else ()
    return tuple(Option(value, name, value == chosen) for value, name in (("", first), *named, *extra))


def _choice_name(value: str) -> str:
    if value in ("cpu", "gpu", "ram"):
        return value.upper()
    return value.capitalize() if value in ("on", "off", "auto", "none") else value


def _automatic(form: EditorForm, row: Field, facts: Facts) -> str:
    """What an empty control stands for, as text; blank where nothing is known or it would be too long."""
    if form.on_variant and row.key in facts.inherited:
        value: Any = facts.inherited[row.key]
    else:
        value = facts.automatic.get(row.key)
    if value is None:
        return ""
    if isinstance(value, float):
        value = round(value, 3)
    text = control_text(row, value) if row.kind not in (INTEGER, NUMBER) else control_text(row, value) or "0"
    if row.kind == SWITCH:
        text = "on" if value else "off"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_AUTOMATIC else text[:_LONGEST_AUTOMATIC] + "…"


def _help(form: EditorForm, row: Field) -> str:
    if row.key == "ctx" and form.limits.trained_tokens:
        return f"{row.help} Trained for {form.limits.trained_tokens:,}; more only with RoPE scaling."
    if form.on_variant and row.kind == MULTILINE:
        return "Kept byte for byte; used instead of the model's text."
    if row.limit == "layers" and form.limits.block_count:
        return f"{row.help} The model has {form.limits.block_count}."
    if row.kind == RECORDS:
        return f"{row.help} One a line: a file, then “ : ” and a scale where it has one."
    if row.kind == INTEGERS:
        return f"{row.help} Such as 32k, 64k."
    if row.kind == MODEL:
        return f"{row.help} The id of a chat model that is served."
    return row.help


def _origin(form: EditorForm, row: Field, facts: Facts, text: str, locked: str) -> str:
    if locked:
        return f"launch arguments own this: {locked}"
    if row.key == "ctx" and text and facts.window_tokens not in (0, form.reading.values.get("ctx", 0)):
        return f"runs with {facts.window_tokens:,}" + (", not saved yet" if row.key in form.touched else "")
    if row.key in form.touched:
        return "not saved yet"
    if text:
        author = facts.authors.get(row.key)
        return f"{facts.source} · {author}" if author else facts.source
    if form.on_variant and row.key in facts.inherited:
        return f"inherited: {_automatic(form, row, facts)}"
    inherits = form.on_variant and row.inherit != OWN
    if inherits and facts.unset != PLANNER:
        return facts.unset
    if row.key in _HOST_KEYS or (row.key in ("kvK", "kvV") and facts.settings.kv_quant):
        return "host setting"
    return PLANNER if form.on_variant else facts.unset


def _slide(form: EditorForm, row: Field, facts: Facts) -> Slide | None:
    """For a window of a chat model whose trained length is known."""
    trained = form.limits.trained_tokens // WINDOW_STEP * WINDOW_STEP
    if row.key != "ctx" or not facts.window_tokens or trained <= WINDOW_STEP:
        return None
    return Slide(WINDOW_STEP, trained, trained * ROPE_FACTOR, facts.window_tokens)


def _picks(form: EditorForm, row: Field, facts: Facts, text: str) -> tuple[Option, ...]:
    """Windows that the model was trained for, or chains that it can run, as buttons."""
    if row.key == "spec":
        return tuple(Option(chain, chain, chain == text) for chain in facts.chains)
    trained = form.limits.trained_tokens
    if row.key != "ctx" or not trained:
        return ()
    now = form.reading.values.get("ctx") if text else None
    return tuple(Option(str(tokens), f"{tokens // 1024}k", tokens == now) for tokens in _WINDOWS if tokens <= trained)
