"""The type of an unquoted YAML scalar to the routers (Go's yaml.v3): `on`, `off`, `yes` and `no` are text."""

from __future__ import annotations

import re
from typing import Any

TAGGED_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|0[oO]?[0-7]{1,22}|0[bB][01]{1,64}|0|[1-9][0-9]{0,18})\Z")
FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?\Z")
SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


def plain_value(text: str) -> Any:
    """What an unquoted scalar means to the routers."""
    if text in NULLS:
        return None
    if text in TRUTHS:
        return TRUTHS[text]
    if INTEGER.match(text):
        return _integer(text)
    if FLOAT.match(text):
        return float(text)
    if SPECIAL.match(text):
        return float(text.replace(".", ""))
    return text


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lower()
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits, 8 if len(digits) > 1 and digits.startswith("0") else 10)
