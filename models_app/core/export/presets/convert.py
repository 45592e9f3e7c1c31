"""A document of the quartermaster dialect as presets of llama.cpp's own router (router-llama-server.md 3, 4)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from models_app.core.errors import ExportError, LaunchError
from models_app.core.export.document import Companion, Document, Entry, Skipped
from models_app.core.export.llama_swap import Options, named, unscoped_keys
from models_app.core.export.presets import FILE_NAME, SLUG
from models_app.core.export.presets.entry import keys_of
from models_app.core.export.presets.router import models_max
from models_app.core.export.presets.writing import Unwritable, alias_text, id_text, served_id
from models_app.core.launch.backends import KINDS, usual_kind
from models_app.core.launch.paths import forward
from models_app.core.launch.tokens import WINDOWS, join_tokens, split_command

SERVED_CLASSES = ("llm", "embedding", "decision")
DEFAULT_ADDRESS = ("127.0.0.1", 8080)
KEYS_SUFFIX = ".keys"
DEVICE_ORDER = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
DEVICE_PINS = {"CUDA_VISIBLE_DEVICES": "CUDA", "GGML_VK_VISIBLE_DEVICES": "Vulkan", "HIP_VISIBLE_DEVICES": "ROCm"}
"""Variables that hide devices -> how this server names the devices that remain."""
LOST_TOP = ("vramBudgetGB", "ramBudgetGB", "slotCache", "promptEnhancers")
LOST_FIELDS = ("concurrencyLimit", "healthCheckTimeout", "capabilities", "promptEnhancer", "promptEnhancerEdit")
_INDICES = re.compile(r"\d+(?:,\d+)*\Z")


def convert(document: Document, options: Options) -> Document:
    """Sections instead of entries: `fields` of an entry are its keys. Raises `ExportError` when it would be open."""
    keys, notes = unscoped_keys(document.top, SLUG, allow_open=options.allow_open)
    rules = document.word_rules
    result = _Sections(options.router_executable or _executable(document.entries, rules), rules)
    for item in document.models:
        if isinstance(item, Entry):
            result.add(item)
        else:
            result.models.append(item)
    result.add_aliases()
    target = _Target(options)
    title, *figures = document.header or ("",)
    companions, key_notes = _key_file(keys, target)
    return replace(
        document,
        dialect=SLUG,
        header=(title.replace("config - generated", f"export for {SLUG} - generated", 1), *figures),
        notes=(
            f"RUN: {_start_line(document, result, target, bool(companions))}",
            *document.notes,
            *notes,
            *key_notes,
            *_losses(document, result),
        ),
        top={"version": 1},
        models=tuple(result.models),
        tail={},
        tail_comments={},
        companions=companions,
    )


class _Target:
    """Where the file will lie, as far as it is known."""

    def __init__(self, options: Options) -> None:
        self.name = options.file_name or FILE_NAME
        self.folder = options.config_folder
        self.path = os.path.join(self.folder, self.name)

    @property
    def keys_name(self) -> str:
        return os.path.splitext(self.name)[0] + KEYS_SUFFIX


class _Sections:
    """Collects sections whose names the router keeps apart."""

    def __init__(self, executable: str, rules: str) -> None:
        self.executable = executable
        self.rules = rules
        self.models: list[Entry | Skipped] = []
        self.served: dict[str, str] = {}
        """Name that the router lists -> our id."""
        self.estimates_gb: list[float | None] = []
        self.aliases: dict[str, list[str]] = {}
        self.others = 0
        self.unlisted: list[str] = []
        self.lost_fields: set[str] = set()
        self.pins_order = False

    def add(self, entry: Entry) -> None:
        try:
            section = self._section(entry)
        except Unwritable as problem:
            reason = str(problem)
            self.models.append(Skipped(entry.id, reason, model_class=entry.model_class, path=entry.path))
            return
        self.models.append(section)
        self.served[served_id(entry.id)] = entry.id
        self.aliases[entry.id] = list(entry.fields.get("aliases") or ())
        self.estimates_gb.append(_estimate_gb(entry.fields))
        self.lost_fields |= {name for name in LOST_FIELDS if entry.fields.get(name)}
        if entry.fields.get("cmdStop"):
            self.lost_fields.add("cmdStop")
        if entry.fields.get("unlisted"):
            self.unlisted.append(entry.id)

    def _section(self, entry: Entry) -> Entry:
        words = self._words(entry)
        try:
            name = id_text(entry.id)
        except Unwritable as problem:
            raise Unwritable(f"its id cannot be a name there: {problem}") from problem
        if (other := self.served.get(served_id(name))) is not None:
            raise Unwritable(f"this server would not tell it from {other}")
        found = keys_of(words)
        pins, remarks = self._environment(entry.fields.get("env") or (), found.pairs)
        sleep = _sleep_seconds(entry.fields.get("ttl"))
        tags = {"tags": entry.model_class} if entry.model_class else {}
        remarks = [*found.remarks, *remarks]
        if (listed := served_id(name)) != name:
            remarks.append(f"NOTE: served as {listed}")
        pairs = {**tags, **_model_first(found.pairs), **pins, **sleep}
        return replace(entry, command=(), fields=pairs, comments=(*entry.comments, *remarks))

    def _words(self, entry: Entry) -> list[str]:
        """The command without its executable."""
        if entry.model_class and entry.model_class not in SERVED_CLASSES:
            self.others += 1
            kind = usual_kind(entry.model_class)
            raise Unwritable(f"served by {kind}, not by {SLUG}")
        if not entry.model_class:
            raise Unwritable("a hand-declared model; this server starts its own executable only")
        try:
            executable, *words = split_command("\n".join(entry.command), self.rules)
        except (LaunchError, ValueError) as problem:
            raise Unwritable(f"its command cannot be read: {problem}") from problem
        if executable != self.executable:
            self.others += 1
            kind = next((kind.name for kind in KINDS if kind.name == os.path.basename(forward(executable))), executable)
            raise Unwritable(f"served by {kind}, not by this host's {SLUG}")
        return words

    def _environment(self, env: Iterable[str], pairs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Devices that variables pin, as this server's own option; nothing else can be set for one model."""
        pins: dict[str, str] = {}
        remarks = []
        for variable in env:
            name, _, value = variable.partition("=")
            if variable == DEVICE_ORDER:
                self.pins_order = True
            elif name in DEVICE_PINS and _INDICES.match(value):
                if "device" not in pairs:
                    pins["device"] = ",".join(f"{DEVICE_PINS[name]}{index}" for index in value.split(","))
            else:
                remarks.append(f"WARNING: {name} cannot be set for one model here and was left out")
        return pins, remarks

    def add_aliases(self) -> None:
        """Further names once every id is known: a name that is taken would keep the router from starting."""
        taken = set(self.served)
        for position, item in enumerate(self.models):
            if not isinstance(item, Entry):
                continue
            own = served_id(item.id)
            kept, remarks = self._aliases(item.id, own, taken)
            taken |= set(kept)
            alias = {"alias": ",".join(kept)} if kept else {}
            comments = (*item.comments, *remarks)
            self.models[position] = replace(item, fields={**alias, **item.fields}, comments=comments)

    def _aliases(self, name: str, own: str, taken: set[str]) -> tuple[list[str], list[str]]:
        kept: list[str] = []
        remarks = []
        wanted = [*self.aliases[name], *([name] if own != name else [])]
        for alias in dict.fromkeys(wanted):
            if alias == own:
                continue
            try:
                text = alias_text(alias)
            except Unwritable as problem:
                remarks.append(f"WARNING: one of its names was left out: {problem}")
                continue
            if text in taken:
                remarks.append(f'WARNING: the name "{text}" is taken and was left out')
            else:
                kept.append(text)
        return kept, remarks


def _executable(entries: Sequence[Entry], rules: str) -> str:
    """The program of the first chat model: the router starts all of them with its own."""
    for entry in entries:
        if entry.model_class in SERVED_CLASSES and entry.command:
            return split_command(entry.command[0], rules)[0]
    return SLUG


def _estimate_gb(fields: Mapping[str, Any]) -> float | None:
    """GPU memory of a model; None where it uses none, 0 where nobody knows."""
    if "estVramGB" in fields:
        return float(fields["estVramGB"])
    return None if fields.get("estRamGB") else 0.0


def _model_first(pairs: Mapping[str, str]) -> dict[str, str]:
    return {"model": pairs["model"], **pairs} if "model" in pairs else dict(pairs)


def _sleep_seconds(ttl: Any) -> dict[str, str]:
    """This server frees a sleeping model's memory and keeps its process."""
    return {"sleep-idle-seconds": str(int(ttl))} if ttl and ttl > 0 else {}


def _start_line(document: Document, sections: _Sections, target: _Target, with_keys: bool) -> str:
    """The command for a person to run. Every further flag would override all sections."""
    budget_gb = float(document.top.get("vramBudgetGB") or 0)
    host, port = DEFAULT_ADDRESS
    count = models_max(sections.estimates_gb, budget_gb)
    words = [sections.executable, "--models-preset", target.path, "--models-max", str(count)]
    words += ["--host", host, "--port", str(port), "--cors-origins", "localhost"]
    environment = [DEVICE_ORDER] if sections.pins_order else []
    if with_keys:
        environment.append(f"LLAMA_ARG_API_KEY_FILE={os.path.join(target.folder, target.keys_name)}")
    if document.word_rules == WINDOWS:
        return " && ".join([*(f"set {item}" for item in environment), join_tokens(words, WINDOWS)])
    return shlex.join([*environment, *words])


def _key_file(keys: Sequence[str], target: _Target) -> tuple[tuple[Companion, ...], list[str]]:
    """Keys lie in a file of their own: in the presets they would protect nothing."""
    if not keys:
        return (), []
    usable = [key for key in keys if key.strip() == key and key.isprintable() and not key.startswith("#")]
    if len(usable) < len(keys):
        raise ExportError(
            "an API key begins with # or holds blanks at its ends: llama-server's key file cannot hold it"
        )
    if not target.folder:
        return (), ["WARNING: API keys cannot stand in this file; start the server with LLAMA_ARG_API_KEY_FILE"]
    text = "".join(f"{key}\n" for key in usable)
    return (Companion(target.keys_name, text),), [f"NOTE: the API keys are in {target.keys_name}"]


def _losses(document: Document, sections: _Sections) -> list[str]:
    """What the other dialects say and this one cannot (4)."""
    lost = [name for name in LOST_TOP if document.top.get(name)]
    lost += [name for name in ("groups", "listeners", "matrix") if document.tail.get(name)]
    lost += sorted(sections.lost_fields)
    notes = [f"NOTE: not expressible here: {', '.join(lost)}"] if lost else []
    if document.tail.get("listeners"):
        notes.append("NOTE: every model is served on one address")
    if sections.others:
        notes.append(f"NOTE: {sections.others} model{'s' if sections.others > 1 else ''} of other servers left out")
    if sections.unlisted:
        notes.append(f"NOTE: listed all the same: {named(sections.unlisted)}")
    if sections.pins_order:
        notes.append(f"NOTE: {DEVICE_ORDER} holds for all models and stands in the start line")
    budget_gb = float(document.top.get("vramBudgetGB") or 0)
    count = models_max(sections.estimates_gb, budget_gb)
    if count < len(sections.estimates_gb):
        notes.append(
            f"NOTE: at most {count} of {len(sections.estimates_gb)} models are loaded at a time: this server counts"
            " models, not memory, so the largest decide"
        )
    return notes
