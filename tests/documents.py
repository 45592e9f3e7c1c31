"""The generated pages of `docs/`: rewritten by `python -m tests.documents`, held in step by tests/test_docs.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from models_app.core.fields import MODEL_FIELDS, SETTINGS_FIELDS, Field

DOCS = Path(__file__).resolve().parent.parent / "docs"

SETTINGS_HEAD = """# Settings and model fields

Generated from the field catalogue (`models_app/core/fields/`) by `python -m tests.documents`. The key is the one of the
generate file and of exports; keys with GB mean GiB. Blank always means automatic. "0 counts" says that 0 or false is a
value of its own, different from blank. A flag knob is the launch flag that owns the field when it stands in custom
arguments.
"""


def settings_page() -> str:
    """`docs/settings.md`."""
    parts = [SETTINGS_HEAD, "## Settings of a host\n", table(SETTINGS_FIELDS, variants=False)]
    parts += ["## Fields of a model\n", table(MODEL_FIELDS, variants=True)]
    return "\n".join(parts)


def table(fields: Iterable[Field], *, variants: bool) -> str:
    """One row a field, under a heading for each group."""
    lines: list[str] = []
    group = None
    for field in fields:
        if field.group != group:
            group = field.group
            lines += ["", f"### {group}", "", "| key | accepts | default | what it does |", "|---|---|---|---|"]
        lines.append(f"| `{field.key}` | {accepts(field)} | {default(field)} | {meaning(field, variants)} |")
    return "\n".join(lines[1:]) + "\n"


def accepts(field: Field) -> str:
    """The kind of value, its choices or range, and its unit."""
    words = [field.kind]
    if field.choices:
        words = ["one of " + ", ".join(choice or "blank" for choice in field.choices)]
    low, high = field.minimum, field.maximum
    if low is not None and high is not None:
        words.append(f"{low:,g} to {high:,g}")
    elif low is not None:
        words.append(f"{'above' if field.above_minimum else 'at least'} {low:,g}")
    elif high is not None:
        words.append(f"at most {high:,g}")
    if field.multiple_of:
        words.append(f"a multiple of {field.multiple_of}")
    if field.limit:
        words.append(f"up to the {field.limit.replace('-', ' ')}")
    if field.nullable:
        words.append("0 counts")
    return cell(", ".join(words) + (f" ({field.unit})" if field.unit else ""))


def default(field: Field) -> str:
    value = field.default
    if value is None or value == "" or value == ():
        return "automatic"
    if isinstance(value, tuple):
        return ", ".join(f"{item:,}" for item in value)
    return cell(f"{value}".lower() if isinstance(value, bool) else f"{value}")


def meaning(field: Field, variants: bool) -> str:
    text = field.help or field.label
    notes = []
    if field.classes:
        notes.append(f"for {', '.join(field.classes)}")
    if field.knobs:
        notes.append(f"flag knob {', '.join(f'`{knob}`' for knob in field.knobs)}")
    if variants and not field.on_variant:
        notes.append("not on a variant")
    return cell(f"{text} ({'; '.join(notes)})" if notes else text)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


PAGES = {"settings.md": settings_page}


def main() -> None:
    """Write every generated page."""
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
