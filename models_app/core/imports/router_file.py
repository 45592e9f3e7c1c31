"""A router's file as its entries and its other keys, each with its line: llama-swap, quartermaster, presets.

The text is hostile: it is parsed by the bounded readers of `export`, macros are expanded within their limits, and what
cannot be read is said with its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models_app.core.errors import ExportError, LaunchError
from models_app.core.export import load, presets
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.findings import CheckFinding
from models_app.core.export.presets import grammar, options, reading
from models_app.core.export.presets.grammar import DEFAULT_SECTION, GLOBAL_SECTION
from models_app.core.export.presets.writing import served_id
from models_app.core.export.router import expansion
from models_app.core.export.router.load_rules import INHERIT_TTL
from models_app.core.launch.macros import PORT, unsafe_macro
from models_app.core.launch.stored import model_path
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.spawn_guard.options import guard_apart

QUARTERMASTER_TOP = frozenset({"vramBudgetGB", "ramBudgetGB", "apiKeyModels", "promptEnhancers", "listeners"})
QUARTERMASTER_KEYS = frozenset({"estVramGB", "estRamGB", "audiocpp", "promptEnhancer", "slotCachePreamble"})
MODEL_ID = "${MODEL_ID}"
SLEEP = "sleep-idle-seconds"


class ImportFailed(ExportError):
    """A file that cannot be read at all. `line` counts from 1, 0 where none is to blame."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry. `argv` are the words that the router would run, `${PORT}` in place; none where `problem` says why.

    `keys` are all keys but the command as they stand in the file, `whole` the entry itself.
    """

    id: str
    line: int
    argv: tuple[str, ...] = ()
    problem: str = ""
    keys: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)
    guard: tuple[str, ...] = ()
    """The spawn guard and its options in front of the command, () without one."""
    ttl_seconds: int = 0
    """After which idle time it is unloaded, whoever says so; 0 is never."""

    @property
    def program(self) -> str:
        return self.argv[0] if self.argv else ""

    @property
    def path(self) -> str:
        """The model file of the command, "" where it names none."""
        return model_path(self.argv)

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)


@dataclass(frozen=True, slots=True)
class RouterFile:
    """`top` are the keys beside the models, `findings` what `check` says of the file."""

    dialect: str
    entries: tuple[FileEntry, ...]
    top: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[CheckFinding, ...] = ()


def dialect_of(name: str, data: bytes) -> str:
    """Which router a file is for, by its name and what it holds."""
    if name.lower().endswith((".ini", ".conf")):
        return presets.SLUG
    first = next((line for line in data[:65536].splitlines() if line.strip() and line.strip()[:1] not in b"#;"), b"")
    if first.startswith(b"[") or (b"=" in first and b":" not in first.partition(b"=")[0]):
        return presets.SLUG
    try:
        value = load.load(load.decode(data)).value
    except load.LoadError:
        return "llama-swap"
    models = value.get("models") if isinstance(value, dict) else None
    entries = (
        [entry for entry in (models or {}).values() if isinstance(entry, dict)] if isinstance(models, dict) else []
    )
    ours = isinstance(value, dict) and bool(QUARTERMASTER_TOP & value.keys())
    return "quartermaster" if ours or any(QUARTERMASTER_KEYS & entry.keys() for entry in entries) else "llama-swap"


def read_router_file(data: bytes, dialect: str, rules: str = POSIX) -> RouterFile:
    """The file in one of the dialects. Raises `ImportFailed`."""
    findings = tuple(BY_SLUG[dialect].check(data, rules))
    return _presets(data, findings) if dialect == presets.SLUG else _yaml(data, dialect, rules, findings)


def _yaml(data: bytes, dialect: str, rules: str, findings: tuple[CheckFinding, ...]) -> RouterFile:
    try:
        tree = load.load(load.decode(data))
        load.require_finite(tree)
    except load.LoadError as error:
        raise ImportFailed(error.message, error.line) from error
    config = tree.value if tree.value is not None else {}
    if not isinstance(config, dict):
        raise ImportFailed("the file must be a mapping with models", tree.line)
    models = tree.child("models")
    if models is not None and models.value is not None and not isinstance(models.value, dict):
        raise ImportFailed("models must be a mapping of ids", models.line)
    macros = config.get("macros")
    if expanded_length(config) > expansion.MAX_EXPANDED_TOTAL:
        raise ImportFailed("its macros make too much text of it", tree.line_of(("macros",)))
    context = _Context(dialect, rules, macros if isinstance(macros, dict) else {}, _seconds(config.get("globalTTL"), 0))
    found = models if models is not None else load.Node({}, 0)
    entries = tuple(_entry(name, node, found.key_line(name), context) for name, node in found.pairs.items())
    top = {name: node for name, node in tree.pairs.items() if name != "models"}
    return RouterFile(
        dialect,
        entries,
        {name: node.value for name, node in top.items()},
        {name: tree.key_line(name) for name in top},
        findings,
    )


@dataclass(frozen=True, slots=True)
class _Context:
    dialect: str
    rules: str
    macros: dict[str, Any]
    global_ttl_seconds: int


def expanded_length(config: Mapping[str, Any]) -> int:
    """The most characters that all commands together may have with their macros replaced once."""
    macros = config.get("macros")
    longest = max((len(str(value)) for value in macros.values()), default=0) if isinstance(macros, dict) else 0
    models = config.get("models")
    commands = (str(entry.get("cmd")) for entry in (models or {}).values() if isinstance(entry, dict))
    return sum(len(command) + command.count("${") * longest for command in commands)


def _seconds(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _entry(name: str, node: load.Node, line: int, context: _Context) -> FileEntry:
    whole = node.value if isinstance(node.value, dict) else {}
    problem, argv = "", tuple[str, ...]()
    guard = tuple[str, ...]()
    if not isinstance(node.value, dict):
        problem = "it is no mapping"
    else:
        words, problem = _words(name, whole, context)
        guard, command = guard_apart(words)
        argv = tuple(command)
    ttl = whole.get("ttl", INHERIT_TTL)
    return FileEntry(
        id=name,
        line=line,
        argv=argv,
        problem=problem,
        keys={key: value for key, value in whole.items() if key != "cmd"},
        lines={key: node.key_line(key) for key in node.pairs},
        whole=whole,
        guard=guard,
        ttl_seconds=_seconds(ttl, context.global_ttl_seconds),
    )


def _words(name: str, fields: dict[str, Any], context: _Context) -> tuple[tuple[str, ...], str]:
    """The words of an entry's command, or why it has none that we could write as ours."""
    command = fields.get("cmd")
    if not isinstance(command, str) or not command.strip():
        return (), "it has no command"
    own = fields.get("macros")
    scope = {"MODEL_ID": name, **context.macros, **(own if isinstance(own, dict) else {})}
    try:
        expanded = expansion.expanded("cmd", expansion.without_comments(command), scope)
        words = split_command(str(expanded), context.rules)
    except expansion.ExpansionError as error:
        return (), str(error)
    except LaunchError as error:
        return (), str(error)
    if found := unsafe_macro(" ".join(words), allow_port=True):
        return (), f"its command holds {found.replace('${', '$ {')}…, which only the router can replace"
    if sum(word.count(PORT) for word in words) != 1:
        return (), "its command does not take the router's port once, so it listens where only it knows"
    return tuple(words), ""


def _presets(data: bytes, findings: tuple[CheckFinding, ...]) -> RouterFile:
    try:
        text = reading.decode(data)
        sections = {section.name: section for section in grammar.parse(text)}
        models = reading.read(text).models
    except grammar.PresetSyntaxError as error:
        raise ImportFailed(str(error), error.line) from error
    except reading.PresetError as error:
        raise ImportFailed(str(error), next((item.line for item in findings if item.severity == "block"), 0)) from error
    entries = []
    for name, section in sections.items():
        served = served_id(name)
        if name == GLOBAL_SECTION or (name == DEFAULT_SECTION and served not in models):
            continue
        entries.append(_section(section, served, models[served]))
    top: dict[str, Any] = {}
    lines: dict[str, int] = {}
    if GLOBAL_SECTION in sections:
        everywhere = sections[GLOBAL_SECTION]
        top[GLOBAL_SECTION] = {pair.key: pair.value for pair in everywhere.pairs}
        lines[GLOBAL_SECTION] = everywhere.line
    return RouterFile(presets.SLUG, tuple(entries), top, lines, findings)


def _section(section: grammar.Section, served: str, given: Mapping[str, str]) -> FileEntry:
    """A section as the command that the router makes of it: its own options in order, then inherited ones."""
    known = options.by_key()
    lines = {known[pair.key].name if pair.key in known else pair.key: pair.line for pair in section.pairs}
    passed = reading.passed(given)
    ordered = [name for name in lines if name in passed] + [name for name in passed if name not in lines]
    argv = ["llama-server"]
    sleep = 0
    for name in ordered:
        option = options.by_key()[name]
        if name == SLEEP:
            sleep = int(passed[name]) if passed[name].isdigit() and len(passed[name]) < 10 else 0
        elif not option.is_switch:
            argv += [f"--{name}", passed[name]]
        else:
            argv.append(f"--{name}" if passed[name] == "true" else _negated(option))
    kept = {name: value for name, value in given.items() if name not in passed}
    problem = "" if "model" in passed else "it names no model file"
    return FileEntry(
        id=served,
        line=section.line,
        argv=() if problem else (*argv, "--port", PORT),
        problem=problem,
        keys=kept,
        lines=lines,
        whole=dict(given),
        ttl_seconds=sleep,
    )


def _negated(option: options.Option) -> str:
    return next((flag for flag in option.negated if flag.startswith("--")), option.negated[0])
