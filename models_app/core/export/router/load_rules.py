"""Would the reading router load this file, and as what? (config-yaml.md 10.1 and 10.2)

Every rule yields violations instead of stopping at the first, so that a check can show all of them with their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models_app.core.export import load
from models_app.core.export.router import expansion, extras
from models_app.core.export.router.addresses import address_problem
from models_app.core.export.router.group_rules import group_violations
from models_app.core.export.router.readers import (
    CAPABILITY_KEYS,
    READERS,
    Reader,
    TypeViolation,
    Violation,
    typed,
)

DEFAULTS: Mapping[str, Any] = {
    "healthCheckTimeout": 120,
    "startPort": 5800,
    "globalTTL": 0,
    "logToStdout": "proxy",
}
MODEL_DEFAULTS: Mapping[str, Any] = {
    "cmd": "",
    "cmdStop": "",
    "aliases": (),
    "env": (),
    "checkEndpoint": "/health",
    "ttl": -1,
    "unlisted": False,
    "useModelName": "",
    "name": "",
    "description": "",
    "concurrencyLimit": 0,
}
MIN_HEALTH_TIMEOUT_SECONDS = 15
LOG_TARGETS = ("proxy", "upstream", "both", "none")
INHERIT_TTL = -1


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as the router holds it. With violations it does not load; the other fields are then best effort."""

    violations: tuple[Violation, ...] = ()
    top: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    catalogue: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def loads(self) -> bool:
        return not self.violations


def reader_of(dialect: str) -> Reader:
    return next(reader for reader in READERS if reader.dialect == dialect)


def load_config(dialect: str, text: str, environ: Mapping[str, str]) -> Loaded:
    """A text under a given environment. Raises nothing: a text that is no YAML has one violation."""
    try:
        names = expansion.environment_names(load.load(text))
        tree = load.load(expansion.with_environment(text, names, environ))
    except load.LoadError as error:
        return Loaded((Violation("V-01", (), str(error)),))
    except ValueError as error:
        return Loaded((Violation("V-05", (), str(error)),))
    return read_config(dialect, tree.value)


def read_config(dialect: str, config: Any) -> Loaded:
    """A parsed file, environment macros aside."""
    if config is None:
        config = {}
    if not isinstance(config, dict):
        return Loaded((Violation("V-02", (), "the file must be a mapping"),))
    return _Reading(reader_of(dialect), config).result()


class _Reading:
    """One pass over one file."""

    def __init__(self, reader: Reader, config: dict[str, Any]) -> None:
        self.reader = reader
        self.config = config
        self.violations: list[Violation] = []
        self.top: dict[str, Any] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, str] = {}
        self._length = 0

    def result(self) -> Loaded:
        macros = self._declared(self.config.get("macros"), ("macros",))
        self._read_top(macros)
        self._read_models(macros)
        self._read_aliases()
        grouping = group_violations(self.reader, self.top, self.models)
        self.violations += grouping.violations
        self.violations += extras.violations(self.reader, self.top, self.models, self.aliases, grouping.groups)
        return Loaded(tuple(self.violations), self.top, self.models, self.aliases, grouping.groups, grouping.catalogue)

    def _declared(self, macros: Any, where: tuple[str | int, ...]) -> dict[str, Any]:
        self.violations += expansion.macro_violations(macros, where)
        return macros if isinstance(macros, dict) else {}

    def _typed(self, fields: Mapping[str, Any], kinds: Any, where: tuple[str | int, ...]) -> dict[str, Any] | None:
        try:
            return typed(fields, kinds, where)
        except TypeViolation as error:
            self.violations.append(error.violation)
            return None

    def _read_top(self, macros: dict[str, Any]) -> None:
        config = {name: value for name, value in self.config.items() if name not in ("models", "macros")}
        if self.reader.macro_fields is None:
            try:
                config = {name: expansion.with_macros(value, macros) for name, value in config.items()}
            except expansion.ExpansionError as error:
                self.violations.append(Violation("V-05", ("macros",), str(error)))
        self.violations += expansion.top_leftovers(config, self.reader)
        self.top = {**DEFAULTS, **(self._typed(config, self.reader.top_keys, ()) or {})}
        self.top["healthCheckTimeout"] = max(MIN_HEALTH_TIMEOUT_SECONDS, self.top["healthCheckTimeout"])
        self.violations += _top_violations(self.top)

    def _read_models(self, macros: dict[str, Any]) -> None:
        models = self.config.get("models")
        if models is None:
            return
        if not isinstance(models, dict):
            self.violations.append(Violation("V-02", ("models",), "models must be a mapping"))
            return
        port = self.top["startPort"]
        for model_id in sorted(models):
            fields = models[model_id]
            if fields is not None and not isinstance(fields, dict):
                self.violations.append(Violation("V-02", ("models", model_id), "a model must be a mapping"))
                continue
            port += self._read_model(model_id, fields or {}, macros, port)
            if self._length > expansion.MAX_EXPANDED_TOTAL:
                message = f"macros make more than {expansion.MAX_EXPANDED_TOTAL:,} characters of all texts together"
                self.violations.append(Violation("V-05", ("models",), message))
                break

    def _read_model(self, model_id: str, fields: dict[str, Any], macros: dict[str, Any], port: int) -> int:
        """Adds one model; 1 when it took the port."""
        where = ("models", model_id)
        self._declared(fields.get("macros"), (*where, "macros"))
        try:
            expanded = expansion.expand_model(model_id, fields, macros, self.reader)
        except expansion.ExpansionError as error:
            self.violations.append(Violation("V-05", where, f"model {model_id}: {error}"))
            return 0
        self._length += expansion.length_of(expanded)
        takes_port = expansion.uses_port(expanded.get("cmd"))
        if takes_port:
            expanded = self._with_port(expanded, port)
        elif expansion.uses_port(expanded["proxy"]):
            message = f"model {model_id}: proxy uses ${{PORT}}, which only exists when cmd uses it"
            self.violations.append(Violation("V-05", (*where, "proxy" if "proxy" in fields else "cmd"), message))
            expanded["proxy"] = ""
        self.violations += expansion.leftovers(model_id, expanded, self.reader)
        decoded = self._typed(expanded, self.reader.model_keys, where)
        if decoded is not None:
            self._keep(model_id, decoded)
        return int(takes_port)

    def _with_port(self, fields: dict[str, Any], port: int) -> dict[str, Any]:
        searched = self.reader.macro_fields
        return {
            name: expansion.expanded(name, value, {"PORT": port}) if searched is None or name in searched else value
            for name, value in fields.items()
        }

    def _keep(self, model_id: str, decoded: dict[str, Any]) -> None:
        model = {**MODEL_DEFAULTS, **decoded}
        if model["ttl"] == INHERIT_TTL:
            model["ttl"] = self.top["globalTTL"]
        elif model["ttl"] < INHERIT_TTL:
            message = f"model {model_id}: invalid ttl {model['ttl']}"
            self.violations.append(Violation("V-02", ("models", model_id, "ttl"), message))
        if model.get("unloadTimeout", 0) < 0:
            message = f"model {model_id}: invalid unloadTimeout {model['unloadTimeout']}"
            self.violations.append(Violation("V-02", ("models", model_id, "unloadTimeout"), message))
        if problem := address_problem(model["proxy"]):
            message = f"model {model_id}: proxy is no address: {problem}"
            self.violations.append(Violation("V-02", ("models", model_id, "proxy"), message))
        self.violations += self._capability_violations(model_id, model.get("capabilities") or {})
        self.models[model_id] = model

    def _capability_violations(self, model_id: str, block: dict[str, Any]) -> Iterator[Violation]:
        where = ("models", model_id, "capabilities")
        capabilities = self._typed(block, CAPABILITY_KEYS, where) or {}
        for direction in ("in", "out"):
            for word in capabilities.get(direction, ()):
                if word not in self.reader.modalities:
                    known = ", ".join(self.reader.modalities)
                    message = f"model {model_id}: {direction} holds {word!r}, which is none of {known}"
                    yield Violation("V-02", (*where, direction), message)
        if capabilities.get("context", 0) < 0:
            yield Violation("V-02", (*where, "context"), f"model {model_id}: context must not be negative")

    def _read_aliases(self) -> None:
        for model_id, model in self.models.items():
            for index, alias in enumerate(model["aliases"]):
                if alias in self.aliases:
                    message = f"duplicate alias {alias} found in model: {model_id}"
                    self.violations.append(Violation("V-03", ("models", model_id, "aliases", index), message))
                self.aliases.setdefault(alias, model_id)
        for model_id, model in self.models.items():
            self._read_parameter_ids(model_id, (model.get("filters") or {}).get("setParamsByID"))

    def _read_parameter_ids(self, model_id: str, by_id: Any) -> None:
        """Keys of `filters.setParamsByID` are aliases too."""
        own = list(self.models[model_id]["aliases"])
        for name in by_id if isinstance(by_id, dict) else ():
            owner = name if name in self.models else self.aliases.setdefault(name, model_id)
            if owner != model_id:
                message = f"duplicate alias {name}: a setParamsByID key of {model_id} that belongs to {owner}"
                path = ("models", model_id, "filters", "setParamsByID", name)
                self.violations.append(Violation("V-03", path, message))
            elif name not in (model_id, *own):
                own.append(name)
        self.models[model_id]["aliases"] = own


def _top_violations(top: Mapping[str, Any]) -> Iterator[Violation]:
    if top["startPort"] < 1:
        yield Violation("V-02", ("startPort",), "startPort must be at least 1")
    if top["globalTTL"] < 0:
        yield Violation("V-02", ("globalTTL",), "globalTTL must not be negative")
    if top.get("unloadTimeout", 0) < 0:
        yield Violation("V-02", ("unloadTimeout",), "unloadTimeout must not be negative")
    if top["logToStdout"] not in LOG_TARGETS:
        yield Violation("V-02", ("logToStdout",), f"logToStdout must be one of: {', '.join(LOG_TARGETS)}")
    for index, api_key in enumerate(top.get("apiKeys") or ()):
        if not api_key or " " in api_key:
            problem = "holds a space" if api_key else "is empty"
            yield Violation("V-02", ("apiKeys", index), f"apiKeys[{index}] {problem}")
