"""Why a button that needs the queue or a host's worker does nothing now (J-10). Loaded as a builtin."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.text import capfirst

from gpus_app.models import Host
from models_app.pages.host_page import held_back

register = template.Library()


@register.simple_tag
def held(host: Host) -> str:
    """The attributes of a button that asks this host for something; empty while it can answer."""
    reason = held_back(host)
    return format_html(' aria-disabled="true" title="{}"', capfirst(reason)) if reason else ""


@register.simple_tag
def held_note(host: Host) -> str:
    """The same reason as a line beside such buttons."""
    reason = held_back(host)
    return format_html('<p class="q-s q-2 mb-1">{}.</p>', capfirst(reason).rstrip(".")) if reason else ""
