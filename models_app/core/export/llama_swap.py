"""Dialect `llama-swap`: a document of the quartermaster dialect, made for plain llama-swap (config-yaml.md 12).

What that router cannot express is left out with a note, moved to `metadata`, or baked into the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.errors import ExportError
from models_app.core.export import matrix
from models_app.core.export.document import Companion, Document, Entry, Skipped
from models_app.core.export.guarding import guard_notes
from models_app.core.export.llama_swap_entry import Converted, convert_entry
from models_app.core.export.top import MIN_HEALTH_TIMEOUT_SECONDS
from models_app.core.launch.cpu_device import CPU

DROPPED_TOP = ("vramBudgetGB", "ramBudgetGB", "slotCache", "promptEnhancers")
"""Blocks without a counterpart, named in one note."""
MAX_NAMED = 12


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose for an export."""

    config_folder: str = ""
    """Absolute folder of the file; "" when it goes to a pipe, where no file can be written beside it."""
    matrix_budget_gb: float = 0.0
    """Above 0: allowed combinations under this budget instead of groups."""
    keep_concurrency_limit: bool = False
    """Write `concurrencyLimit`, although this router answers 429 instead of queueing."""
    allow_open: bool = False
    """Write a file without keys although keys exist, all of them with a scope."""
    file_name: str = ""
    """The file's own name, where it is known: a start line and a file of keys are named after it."""
    guard_program: str = ""
    """Where `quartermaster-spawn` lies on the host; "" where that is not known."""
    header_cache: str = ""
    """The file in which that host keeps header facts."""
    router_executable: str = ""
    """The program of a router that starts models with itself; "" takes that of the first chat model."""


def convert(document: Document, options: Options) -> Document:
    """The same file for llama-swap. Raises `ExportError` when it would leave the server open by accident."""
    top, notes = convert_top(document.top, options)
    models: list[Entry | Skipped] = []
    companions: list[Companion] = []
    for item in document.models:
        result = convert_entry(item, options, document.word_rules) if isinstance(item, Entry) else item
        if isinstance(result, Converted):
            companions += result.companions
            models.append(result.entry)
        else:
            models.append(result)
    kept = {item.id for item in models if isinstance(item, Entry)}
    tail, remarks = _tail(document, kept, options)
    title, *figures = document.header or ("",)
    return replace(
        document,
        dialect="llama-swap",
        header=(title.replace("config - generated", "export for llama-swap - generated", 1), *figures),
        notes=(
            *document.notes,
            *notes,
            *_listener_notes(document),
            *guard_notes(document.entries, options, document.word_rules),
            *remarks,
        ),
        top=top,
        models=tuple(models),
        tail=tail,
        tail_comments=_tail_comments(tail),
        companions=tuple(companions),
    )


def convert_top(top: Mapping[str, Any], options: Options) -> tuple[dict[str, Any], list[str]]:
    """Blocks before `models`, and notes on what was left out."""
    result: dict[str, Any] = {}
    if "healthCheckTimeout" in top:
        result["healthCheckTimeout"] = max(MIN_HEALTH_TIMEOUT_SECONDS, top["healthCheckTimeout"])
    notes = []
    if dropped := [name for name in DROPPED_TOP if name in top]:
        notes.append(f"NOTE: not expressible here: {', '.join(dropped)}")
    full, warnings = unscoped_keys(top, "llama-swap", allow_open=options.allow_open)
    notes += warnings
    if full:
        result["apiKeys"] = full
    return result, notes


def unscoped_keys(top: Mapping[str, Any], router: str, *, allow_open: bool) -> tuple[list[str], list[str]]:
    """API keys for all models, for a router that cannot limit keys, and a warning about the others.

    Raises `ExportError` when keys exist and none is left: that server would be open to everyone.
    """
    scopes = top.get("apiKeyModels") or {}
    keys = top.get("apiKeys") or []
    full = [secret for secret in keys if not scopes.get(secret)]
    if keys and not full and not allow_open:
        raise ExportError(
            f"every API key is limited to some models, which {router} cannot express; without a key its server would"
            " be open to everyone. Add a key without a limit, or choose another dialect"
        )
    if len(full) == len(keys):
        return full, []
    count = len(keys) - len(full)
    plural = ("s", "were") if count > 1 else ("", "was")
    return full, [f"WARNING: {count} API key{plural[0]} limited to some models {plural[1]} left out"]


def _listener_notes(document: Document) -> list[str]:
    listeners = document.tail.get("listeners") or {}
    if not listeners:
        return []
    groups = document.tail.get("groups") or {}
    notes = ["NOTE: not expressible here: listeners (every model is served on one address)"]
    served = [
        {member for name in block["groups"] for member in groups.get(name, {}).get("members") or ()}
        for block in listeners.values()
    ]
    hidden = [entry.id for entry in document.entries if not all(entry.id in members for members in served)]
    if hidden:
        notes.append(f"WARNING: no longer limited to some addresses: {named(hidden)}")
    return notes


def named(ids: Sequence[str]) -> str:
    """Some ids in a note."""
    shown = ", ".join(ids[:MAX_NAMED])
    return shown if len(ids) <= MAX_NAMED else f"{shown} and {len(ids) - MAX_NAMED} more"


def _tail(document: Document, kept: Iterable[str], options: Options) -> tuple[dict[str, Any], list[str]]:
    """`groups` or `matrix`, over the models that are in this file."""
    ids = set(kept)
    groups = document.tail.get("groups") or {}
    if options.matrix_budget_gb > 0:
        helpers = {member for fields in groups.values() if _is_helper(fields) for member in fields["members"]}
        models = [matrix.candidate(entry, entry.id in helpers) for entry in document.entries if entry.id in ids]
        block = matrix.matrix_block(models, options.matrix_budget_gb)
        if block:
            return {"matrix": block}, []
        return _groups(groups, ids), ["NOTE: too many combinations fit the budget for a matrix; groups instead"]
    return _groups(groups, ids), []


def _is_helper(fields: Mapping[str, Any]) -> bool:
    return not fields.get("exclusive", True)


def _groups(groups: Mapping[str, Mapping[str, Any]], ids: set[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    assigned: set[str] = set()
    for name, fields in groups.items():
        members = [member for member in fields.get("members") or () if member in ids and member not in assigned]
        if not members:
            continue
        assigned |= set(members)
        switches = {key: value for key, value in fields.items() if key not in ("pool", "members")}
        if fields.get("pool") == "ram":
            switches = {"swap": True, "exclusive": False, "persistent": True}
        result[name] = {**switches, "members": members}
    return {"groups": result} if result else {}


def _tail_comments(tail: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    together = [
        name
        for name, fields in (tail.get("groups") or {}).items()
        if name != CPU and not fields.get("swap", True) and fields.get("exclusive", True) and len(fields["members"]) > 1
    ]
    if not together:
        return {}
    return {"groups": (f"nothing here protects the memory of models that stay loaded together: {named(together)}",)}
