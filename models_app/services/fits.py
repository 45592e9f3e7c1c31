"""The table of what fits: answers for many models at several windows, each kept until something it depends on changes.

An answer depends on the host's settings and budget, on what is pinned for the model, and on its files. Keeping is by
process: a new one starts with an empty table and fills it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from gpus_app.models import Host
from models_app import convert
from models_app.core.launch.tokens import rules_for
from models_app.core.plans.fits import BEYOND, Fit, fits_of, tiers_of
from models_app.core.settings import Override
from models_app.core.state.overrides import resolve_override
from models_app.models import Row
from models_app.records import row_from_json
from models_app.selectors.fits import PLAIN_SORTS, FitsFilter, FitsRow, fits_rows
from models_app.services.check_facts import kept_free
from models_app.services.planning import HostFacts, host_facts

PAGE_SIZE = 100
KEPT_ROWS = 8192
ORDER = ("fits", "stepped", "spills", "over")
"""States from best to worst; all others come last."""
SHOWN_STATES: Mapping[str, tuple[str, ...]] = {
    "gpu": ("fits", "stepped"),
    "fits": ("fits", "stepped", "spills"),
    "over": ("over",),
}

Fits = dict[int, Fit]


@dataclass(frozen=True, slots=True)
class FitsPage:
    """One page of the table. `fits` has an answer for each of `tiers` and each row by number."""

    filter: FitsFilter
    rows: Sequence[FitsRow]
    fits: Mapping[int, Mapping[int, Fit]]
    tiers: Sequence[int]
    all_tiers: Sequence[int]
    total: int
    pages: int

    @property
    def page(self) -> int:
        return min(self.filter.page, self.pages)


class _Kept:
    """The least recently asked rows give way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._rows: OrderedDict[Hashable, Fits] = OrderedDict()

    def get(self, key: Hashable) -> Fits:
        with self._lock:
            if key not in self._rows:
                return {}
            self._rows.move_to_end(key)
            return dict(self._rows[key])

    def add(self, key: Hashable, fits: Fits) -> None:
        with self._lock:
            self._rows[key] = self._rows.get(key, {}) | fits
            self._rows.move_to_end(key)
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()


KEPT = _Kept(KEPT_ROWS)


class _Table:
    """The answers that one request needs."""

    def __init__(self, host: Host, wanted: FitsFilter) -> None:
        self.host, self.wanted = host, wanted
        self.facts: HostFacts = host_facts(host)
        self.tiers = tiers_of(self.facts.settings)
        self._common = sha256(repr((self.facts.settings, self.facts.budget)).encode()).hexdigest()

    def answers(self, rows: Sequence[FitsRow], tiers: Sequence[int]) -> dict[int, Fits]:
        """Row -> window -> answer; only what nobody asked before is planned."""
        overrides = {row.pk: self._override(row) for row in rows}
        keys = {row.pk: self._key(row, overrides[row.pk]) for row in rows}
        known = {row.pk: KEPT.get(keys[row.pk]) for row in rows}
        missing = [row for row in rows if not known[row.pk].keys() >= set(tiers)]
        for pk, fits in self._planned(missing, overrides, known, tiers):
            KEPT.add(keys[pk], fits)
            known[pk] |= fits
        return known

    def _key(self, row: FitsRow, override: Override) -> Hashable:
        return self._common, row.version, repr(override), kept_free(self.host, row.excesses)

    def _override(self, row: FitsRow) -> Override:
        own = resolve_override(self.facts.overrides, row.path, row.quant, self.facts.same_path) or Override()
        if self.wanted.kv:
            own = replace(own, kv_k=self.wanted.kv, kv_v=self.wanted.kv)
        return replace(own, parallel=self.wanted.parallel) if self.wanted.parallel else own

    def _planned(
        self,
        rows: Sequence[FitsRow],
        overrides: Mapping[int, Override],
        known: Mapping[int, Fits],
        tiers: Sequence[int],
    ) -> list[tuple[int, Fits]]:
        if not rows:
            return []
        stored = dict(Row.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", "found"))
        found = {row.pk: replace(row_from_json(stored[row.pk]), id=row.served_id) for row in rows if row.pk in stored}
        paths = {row.path for row in rows} | {row.mmproj_path for row in found.values()}
        headers = convert.headers_at_once(self.host, paths | {own.mmproj_file for own in overrides.values()})
        return [
            (
                row.pk,
                fits_of(
                    found[row.pk],
                    headers(row.path),
                    [tokens for tokens in tiers if tokens not in known[row.pk]],
                    settings=self.facts.settings,
                    override=overrides[row.pk],
                    budget=self.facts.budget_for(overrides[row.pk]),
                    headers=headers,
                    excesses=kept_free(self.host, row.excesses),
                    word_rules=rules_for(self.facts.os_family),
                ),
            )
            for row in rows
            if row.pk in found
        ]


def host_fits(host: Host, wanted: FitsFilter, user: Any) -> FitsPage:
    """The page of the table that the filter names, with the models that a person may see."""
    table = _Table(host, wanted)
    rows = _sorted(_shown(fits_rows(host, wanted, user), table), table)
    size = max(len(rows), 1) if wanted.whole else PAGE_SIZE
    pages = max(-(-len(rows) // size), 1)
    start = (min(wanted.page, pages) - 1) * size
    shown = rows[start : start + size]
    fits = table.answers(shown, table.tiers)
    return FitsPage(wanted, shown, fits, _used(table.tiers, fits), table.tiers, len(rows), pages)


def _shown(rows: Sequence[FitsRow], table: _Table) -> Sequence[FitsRow]:
    """Those with the result that is asked for, at the window that is asked about."""
    states, at = SHOWN_STATES.get(table.wanted.show), table.wanted.at
    if states is None or at not in table.tiers:
        return rows
    answers = table.answers(rows, [at])
    return [row for row in rows if at in answers[row.pk] and answers[row.pk][at].state in states]


def _sorted(rows: Sequence[FitsRow], table: _Table) -> Sequence[FitsRow]:
    key, falling = table.wanted.sort.removeprefix("-"), table.wanted.sort.startswith("-")
    if key == "size":
        return sorted(rows, key=lambda row: row.size_bytes, reverse=falling)
    if key == "planned":
        return sorted(rows, key=lambda row: row.planned_tokens, reverse=falling)
    if key in PLAIN_SORTS or not key or int(key) not in table.tiers:
        return list(reversed(rows)) if falling else rows
    answers = table.answers(rows, [int(key)])
    return sorted(rows, key=lambda row: _rank(answers[row.pk].get(int(key))), reverse=falling)


def _rank(fit: Fit | None) -> tuple[int, int]:
    """Best result first, then the smaller figure."""
    if fit is None or fit.state not in ORDER:
        return len(ORDER), 0
    return ORDER.index(fit.state), fit.total_bytes


def _used(tiers: Sequence[int], fits: Mapping[int, Mapping[int, Fit]]) -> list[int]:
    """Windows that at least one of the shown models was trained for."""
    return [tokens for tokens in tiers if any(row[tokens].state != BEYOND for row in fits.values() if tokens in row)]
