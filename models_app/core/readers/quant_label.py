"""The name of a file's quantisation, read off its tensors (headers.md 8).

A fallback for display: a file name that spells its own quant keeps that spelling. `general.file_type` is not asked,
because files lie about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from models_app.core.readers.tensor_types import BY_ID

FILLER = frozenset({"F32", "I8", "I16", "I32", "I64"})
"""Types of norms and tables, which are there in every file. Half and double precision are not filler."""


def quant_label(type_bytes: Mapping[int, int]) -> str:
    """The label for a histogram of type ids. An unknown type makes it "": better no label than a wrong one."""
    if not type_bytes.keys() <= BY_ID.keys():
        return ""
    return dominant_type({BY_ID[type_id].name: type_bytes[type_id] for type_id in sorted(type_bytes)})


def dominant_type(name_bytes: Mapping[str, int]) -> str:
    """A type name, a type name followed by ` mix`, or "" when nothing has any bytes. The first wins a tie.

    Named recipes leave 71 to 100 % of the bytes in their headline type, mixed files peak at 55 %; 70 % divides them.
    """
    telling = {name: size_bytes for name, size_bytes in name_bytes.items() if name not in FILLER}
    if not telling:
        return max(name_bytes, key=name_bytes.__getitem__, default="")
    total = sum(telling.values())
    if total == 0:
        return ""
    heaviest = max(telling, key=telling.__getitem__)
    return heaviest if telling[heaviest] * 10 >= total * 7 else f"{heaviest} mix"
