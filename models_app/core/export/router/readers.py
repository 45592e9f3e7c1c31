"""The two routers that read our files, as data: which keys they know, of which type, and where they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from models_app.core.export.macros import REFERENCE_FIELDS


class Kind(Enum):
    """Types as Go's yaml.v3 decodes them."""

    TEXT = "text"
    INTEGER = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    MAPPING = "a mapping"


class Violation(NamedTuple):
    """One thing that keeps a file from loading. `rule` is the id of web.md 11.4, `path` leads to the place."""

    rule: str
    path: tuple[str | int, ...]
    message: str


SHARED_MODEL_KEYS: Mapping[str, Kind] = {
    "cmd": Kind.TEXT,
    "cmdStop": Kind.TEXT,
    "proxy": Kind.TEXT,
    "aliases": Kind.TEXTS,
    "env": Kind.TEXTS,
    "checkEndpoint": Kind.TEXT,
    "ttl": Kind.INTEGER,
    "unlisted": Kind.FLAG,
    "useModelName": Kind.TEXT,
    "name": Kind.TEXT,
    "description": Kind.TEXT,
    "concurrencyLimit": Kind.INTEGER,
    "filters": Kind.MAPPING,
    "macros": Kind.MAPPING,
    "metadata": Kind.MAPPING,
    "sendLoadingState": Kind.FLAG,
    "timeouts": Kind.MAPPING,
    "capabilities": Kind.MAPPING,
    "healthCheckTimeout": Kind.INTEGER,
}
REFERENCE_MODEL_KEYS: Mapping[str, Kind] = {
    **SHARED_MODEL_KEYS,
    "audiocpp": Kind.MAPPING,
    "estVramGB": Kind.NUMBER,
    "estRamGB": Kind.NUMBER,
    "promptEnhancer": Kind.TEXT,
    "promptEnhancerEdit": Kind.TEXT,
    "promptEnhancerPrompt": Kind.TEXT,
    "promptEnhancerEditPrompt": Kind.TEXT,
    "slotCachePreamble": Kind.FLAG,
}
SHARED_TOP_KEYS: Mapping[str, Kind] = {
    "healthCheckTimeout": Kind.INTEGER,
    "logRequests": Kind.FLAG,
    "logLevel": Kind.TEXT,
    "logTimeFormat": Kind.TEXT,
    "logToStdout": Kind.TEXT,
    "metricsMaxInMemory": Kind.INTEGER,
    "captureBuffer": Kind.INTEGER,
    "globalTTL": Kind.INTEGER,
    "startPort": Kind.INTEGER,
    "sendLoadingState": Kind.FLAG,
    "includeAliasesInList": Kind.FLAG,
    "apiKeys": Kind.TEXTS,
    "models": Kind.MAPPING,
    "groups": Kind.MAPPING,
    "matrix": Kind.MAPPING,
    "macros": Kind.MAPPING,
    "hooks": Kind.MAPPING,
    "routing": Kind.MAPPING,
    "peers": Kind.MAPPING,
}
CAPABILITY_KEYS: Mapping[str, Kind] = {
    "in": Kind.TEXTS,
    "out": Kind.TEXTS,
    "tools": Kind.FLAG,
    "reranker": Kind.FLAG,
    "context": Kind.INTEGER,
}
GROUP_KEYS: Mapping[str, Kind] = {
    "swap": Kind.FLAG,
    "exclusive": Kind.FLAG,
    "persistent": Kind.FLAG,
    "members": Kind.TEXTS,
}


@dataclass(frozen=True, slots=True)
class Reader:
    """How one router reads a file."""

    dialect: str
    modalities: tuple[str, ...]
    top_keys: Mapping[str, Kind]
    model_keys: Mapping[str, Kind]
    macro_fields: frozenset[str] | None
    """Model keys whose values may hold macros; None: every value of a model and of every known top-level key."""
    listeners: bool


REFERENCE = Reader(
    dialect="quartermaster",
    modalities=("text", "audio", "image", "video", "3d"),
    top_keys={
        **SHARED_TOP_KEYS,
        "vramBudgetGB": Kind.NUMBER,
        "ramBudgetGB": Kind.NUMBER,
        "slotCache": Kind.MAPPING,
        "apiKeyModels": Kind.MAPPING,
        "promptEnhancers": Kind.MAPPING,
        "listeners": Kind.MAPPING,
    },
    model_keys=REFERENCE_MODEL_KEYS,
    macro_fields=REFERENCE_FIELDS | {"cmd"},
    listeners=True,
)
LLAMA_SWAP = Reader(
    dialect="llama-swap",
    modalities=("text", "audio", "image"),
    top_keys={
        **SHARED_TOP_KEYS,
        "unloadTimeout": Kind.INTEGER,
        "store": Kind.MAPPING,
        "ui": Kind.MAPPING,
        "performance": Kind.MAPPING,
        "profiles": Kind.MAPPING,
        "selectors": Kind.MAPPING,
        "upstream": Kind.MAPPING,
    },
    model_keys={**SHARED_MODEL_KEYS, "unloadTimeout": Kind.INTEGER, "compat": Kind.MAPPING},
    macro_fields=None,
    listeners=False,
)
READERS: tuple[Reader, ...] = (REFERENCE, LLAMA_SWAP)

LONGEST_WHOLE = 1e21
"""From here on Go writes floats with an exponent."""

YES = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"})
NO = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"})


def text_of(value: Any) -> str:
    """A scalar as the readers write it into a text."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value):
            return ".nan"
        case float() if math.isinf(value):
            return ".inf" if value > 0 else "-.inf"
        case float() if value.is_integer() and abs(value) < LONGEST_WHOLE:
            return str(int(value))
    return str(value)


def decoded(kind: Kind, value: Any) -> Any:
    """A value as the reader's type. Raises `ValueError` where Go's decoder would refuse it; null gives None."""
    match kind, value:
        case _, None:
            return None
        case Kind.TEXT, str():
            return value
        case Kind.TEXT, bool() | int() | float():
            return text_of(value)
        case Kind.FLAG, bool():
            return value
        case Kind.FLAG, str() if value in YES | NO:
            return value in YES
        case ((Kind.INTEGER | Kind.NUMBER), bool()):
            pass
        case Kind.INTEGER, int():
            return value
        case Kind.INTEGER, float() if math.isfinite(value):
            return int(value)
        case Kind.NUMBER, int() | float():
            return value
        case Kind.TEXTS, list():
            return [decoded(Kind.TEXT, item) or "" for item in value]
        case Kind.MAPPING, dict():
            return value
    raise ValueError(f"expected {kind.value}")


def typed(fields: Mapping[str, Any], kinds: Mapping[str, Kind], where: tuple[str | int, ...]) -> dict[str, Any]:
    """The known fields with their reader's types; null ones are left out. Raises `TypeViolation`."""
    result: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in kinds:
            continue
        try:
            given = decoded(kinds[name], value)
        except ValueError as error:
            raise TypeViolation(Violation("V-02", (*where, name), f"{name}: {error}")) from error
        if given is not None:
            result[name] = given
    return result


class TypeViolation(Exception):
    """A value of a type that the reader refuses."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.message)
        self.violation = violation
