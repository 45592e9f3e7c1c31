"""The validation rules that need nothing but the file: V-01 to V-06, V-15, V-20 (web.md 11.4). One implementation for
pages, for what is written, and for the verb `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from models_app.core.errors import LaunchError
from models_app.core.export import load, schema
from models_app.core.export.findings import BLOCK, WARN, CheckFinding, finding
from models_app.core.export.router.load_rules import Loaded, read_config
from models_app.core.export.secrets import SECRET_FLAGS, SECRET_SHAPES
from models_app.core.launch.tokens import POSIX, split_command, split_flag_token

MODEL_ID = "${MODEL_ID}"
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One parsed file and what its router makes of it."""

    tree: load.Node
    dialect: str
    loaded: Loaded
    rules: str

    def found(self, rule: str, severity: str, path: Path, message: str) -> CheckFinding:
        return finding(rule, severity, path, self.tree.line_of(path), message)

    @property
    def models(self) -> Mapping[str, Mapping[str, Any]]:
        return self.loaded.models

    def words(self, model_id: str) -> list[str] | LaunchError:
        """The words of a model's command, or why it has none. Not kept: of a large file they are megabytes."""
        try:
            return split_command(self.models[model_id]["cmd"], self.rules)
        except LaunchError as error:
            return error

    def given(self, model_id: str) -> Mapping[str, Any]:
        """A model as it stands in the file, macros in place."""
        node = self.tree.find(("models", model_id))
        return node.value if node is not None and isinstance(node.value, dict) else {}


def validate_bytes(data: bytes, dialect: str, rules: str = POSIX) -> list[CheckFinding]:
    """Findings of a file as it lies on disk, in the order of its lines."""
    try:
        return validate_text(load.decode(data), dialect, rules)
    except load.LoadError as error:
        return [finding("V-01", BLOCK, (), error.line, error.message)]


def validate_text(text: str, dialect: str, rules: str = POSIX) -> list[CheckFinding]:
    """Findings of a text in a dialect. `rules` are the word-splitting rules of the host."""
    try:
        tree = load.load(text)
    except load.LoadError as error:
        return [finding("V-01", BLOCK, (), error.line, error.message)]
    return validate_tree(tree, dialect, rules)


def validate_tree(tree: load.Node, dialect: str, rules: str = POSIX) -> list[CheckFinding]:
    """The same for a text that has been loaded already."""
    checked = CheckedFile(tree, dialect, read_config(dialect, tree.value), rules)
    findings = [item for rule in RULES for item in rule(checked)]
    return sorted(findings, key=lambda item: (item.line, item.rule, item.where))


def _dialect_rules(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-02 by the schema, then everything that keeps the router's loader from loading (V-02, V-03, V-05, V-06)."""
    broken: set[Path] = set()
    leads_there: set[Path] = set()
    value = checked.tree.value if checked.tree.value is not None else {}
    for problem in schema.problems(checked.dialect, value):
        broken.add(problem.path)
        leads_there.update(problem.path[:length] for length in range(1, len(problem.path)))
        yield checked.found("V-02", BLOCK, problem.path, problem.message)
    for violation in checked.loaded.violations:
        path = violation.path
        said = path in leads_there or any(path[:length] in broken for length in range(1, len(path) + 1))
        if violation.rule == "V-02" and said:
            continue
        yield checked.found(violation.rule, BLOCK, violation.path, violation.message)


def _names(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-03 beyond what the loader sees: an alias that hides behind an id, and names that differ in case only."""
    seen: dict[str, str] = {}
    for name, path in _named_places(checked):
        if path[-1] != name and name in checked.models:
            severity = WARN if path[1] == name else BLOCK
            yield checked.found("V-03", severity, path, f"alias {name} is also a model id, which wins")
        folded = name.casefold()
        if seen.setdefault(folded, name) != name:
            yield checked.found("V-03", WARN, path, f"{name} and {seen[folded]} differ only in upper and lower case")


def _named_places(checked: CheckedFile) -> Iterator[tuple[str, Path]]:
    for model_id in checked.models:
        yield model_id, ("models", model_id)
    for model_id, model in checked.models.items():
        for index, alias in enumerate(model["aliases"]):
            yield alias, ("models", model_id, "aliases", index)


def _commands(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-04: every command can be split into words."""
    for model_id in checked.models:
        words = checked.words(model_id)
        if isinstance(words, LaunchError):
            yield checked.found("V-04", BLOCK, ("models", model_id, "cmd"), f"{model_id}: {words}")


def _members(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-06 beyond what the loader sees: a member that is no model keeps the router from starting."""
    where: Path = ("groups",) if checked.tree.find(("groups",)) else ("routing", "router", "settings", "groups")
    known = _model_ids(checked)
    for name, fields in checked.loaded.groups.items():
        for index, member in enumerate(fields["members"]):
            if member not in known:
                path = (*where, name, "members", index)
                yield checked.found("V-06", BLOCK, path, f"group {name} lists {member}, which is no model of this file")


def _model_ids(checked: CheckedFile) -> set[str]:
    node = checked.tree.find(("models",))
    return set(node.pairs) if node is not None else set()


def _secrets(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-15: key material inside a command is readable in process lists and logs. The value itself is not repeated."""
    for model_id in checked.models:
        words = checked.words(model_id)
        if isinstance(words, list) and (flag := _secret_in(words)):
            message = f"{model_id}: {flag} looks like a secret; take it from a file or the environment"
            yield checked.found("V-15", WARN, ("models", model_id, "cmd"), message)


def _secret_in(words: list[str]) -> str:
    previous = ""
    for word in words:
        flag = split_flag_token(word)
        value = flag.value if flag.inline else word
        if "${env." not in value:
            if previous in SECRET_FLAGS or (flag.inline and flag.name in SECRET_FLAGS):
                return f"the value of {previous if previous in SECRET_FLAGS else flag.name}"
            if SECRET_SHAPES.match(value):
                return "an argument"
        previous = "" if flag.inline else word
    return ""


def _twins(checked: CheckedFile) -> Iterator[CheckFinding]:
    """V-20: two ids that start the same process for the same file. Commands are compared with `${PORT}` in place."""
    first: dict[tuple[str, ...], str] = {}
    for model_id in checked.models:
        given = checked.given(model_id)
        command = " ".join(str(given.get("cmd") or "").split())
        if not command or MODEL_ID in command or given.get("audiocpp"):
            continue
        key = (command, repr(given.get("env") or []), repr(given.get("macros") or {}))
        twin = first.setdefault(key, model_id)
        if twin != model_id:
            message = f"{model_id} runs the same command as {twin}"
            yield checked.found("V-20", WARN, ("models", model_id, "cmd"), message)


RULES: tuple[Callable[[CheckedFile], Iterator[CheckFinding]], ...] = (
    _dialect_rules,
    _names,
    _commands,
    _members,
    _secrets,
    _twins,
)
