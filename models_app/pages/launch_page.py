"""The Launch tab: the final command with where each part comes from, and what the person's text changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from models_app.core.catalog import ArgToken, Plan
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.compose import CUSTOM, GENERATED, REPLACED
from models_app.core.launch.tokens import POSIX, join_tokens
from models_app.core.settings import Override, Settings
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import UNKNOWN, count, gib

_PLUMBING = {"model": "file", "port": "router", "host": "router", "corsOrigins": "always"}
_RAW = {"--port": "router", "--host": "router", "--model": "file", "--model-path": "file", "--codec": "paired"}
"""The same for servers without a flag table of their own."""
_PAIRED = frozenset({"mmproj", "mmprojFile", "mmprojOffload", "draftModel", "ngld"})
_HOST_KNOBS = frozenset({"threads"})
_FIELDS_OF_KNOB: dict[str, tuple[str, ...]] = {}
for _field in OVERRIDE_FIELDS:
    for _knob in _field.knobs:
        _FIELDS_OF_KNOB[_knob] = (*_FIELDS_OF_KNOB.get(_knob, ()), _field.attribute)
_ATTRIBUTES = {field.attribute: field for field in OVERRIDE_FIELDS}


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """One argument with its values. `css` is c for custom, x for replaced; `doubtful` marks a flag nobody knows."""

    text: str
    css: str
    note: str
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """The command as it will run, and in two forms to copy."""

    lines: tuple[LaunchLine, ...]
    summary: str
    one_line: str
    quoted: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of the plan without and with the person's text."""

    label: str
    generated: str
    yours: str

    @property
    def differs(self) -> bool:
        return self.generated != self.yours


def launch(
    plan: Plan,
    override: Override,
    settings: Settings,
    *,
    source: str = "this model",
    doubtful: Mapping[str, str] | None = None,
    rules: str = POSIX,
    without: Plan | None = None,
) -> Launch:
    """The command of one profile. `override` is what is pinned, `doubtful` what flags that nobody knows are called;
    `rules` are those by which its host splits commands. `without` is the plan without the person's text: what that
    replaces is shown as it was, not as the rest of the text would make it.
    """
    arguments = list(_as_without(_arguments(plan.tokens), without))
    replaced = _by_knob(arguments, REPLACED)
    added = _by_knob(arguments, CUSTOM)
    unknown = doubtful or {}
    lines = []
    for index, words in enumerate(arguments):
        text = str(redact(join_tokens([word.text for word in words])))
        head = words[0]
        name = head.text.partition("=")[0]
        if head.source == CUSTOM:
            swapped = redact(replaced.get(head.knob, ""))
            note = f"custom, replaces {swapped}" if swapped else "custom, added"
            if name in unknown:
                note = f"custom, {unknown[name]} argument"
            lines.append(LaunchLine(text, "c", note, name in unknown))
        elif head.source == REPLACED:
            lines.append(LaunchLine(text, "x", f"replaced by {redact(added.get(head.knob, 'custom arguments'))}"))
        else:
            note = "backend" if index == 0 else _RAW.get(head.text) or _origin(head.knob, override, settings, source)
            lines.append(LaunchLine(text, "", note))
    argv = [str(redact(word)) for word in plan.argv]
    return Launch(
        tuple(lines),
        _summary(arguments),
        str(redact(join_tokens(argv, rules))),
        str(redact(" \\\n  ".join(plan.lines))),
    )


def _as_without(arguments: Iterable[list[ArgToken]], without: Plan | None) -> Iterable[list[ArgToken]]:
    """The arguments, those that were replaced as the other plan has them."""
    before: dict[str, list[list[ArgToken]]] = {}
    for words in _arguments(without.tokens) if without else ():
        before.setdefault(words[0].knob, []).append([replace(word, source=REPLACED) for word in words])
    for words in arguments:
        same = before.get(words[0].knob)
        if words[0].source != REPLACED or same is None:
            yield words
        elif same:
            yield same.pop(0)


def _arguments(tokens: Iterable[ArgToken]) -> Iterable[list[ArgToken]]:
    """Each flag with the values that follow it; the executable stands alone."""
    current: list[ArgToken] = []
    for token in tokens:
        starts = token.text.startswith("-") and not token.text[1:2].isdigit()
        if current and not starts and token.source == current[0].source:
            current.append(token)
            continue
        if current:
            yield current
        current = [token]
    if current:
        yield current


def _by_knob(arguments: Iterable[list[ArgToken]], source: str) -> dict[str, str]:
    return {
        words[0].knob: join_tokens([word.text for word in words])
        for words in arguments
        if words[0].source == source and words[0].knob
    }


def _summary(arguments: list[list[ArgToken]]) -> str:
    sources = [words[0].source for words in arguments]
    replaced = sources.count(REPLACED)
    taken = {words[0].knob for words in arguments if words[0].source == REPLACED}
    added = sum(words[0].source == CUSTOM and words[0].knob not in taken for words in arguments)
    generated = sources.count(GENERATED)
    return f"{count(generated)} generated, {count(replaced)} replaced, {count(added)} added."


def _origin(knob: str, override: Override, settings: Settings, source: str) -> str:
    """Where a generated argument comes from."""
    if knob in _PLUMBING:
        return _PLUMBING[knob]
    for attribute in _FIELDS_OF_KNOB.get(knob, ()):
        if _ATTRIBUTES[attribute].is_set(getattr(override, attribute)):
            return source
    if knob in _PAIRED:
        return "paired"
    if knob in _HOST_KNOBS or (knob in ("kvK", "kvV") and settings.kv_quant):
        return "host setting"
    return "planner"


def comparisons(without: Plan, with_text: Plan, threads: Mapping[str, str]) -> list[Comparison]:
    """What the text changes; figures that this kind of model has not are left out. `threads` has both sides."""
    rows = [
        Comparison("VRAM, GiB", gib(without.est_vram_bytes), gib(with_text.est_vram_bytes)),
        Comparison("RAM, GiB", gib(without.est_ram_bytes), gib(with_text.est_ram_bytes)),
        Comparison("Context, tokens", _context(without), _context(with_text)),
        Comparison("Layers on the GPU (-ngl)", _layers(without), _layers(with_text)),
        Comparison("Context memory types", _types(without), _types(with_text)),
        Comparison("CPU threads", threads.get("generated", UNKNOWN), threads.get("yours", UNKNOWN)),
    ]
    return [row for row in rows if (row.generated, row.yours) != (UNKNOWN, UNKNOWN)]


def _context(plan: Plan) -> str:
    place = plan.placement
    if place is None:
        return UNKNOWN
    return count(place.ctx_tokens) + (f" × {place.slots}" if place.slots > 1 else "")


def _layers(plan: Plan) -> str:
    return count(plan.placement.gpu_layers) if plan.placement else UNKNOWN


def _types(plan: Plan) -> str:
    return f"{plan.placement.type_k}, {plan.placement.type_v}" if plan.placement else UNKNOWN
