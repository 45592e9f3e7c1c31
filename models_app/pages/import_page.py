"""An import as its page shows it: what each thing in the file is, where it goes, whether it is set here already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models_app.core.export.dialects import BY_SLUG
from models_app.core.imports.allotting import EXACT, RAW, SAME, SETTINGS
from models_app.core.imports.mapping import BACKENDS, MODELS
from models_app.core.imports.report import Item, Needs, Status
from models_app.models import ImportBatch
from models_app.pages.import_words import about, maps_to, shown
from models_app.pages.token_diff import TokenDiff, token_diff
from models_app.services.import_applying import LEVELS, items_of_batch
from models_app.services.import_sight import ImportSight
from quartermaster_site.access.permissions import Level
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import counted

MOST_OPEN = 150
"""Entries whose items are on the page; of the others it says how many there are."""
SECTION_TITLES = {
    BACKENDS: "Executables",
    MODELS: "Models of the file",
    "top": "Beside the models",
    "elsewhere": "Not in the file",
}
WORDS = {
    Status.NEW: ("act", "new", "up"),
    Status.SAME: ("", "same", "dash"),
    Status.CONFLICT: ("warn", "conflict", "warn"),
    Status.LOST: ("warn", "not representable", "warn"),
}
NEEDED = {
    Needs.EDIT: "",
    Needs.ARGUMENTS: "Commands of a file need the role admin.",
    Needs.MANAGE: "This needs the role admin.",
}
WAYS = {EXACT: "Exactly as written", SETTINGS: "As settings"}
WAY_WORDS = {
    SAME: ("ok", "as planned here", "ok"),
    EXACT: ("act", "to take over", "up"),
    RAW: ("warn", "kept as it is", "lock"),
}


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item. `number` is its place in the batch; `box` says whether it has a box of its own."""

    number: int
    source: str
    line: int
    maps_to: str
    value: str
    ours: str
    tone: str
    word: str
    shape: str
    notes: tuple[str, ...]
    way: str
    box: bool
    ticked: bool


@dataclass(frozen=True, slots=True)
class WayLine:
    slug: str
    label: str
    chosen: bool
    diff: TokenDiff | None
    held: str


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """One entry of the file. `name` is how its boxes are called in the form."""

    name: str
    id: str
    line: int
    tone: str
    word: str
    shape: str
    reason: str
    path: str
    variant: str
    ways: tuple[WayLine, ...]
    items: tuple[ItemLine, ...]
    hidden: int
    may_tick: bool
    conflicts: int
    """Items that are set here to something else, each with a box of its own."""
    command: str


@dataclass(frozen=True, slots=True)
class SectionBlock:
    slug: str
    title: str
    entries: tuple[EntryBlock, ...]
    items: tuple[ItemLine, ...]
    ticked: bool


@dataclass(frozen=True, slots=True)
class ImportView:
    kind: str
    chips: tuple[tuple[str, str], ...]
    headline: str
    details: str
    findings: tuple[Mapping[str, Any], ...]
    sections: tuple[SectionBlock, ...]
    may_apply: bool


def import_view(batch: ImportBatch, sight: ImportSight, asked: str = "") -> ImportView:
    """The report for a person; `asked` is the entry whose items are wanted beyond the first ones."""
    numbered = [(number, item) for number, item in enumerate(items_of_batch(batch)) if sight.sees(item)]
    items = [item for _, item in numbered]
    models = {name: found for name, found in sight.entries.items() if sight.sees_entry(name)}
    lines = [_item_line(number, item, sight.level_for(item), theirs=batch.takes_theirs) for number, item in numbered]
    slugs = dict.fromkeys([*SECTION_TITLES, *(item.section for item in items)])
    sections = [_section(slug, items, lines, models, sight, asked) for slug in slugs]
    exact = [found for found in models.values() if found["way"] == EXACT]
    identical = sum(found["after"].get(EXACT) == found["before"] for found in exact)
    return ImportView(
        kind=kind_words(batch),
        chips=_chips(items, sight),
        headline=_headline(models, identical, len(exact)),
        details=counted(len(models), "entry", "entries"),
        findings=tuple(item for item in batch.report.get("findings", []) if not sight.hides_text(item)),
        sections=tuple(section for section in sections if section.entries or section.items),
        may_apply=any(line.box or line.word == "new" for line in lines),
    )


def kind_words(batch: ImportBatch) -> str:
    """What kind of file it is."""
    if dialect := BY_SLUG.get(batch.dialect):
        return f"a file of {dialect.label}"
    return "a router's file" if batch.source == "config" else "a settings file"


def _headline(models: Mapping[str, Any], identical: int, exact: int) -> str:
    if not models:
        return ""
    kept = [found["way"] for found in models.values()]
    parts = []
    if same := kept.count(SAME):
        parts.append(f"{counted(same, 'command')} as planned here")
    if exact:
        parts.append(f"{identical:,} of {exact:,} identical, token for token, if taken over exactly as written")
    if raw := kept.count(RAW):
        parts.append(f"{raw:,} kept as raw fragments")
    return "; ".join(parts)


def _chips(items: Iterable[Item], sight: ImportSight) -> tuple[tuple[str, str], ...]:
    """(word, count) of each status, then what a person may not take over, and secrets."""
    found: dict[str, int] = {}
    for item in items:
        found[item.status.value] = found.get(item.status.value, 0) + 1
        if item.status != Status.SAME and LEVELS[item.needs] > sight.level_for(item):
            found["needs permission"] = found.get("needs permission", 0) + 1
        if item.secret:
            found["secret"] = found.get("secret", 0) + 1
    order = [*(status.value for status in Status), "needs permission", "secret"]
    return tuple((word, f"{found[word]:,}") for word in order if word in found)


def _section(
    slug: str,
    items: Sequence[Item],
    lines: Sequence[ItemLine],
    models: Mapping[str, Any],
    sight: ImportSight,
    asked: str,
) -> SectionBlock:
    own = [(item, line) for item, line in zip(items, lines, strict=True) if item.section == slug]
    if slug != MODELS or not models:
        return SectionBlock(slug, SECTION_TITLES.get(slug, slug.capitalize()), (), tuple(line for _, line in own), True)
    by_group: dict[str, list[ItemLine]] = {}
    for item, line in own:
        by_group.setdefault(item.group, []).append(line)
    numbers = {name: number for number, name in enumerate(sight.entries)}
    entries = [
        _entry(
            numbers[name],
            name,
            found,
            by_group.get(name, []),
            sight.level,
            is_open=numbers[name] < MOST_OPEN or name == asked,
        )
        for name, found in models.items()
    ]
    return SectionBlock(slug, SECTION_TITLES[MODELS], tuple(entries), (), True)


def _entry(
    number: int, name: str, found: Mapping[str, Any], lines: Sequence[ItemLine], level: Level, *, is_open: bool
) -> EntryBlock:
    tone, word, shape = WAY_WORDS[found["way"]]
    new = any(line.word == "new" for line in lines)
    return EntryBlock(
        name=str(number),
        id=name,
        line=found["line"],
        tone=tone,
        word=word,
        shape=shape,
        reason=found["reason"],
        path=found["path"],
        variant=found["variant"],
        ways=_ways(found, level) if is_open or found["way"] == EXACT else (),
        items=tuple(lines) if is_open else (),
        hidden=0 if is_open else len(lines),
        may_tick=new,
        conflicts=sum(line.word == "conflict" for line in lines),
        command=str(redact(" ".join(found["before"]))),
    )


def _ways(found: Mapping[str, Any], level: Level) -> tuple[WayLine, ...]:
    """Both ways of taking an entry over; a command word for word is the first choice of those who may."""
    if found["way"] != EXACT:
        return ()
    may = level >= Level.MANAGE
    return tuple(
        WayLine(
            slug,
            label,
            chosen=slug == (EXACT if may else SETTINGS),
            diff=token_diff(found["before"], found["after"].get(slug, [])),
            held="" if may or slug != EXACT else NEEDED[Needs.ARGUMENTS],
        )
        for slug, label in WAYS.items()
    )


def _item_line(number: int, item: Item, level: Level, *, theirs: bool = False) -> ItemLine:
    """`theirs`: whoever brought the file in wants what it says where both differ."""
    tone, word, shape = WORDS[item.status]
    missing = LEVELS[item.needs] > level and item.status in (Status.NEW, Status.CONFLICT)
    held = (NEEDED[item.needs] or "You may not edit this.") if missing else ""
    if held:
        tone, word, shape = "", "needs permission", "lock"
    alone = item.section != MODELS
    open_ = not held and item.status in (Status.NEW, Status.CONFLICT)
    return ItemLine(
        number=number,
        source=item.source,
        line=item.line,
        maps_to=maps_to(item.target) if item.section == MODELS else f"{about(item.target)}{maps_to(item.target)}",
        value=shown(item.value, secret=item.secret),
        ours=shown(item.ours, secret=item.secret) if item.status == Status.CONFLICT else "",
        tone=tone,
        word=word,
        shape=shape,
        notes=tuple(filter(None, (item.note, held, "Secret: masked here." if item.secret else ""))),
        way=WAYS.get(item.choice, ""),
        box=open_ and (alone or item.status == Status.CONFLICT),
        ticked=(item.status == Status.NEW and item.section != "elsewhere")
        or (theirs and item.status == Status.CONFLICT),
    )
