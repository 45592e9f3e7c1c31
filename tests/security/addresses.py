"""Every address of the product, allauth's and the API's too, out of the URL table itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

API = "/api/v1/"
WORDS = {"slug": "local", "name": "all", "kind": "enhancer", "provider_id": "x", "number": "1", "pk": "1"}
OTHERS = "1"
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_GROUP = re.compile(r"\(\?P<(\w+)>[^)]*\)")


def patterns(found: Any = None, prefix: str = "/") -> Iterator[str]:
    """Addresses as the table has them, `<int:pk>` and all."""
    for item in found if found is not None else get_resolver().url_patterns:
        here = prefix + str(item.pattern)
        if isinstance(item, URLResolver):
            yield from patterns(item.url_patterns, here)
        elif isinstance(item, URLPattern):
            yield here


def filled(pattern: str, words: Mapping[str, str] = WORDS) -> str:
    """An address with something in place of each parameter, whether it exists or not."""
    plain = _GROUP.sub(r"<\1>", pattern).replace("^", "").replace("$", "")
    if plain.startswith("/setup/"):
        plain = plain.replace("<slug:name>", "checks")
    return _PARAMETER.sub(lambda found: words.get(found[1], OTHERS), plain)


ALL = sorted({filled(pattern) for pattern in patterns()})
