"""`check --dialect llama-server`: what can be said of a preset file from its text alone (router-llama-server.md 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from models_app.core.export.document import Document
from models_app.core.export.findings import BLOCK, NOTE, WARN, CheckFinding, finding
from models_app.core.export.load import MAX_BYTES
from models_app.core.export.presets import options as table
from models_app.core.export.presets.doubts import KEYS, doubts_of
from models_app.core.export.presets.grammar import (
    DEFAULT_SECTION,
    GLOBAL_SECTION,
    VERSION_KEY,
    Pair,
    PresetSyntaxError,
    Section,
    parse,
)
from models_app.core.export.presets.options import FALSE_WORDS, TRUE_WORDS, Option
from models_app.core.export.presets.reading import byte_order, given_value, last_of_each, names_in, options_of, read
from models_app.core.export.presets.writing import MAX_VALUE_BYTES, served_id

DEFAULT_MODELS_MAX = 4
POOLINGS = frozenset({"none", "mean", "cls", "last", "rank"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RUN = re.compile(r"^[ \t]*;[ \t]*RUN:.*?--models-max[ =](-?\d+)", re.MULTILINE)


class Found(NamedTuple):
    """One finding with its place. `key` is spelled as in the line."""

    rule: str
    severity: str
    section: str
    key: str
    line: int
    message: str

    def as_finding(self) -> CheckFinding:
        where = [part for part in (self.section, self.key) if part]
        return finding(self.rule, self.severity, where, self.line, self.message)


@dataclass(frozen=True)
class _File:
    """A parsed file. Rules look at what the router reads: of a header that comes twice only the later section."""

    text: str
    sections: Sequence[Section]

    @cached_property
    def effective(self) -> list[Section]:
        found = last_of_each(self.sections).values()
        return [section for section in found if section.name != DEFAULT_SECTION or _says_something(section)]

    @cached_property
    def models(self) -> list[Section]:
        """Sections that are models, in the router's order."""
        found = [section for section in self.effective if section.name != GLOBAL_SECTION]
        return sorted(found, key=lambda section: byte_order(section.name))

    @cached_property
    def everywhere(self) -> dict[str, str]:
        return next((_options(section) for section in self.effective if section.name == GLOBAL_SECTION), {})

    def options(self, section: Section) -> dict[str, str]:
        return {**self.everywhere, **_options(section)}

    def pairs(self) -> Iterator[tuple[Section, Pair, Option]]:
        """Every known key that the router reads."""
        for section in self.effective:
            for pair in section.pairs:
                option = table.by_key().get(pair.key)
                if option is not None and pair.key != VERSION_KEY:
                    yield section, pair, option


def _says_something(section: Section) -> bool:
    return any(pair.key != VERSION_KEY for pair in section.pairs)


def _options(section: Section) -> dict[str, str]:
    return options_of(pair for pair in section.pairs if pair.key in table.by_key())


def check_bytes(data: bytes) -> list[CheckFinding]:
    """Findings of a file as it lies on disk, in the order of its lines."""
    found = sorted(findings_of(data), key=lambda item: (item.line, item.rule, item.section, item.key))
    return [item.as_finding() for item in found]


def findings_of(data: bytes) -> list[Found]:
    """The same with their places apart. What cannot be parsed is not judged further."""
    try:
        text = _decoded(data)
        sections = parse(text)
    except _NotText as problem:
        return [Found("LS-01", BLOCK, "", "", problem.line, str(problem))]
    except PresetSyntaxError as problem:
        return [Found("LS-02", BLOCK, "", "", problem.line, str(problem))]
    file = _File(text, sections)
    return [item for rule in RULES for item in rule(file)]


class _NotText(ValueError):
    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def _decoded(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise _NotText(f"the file is larger than {MAX_BYTES >> 20} MiB")
    if data.startswith(b"\xef\xbb\xbf"):
        raise _NotText("the file begins with a byte order mark, which the router refuses", 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _NotText(f"byte {error.start} is not UTF-8", line) from error
    if "\0" in text:
        raise _NotText("the file holds a NUL byte", text.count("\n", 0, text.index("\0")) + 1)
    return text


def _keys(file: _File) -> Iterator[Found]:
    """LS-03, LS-07 to LS-10: keys that refuse the file, keep a model from running, or only look safe."""
    for section in file.effective:
        for pair in section.pairs:
            if pair.key not in table.by_key() and pair.key != VERSION_KEY:
                message = f"{pair.key} is no option of llama-server: the router refuses the whole file"
                yield Found("LS-03", BLOCK, section.name, pair.key, pair.line, message)
    for section, pair, option in file.pairs():
        for rule, message in _blocking(option, pair):
            yield Found(rule, BLOCK, section.name, pair.key, pair.line, message)


def _blocking(option: Option, pair: Pair) -> Iterator[tuple[str, str]]:
    value = given_value(option, pair.key, pair.value)
    if option.handling == table.TWO_VALUES:
        yield "LS-07", f"{pair.key} takes two values: the router refuses the file, or hangs when it reloads it"
    if option.handling == table.REMOVED:
        yield "LS-08", f"{pair.key} was removed: the model's process ends when it reads it"
    if option.name in table.EXITS and value not in FALSE_WORDS:
        yield "LS-08", f"{pair.key} prints something and ends the model's process"
    if option.name == "pooling" and value not in POOLINGS:
        yield "LS-08", f"{value or 'an empty value'} is no pooling: one of {', '.join(sorted(POOLINGS))}"
    if option.name in KEYS:
        yield "LS-09", f"{pair.key} has no effect in this file: the router stays open. Give it the key when it starts"
    if len(pair.value.encode()) > MAX_VALUE_BYTES:
        yield "LS-10", f"the value is longer than {MAX_VALUE_BYTES:,} bytes: no process can be started with it"


def _doubled(file: _File) -> Iterator[Found]:
    """LS-04: the router keeps one of two sections with one name, without a word."""
    first: dict[str, Section] = {}
    for section in file.sections:
        if not section.line:
            continue
        name = section.name if section.name == GLOBAL_SECTION else served_id(section.name)
        earlier = first.setdefault(name, section)
        if earlier is not section:
            message = f"this section and the one in line {earlier.line} are one model, {name}: only one of them counts"
            yield Found("LS-04", BLOCK, section.name, "", section.line, message)


def _names(file: _File) -> Iterator[Found]:
    """LS-05, LS-19: names that clash, and ids that are served under another name."""
    taken: dict[str, str] = {}
    models = sorted(file.models, key=lambda section: byte_order(served_id(section.name)))
    for section in models:
        served = served_id(section.name)
        aliases = names_in(file.options(section).get("alias", ""))
        line, key = _alias_place(section)
        for name in (served, *aliases):
            owner = taken.setdefault(name, served)
            if owner != served:
                message = f"{name} is a name of {owner} too: the router does not start"
                yield Found("LS-05", BLOCK, section.name, key if name != served else "", line, message)
        if served != section.name and section.name not in aliases:
            message = f"the router lists it as {served}; requests for {section.name} fail. Add that as an alias"
            yield Found("LS-19", WARN, section.name, "", section.line, message)


def _alias_place(section: Section) -> tuple[int, str]:
    for pair in section.pairs:
        option = table.by_key().get(pair.key)
        if option is not None and option.handling == table.ALIAS:
            return pair.line, pair.key
    return section.line, ""


def _models(file: _File) -> Iterator[Found]:
    """LS-06, LS-12, LS-20, LS-23, LS-24: sections as such."""
    sources = {option.name for option in table.options() if option.names_model}
    for section in file.models:
        given = file.options(section)
        if not any(given.get(name) and given[name] not in FALSE_WORDS for name in sources):
            message = "no model: its process would become a router of its own, and requests would hang"
            yield Found("LS-06", BLOCK, section.name, "", section.line, message)
        if section.name != section.name.rstrip(" \t") or _CONTROL.search(section.name):
            message = "the name ends in a blank or holds a control character"
            yield Found("LS-12", BLOCK, section.name, "", section.line, message)
        if "," in section.name:
            message = "the model would call itself by what stands before the comma"
            yield Found("LS-23", WARN, section.name, "", section.line, message)
    for pair in file.sections[0].pairs:
        if pair.key != VERSION_KEY:
            message = f"before the first section this makes a model named {DEFAULT_SECTION}"
            yield Found("LS-20", WARN, DEFAULT_SECTION, pair.key, pair.line, message)
    for section in file.effective:
        if section.name == GLOBAL_SECTION:
            message = "[*] also reaches models of the download cache, and a change in it stops every model"
            yield Found("LS-24", NOTE, GLOBAL_SECTION, "", section.line, message)


def _values(file: _File) -> Iterator[Found]:
    """LS-13, LS-14, LS-16, LS-17, LS-21, LS-22, LS-25: values that do something else than they seem to."""
    for section, pair, option in file.pairs():
        for rule, message in doubts_of(option, pair):
            yield Found(rule, WARN, section.name, pair.key, pair.line, message)


def _repeated(file: _File) -> Iterator[Found]:
    """LS-15: one option twice. The last spelling in byte order counts, and of equal ones the last line."""
    for section in file.effective:
        given: dict[str, list[Pair]] = {}
        for pair in section.pairs:
            option = table.by_key().get(pair.key)
            if option is not None and pair.key != VERSION_KEY:
                given.setdefault(option.name, []).append(pair)
        for pairs in given.values():
            if len(pairs) > 1:
                counts = max(pairs, key=lambda pair: (byte_order(pair.key), pair.line))
                message = f"given {len(pairs)} times; this line counts"
                yield Found("LS-15", WARN, section.name, counts.key, counts.line, message)


def _startup(file: _File) -> Iterator[Found]:
    """LS-18: the router refuses to start with more models to load than it may hold."""
    wanted = [section for section in file.models if file.options(section).get("load-on-startup") in TRUE_WORDS]
    found = _RUN.search(file.text)
    limit = int(found[1]) if found else DEFAULT_MODELS_MAX
    if len(wanted) > max(limit, 0):
        message = f"{len(wanted)} models are to be loaded on startup, and --models-max is {limit}"
        yield Found("LS-18", WARN if limit > 0 else BLOCK, "", "", 0, message)


RULES: tuple[Callable[[_File], Iterator[Found]], ...] = (
    _keys,
    _doubled,
    _names,
    _models,
    _values,
    _repeated,
    _startup,
)


def verify(document: Document, text: str) -> list[CheckFinding]:
    """All findings of a rendered document: the file's own rules, and that it reads back as it was meant."""
    findings = check_bytes(text.encode("utf-8", "surrogatepass"))
    if any(item.rule in ("LS-01", "LS-02", "LS-03") for item in findings):
        return findings
    written = {
        entry.id: options_of(Pair(key, value, 0) for key, value in entry.fields.items()) for entry in document.entries
    }
    everywhere = written.pop(GLOBAL_SECTION, {})
    meant = {served_id(name): {**everywhere, **given} for name, given in written.items()}
    found = {name: dict(given) for name, given in read(text).models.items()}
    different = sorted(name for name in meant.keys() | found.keys() if meant.get(name) != found.get(name))
    return [
        *findings,
        *(finding("V-02", BLOCK, (name,), 0, "the text does not read back as it was meant") for name in different),
    ]
