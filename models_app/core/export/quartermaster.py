"""Dialect `quartermaster`: the document as it is built, without what its reader trips over (config-yaml.md 12.0)."""

from __future__ import annotations

from dataclasses import replace

from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.llama_swap import Options
from models_app.core.export.macros import macro_in_entry, neutral


def convert(document: Document, options: Options) -> Document:
    """The same document; models whose text holds a macro become comments and leave their groups."""
    del options
    models = tuple(_checked(item) for item in document.models)
    kept = {item.id for item in models if isinstance(item, Entry)}
    tail = dict(document.tail)
    if "groups" in tail:
        tail["groups"] = {
            name: {**fields, "members": [member for member in fields["members"] if member in kept]}
            for name, fields in tail["groups"].items()
        }
    return replace(document, dialect="quartermaster", models=models, tail=tail)


def _checked(item: Entry | Skipped) -> Entry | Skipped:
    if isinstance(item, Skipped) or "macros" in item.fields:
        return item
    if macro := macro_in_entry(item, everywhere=False):
        reason = f"its text holds {neutral(macro)}, which the router would replace"
        return Skipped(id=neutral(item.id), reason=reason, model_class=item.model_class, path=item.path)
    return item
