"""What a part of an import is about, where it goes and what it says, in the words of the pages."""

from __future__ import annotations

import json
from typing import Any

from models_app.core.fields import MODEL_FIELDS, SETTINGS_FIELDS
from models_app.core.imports.report import Kind, Target
from quartermaster_site.access.redaction import redact

MOST_CHARACTERS = 300
_LABELS = {field.key: field.label for field in (*SETTINGS_FIELDS, *MODEL_FIELDS)} | {"pollSec": "seconds between looks"}


def about(target: Target) -> str:
    """What a line is about where it stands under no heading that says so."""
    if target.kind in (Kind.OVERRIDE, Kind.VARIANT):
        return f"{target.subject.replace(chr(92), '/').rpartition('/')[2]}: "
    return ""


def maps_to(target: Target) -> str:
    """Where an item goes, in the words of the pages."""
    label = _LABELS.get(target.field, target.field)
    match target.kind:
        case Kind.VARIANT | Kind.FLEET_VARIANT:
            return f"variant {target.variant}: {label}"
        case Kind.SETTING:
            return f"settings of the host: {label}"
        case Kind.FRAGMENT:
            return "raw fragment"
        case Kind.RULE:
            return f"rule {target.subject}{f' for {target.variant}' if target.variant else ''}"
        case Kind.ROOT | Kind.BACKEND:
            return f"{'folder' if target.kind == Kind.ROOT else 'executable'} {target.subject}"
        case Kind.NOWHERE:
            return "-"
        case Kind.OVERRIDE:
            return label or "nothing to do"
    return str(target.kind.value).replace("-", " ")


def shown(value: Any, *, secret: bool = False) -> str:
    """A value on one line, masked where it looks secret."""
    if value is None:
        return ""
    masked = redact(value)
    if secret and masked == value:
        return "…"
    text = masked if isinstance(masked, str) else json.dumps(masked, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 2]} …"
