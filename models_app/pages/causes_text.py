"""Why two texts differ, as sentences: of a host as a whole, and of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpus_app.models import Host
from models_app.core.discovery.roots import path_key
from models_app.core.export.revisions.causes import Cause
from models_app.core.export.revisions.compare import ModelChange
from models_app.core.fields import MODEL_FIELDS, SETTINGS_FIELDS
from models_app.core.state.globs import glob_match, is_glob
from models_app.core.state.typed import control_text
from models_app.models import Change
from models_app.selectors.comparing import Comparison
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import gib

MOST = 6
AUTOMATIC = "automatic"
_MODEL = {field.key: field for field in MODEL_FIELDS}
_OTHER_LABELS = {"position": "Place among the rules"}
_SETTINGS = {field.key: field for field in SETTINGS_FIELDS}
_ACTIONS = {"reset": "reset all settings", "delete": "deleted the variant", "add": "added the variant"}


def host_causes(comparison: Comparison) -> tuple[str, ...]:
    """What may be behind the change of any model."""
    return tuple(_host_sentence(cause) for cause in comparison.causes.host)


def _host_sentence(cause: Cause) -> str:
    before, after = cause.before, cause.after
    match cause.kind:
        case "setting":
            field = _SETTINGS.get(cause.name)
            by = f", set by {cause.by}" if cause.by else ""
            return f"{field.label if field else cause.name}: {_step(before, after)}{by}"
        case "backend":
            return f"Backend {cause.name}: {before or 'none'} → {after or 'none'}"
        case "budget":
            return f"Memory that planning may use on {cause.name}: {_bytes(before)} → {_bytes(after)}"
        case "version":
            return f"Quartermaster {before} → {after}"
    return cause.name


def _bytes(value: Any) -> str:
    return f"{gib(value)} GiB" if isinstance(value, int) and value else "no limit"


def _step(before: Any, after: Any) -> str:
    if isinstance(before, list | dict) or isinstance(after, list | dict):
        return "changed"
    return f"{_plain(before)} → {_plain(after)}"


def _plain(value: Any) -> str:
    if value is None:
        return AUTOMATIC
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(redact(str(value)))


class ModelCauses:
    """Sentences about single models. Saves are looked up by path once, patterns one by one."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.host: Host = comparison.after.host
        self.by_path: dict[str, list[Change]] = {}
        self.patterns: list[Change] = []
        for change in comparison.changes:
            if change.rule or is_glob(change.match):
                self.patterns.append(change)
            else:
                self.by_path.setdefault(self._key(change.match), []).append(change)
        self.left_out = _left_out(comparison.after.summary)

    def _key(self, path: str) -> str:
        return path_key(path, self.host.os_family)

    def of(self, model: ModelChange) -> tuple[str, ...]:
        """The reasons that are known for this model alone."""
        found = []
        file = self.comparison.causes.files.get(model.path)
        if file is not None:
            found.append(_file_sentence(file))
        if model.kind == "removed" and model.path in self.left_out:
            found.append(f"Left out: {self.left_out[model.path]}")
        saves = [*self.by_path.get(self._key(model.path), ()), *self._matching(model.path)]
        saves.sort(key=lambda change: -change.pk)
        found += [sentence for change in saves for sentence in self._sentences(change)]
        return tuple(found[:MOST])

    def _matching(self, path: str) -> list[Change]:
        return [change for change in self.patterns if any(glob_match(match, path) for match in _patterns(change))]

    def _sentences(self, change: Change) -> Sequence[str]:
        who = f"{'before ' if self.comparison.undone else ''}{change.actor}"
        variant = f" of {change.variant}" if change.variant else ""
        if not change.changes:
            return [f"{who} {_ACTIONS.get(change.action, change.action)}{variant}"]
        return [f"{who}: {_field(key)}{variant} {_shown(key, pair)}" for key, pair in sorted(change.changes.items())]


def _patterns(change: Change) -> tuple[str, ...]:
    """The pattern of a change, and the one that it took the place of: models of both are concerned."""
    before, _ = change.changes.get("match") or ("", "")
    return (change.match, before) if before else (change.match,)


def _file_sentence(cause: Cause) -> str:
    if cause.before is None:
        return "The file is new"
    return "The file is gone" if cause.after is None else "The file was replaced on disk"


def _left_out(summary: Mapping[str, Any]) -> dict[str, str]:
    items = summary.get("skipped", [])
    return {str(item.get("file", "")): str(item.get("reason", "")) for item in items if isinstance(item, dict)}


def _field(key: str) -> str:
    return _MODEL[key].label if key in _MODEL else _OTHER_LABELS.get(key, key)


def _shown(key: str, pair: Sequence[Any]) -> str:
    before, after = (_value(key, value) for value in pair)
    return f"{before} → {after}"


def _value(key: str, value: Any) -> str:
    if value is None:
        return AUTOMATIC
    field = _MODEL.get(key)
    text = str(redact(control_text(field, value) if field else str(value))) or AUTOMATIC
    return text if len(text) <= 80 else f"{text[:78]} …"


def untouched_models(comparison: Comparison) -> list[str]:
    """Changed models for whose own change no reason is known."""
    causes = ModelCauses(comparison)
    changed = (model for model in comparison.difference.models if model.kind in ("changed", "renamed"))
    return [model.id for model in changed if not causes.of(model)]
