"""What is kept of each model until the file of its whole host is made: ten thousand plans are hundreds of megabytes.

Left out is what no file of a router shows: the tables of a header, and how the memory of a plan adds up. Texts that
most commands have in common are one object.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache

from models_app.core.catalog import EMPTY, ArgToken, Header, MemoryTerm, Plan, WeightTable

_NO_WEIGHTS = WeightTable()
_NO_SHAPES = Header().tensor_shapes


def kept_header(header: Header) -> Header:
    """A header without its tables."""
    return replace(header, weights=_NO_WEIGHTS, extra=EMPTY, tensor_shapes=_NO_SHAPES)


def kept_plan(plan: Plan) -> Plan:
    """A plan without the explanation of its figures."""
    return replace(
        plan,
        projection=None,
        terms=tuple(MemoryTerm(term.key, term.label, term.device_bytes, term.ram_bytes, "") for term in plan.terms),
        suggestions=(),
        lines=tuple(map(sys.intern, plan.lines)),
        tokens=tuple(map(_shared, plan.tokens)),
    )


@lru_cache(maxsize=4096)
def _shared(token: ArgToken) -> ArgToken:
    """The first one that is equal."""
    return token
