"""Tags and filters of the pages. Loaded as builtins: no template loads them.

Icons are symbols of one inline sprite (`components/_sprite.html`); a status is always shape + word + colour.
"""

from __future__ import annotations

import copy
import functools
import json
from datetime import UTC, datetime

from django import template
from django.forms import BoundField
from django.template.context import RequestContext
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from quartermaster_site import figures
from quartermaster_site.drawings import MemoryBar, MiniBar

register = template.Library()

STATUS_ICONS = {"ok": "ok", "warn": "warn", "bad": "bad", "act": "run", "": "info"}
"""Icon of a tone when the caller names none."""

HTMX_CONFIG = json.dumps(
    {
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "(409|422)", "swap": True, "error": False},
            {"code": "(403|404|429)", "swap": True, "error": True},
            {"code": "[45]..", "swap": False, "error": True},
        ],
        "allowEval": False,
        "includeIndicatorStyles": False,
        "historyCacheSize": 0,
        "historyRestoreAsHxRequest": False,
        "selfRequestsOnly": True,
        "defaultSwapStyle": "outerHTML",
        "timeout": 15000,
    },
    separators=(",", ":"),
)
"""web.md W-011: rules are tried in order, and htmx 2 swaps no 4xx by default."""


@register.simple_tag
def htmx_config() -> SafeString:
    """The content of the `htmx-config` meta tag, between apostrophes; it holds none."""
    return mark_safe(HTMX_CONFIG)  # noqa: S308 a constant


@register.simple_tag
@functools.lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """A drawing from the sprite; decorative, so a word must stand beside it."""
    return format_html('<svg class="q-i" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.simple_tag
@functools.lru_cache(maxsize=4096, typed=True)
def status(tone: str, word: str, shape: str = "") -> SafeString:
    """`tone` is ok, warn, bad, act or empty; `shape` names another icon than the tone's own.

    Made once for each set of words; by type, since a text that is safe already equals one that is not.
    """
    return format_html(
        '<span class="{}">{}{}</span>',
        f"q-st q-{tone}" if tone else "q-st",
        icon(shape or STATUS_ICONS[tone]),
        word,
    )


@register.simple_tag
@functools.lru_cache(maxsize=512)
def memory_bar(bar: MemoryBar | None) -> SafeString:
    """All devices in one drawing; the table beside it carries every figure.

    A drawing says all that is in it by value, so one that was made already is the same markup.
    """
    return render_to_string("components/_memory_bar.html", {"bar": bar})


@register.simple_tag
@functools.lru_cache(maxsize=4096)
def mini_bar(bar: MiniBar | None) -> SafeString:
    """The small bar of a table row."""
    return render_to_string("components/_mini_bar.html", {"bar": bar})


@register.inclusion_tag("components/_pages.html", takes_context=True)
def pages(context: RequestContext, page: object, noun: str) -> dict[str, object]:
    """Links to the pages of a list; they keep the filters of the address."""
    return {"page": page, "noun": noun, "request": context["request"]}


@register.filter
def control(field: BoundField) -> SafeString:
    """The field's widget in our look; forms that are not ours bring none, and placeholders that repeat the label."""
    widget = copy.deepcopy(field.field.widget)
    widget.attrs.pop("placeholder", None)
    return field.as_widget(widget, attrs={"class": "form-control"})


@register.filter
def gib(size_bytes: float | None) -> str:
    return figures.gib(size_bytes)


@register.filter
def size(size_bytes: float | None) -> str:
    return figures.size(size_bytes)


@register.filter
def count(number: int | None) -> str:
    return figures.count(number)


@register.filter
def duration(seconds: float | None) -> str:
    return figures.duration(seconds)


@register.filter
def ago(moment: datetime | None) -> str:
    return figures.ago(moment, timezone.now())


@register.filter
def local(moment: datetime | None) -> str:
    """`2026-11-30 15:00 CET`, in the time zone of whoever looks."""
    return "" if moment is None else timezone.localtime(moment).strftime("%Y-%m-%d %H:%M %Z").strip()


@register.filter
def in_utc(moment: datetime | None) -> str:
    """`2026-11-30 14:00:05 UTC`, for titles."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@register.filter
def counted(number: int, nouns: str) -> str:
    """`{{ 3|counted:"file" }}`, `{{ n|counted:"entry,entries" }}`."""
    noun, _, plural = nouns.partition(",")
    return figures.counted(number, noun, plural)
