"""The table of what fits as text: a cell is a shape, a figure in GiB and a word, so that it reads without colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from gpus_app.core.budget import Budget
from models_app.core.catalog import Placement
from models_app.core.fields import KV_TYPES
from models_app.core.plans.fits import BEYOND, PINNED, STEPPED, UNPLANNED, Fit
from models_app.core.state.profile_set import ctx_tag
from models_app.pages.placement_text import placement_word
from models_app.selectors.fits import SHOWS, SLOTS, FitsRow
from models_app.services.fits import FitsPage
from quartermaster_site.figures import UNKNOWN, count, counted, gib

LOOKS: Mapping[str, tuple[str, str]] = {
    "fits": ("f", "ok"),
    STEPPED: ("o", "part"),
    "spills": ("o", "part"),
    "over": ("n", "bad"),
    "unknown": ("z", "info"),
    PINNED: ("z", "lock"),
    BEYOND: ("z", "dash"),
    UNPLANNED: ("z", "dash"),
}
"""State -> CSS class of the cell, icon."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`url` leads to the model with this window filled in; "" where there is nothing to try."""

    css: str
    shape: str
    figure: str
    word: str
    label: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One model. `reason` stands in place of the cells where no window has an answer."""

    name: str
    served_id: str
    quant: str
    url: str
    size: str
    cells: tuple[Cell, ...]
    planned: str
    placement: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    text: str
    url: str
    direction: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    text: str
    on: bool


@dataclass(frozen=True, slots=True)
class PageLink:
    url: str
    text: str


class FitsTable:
    """One page of the table, ready to print. `address` is that of the page without its query."""

    def __init__(self, page: FitsPage, address: str) -> None:
        self.page = page
        self.filter = page.filter
        self.address = address

    @cached_property
    def lines(self) -> list[Line]:
        return [self._line(row, self.page.fits.get(row.pk, {})) for row in self.page.rows]

    def _line(self, row: FitsRow, fits: Mapping[int, Fit]) -> Line:
        url = reverse("models:model-show", args=[row.pk])
        answers = [fits[tokens] for tokens in self.page.tiers if tokens in fits]
        reasons = {fit.reason for fit in answers if fit.state == UNPLANNED}
        return Line(
            name=row.base_id,
            served_id=row.served_id,
            quant=row.quant or row.quant_label or "as is",
            url=url,
            size=gib(row.size_bytes),
            cells=() if reasons else tuple(self._cell(row, fit, url) for fit in answers),
            planned=count(row.planned_tokens) if row.planned_tokens else UNKNOWN,
            placement="cannot judge" if row.planned_verdict == "unknown" else row.placement_text,
            reason=next(iter(reasons), ""),
        )

    def _cell(self, row: FitsRow, fit: Fit, url: str) -> Cell:
        css, shape = LOOKS[fit.state]
        planned = self.filter.kv == "" and self.filter.parallel == 0 and fit.tokens == row.planned_tokens
        word, label = word_of(fit), f"{fit.tokens:,} tokens"
        if planned:
            label += ", planned now"
        return Cell(
            css=f"{css} on" if planned else css,
            shape=shape,
            figure=figure_of(fit),
            word=word,
            label=label,
            url="" if fit.state == BEYOND else f"{url}?{self._what_if(fit.tokens)}",
        )

    def _what_if(self, tokens: int) -> str:
        values: dict[str, str | int] = {"ctx": tokens}
        if self.filter.kv:
            values |= {"kvK": self.filter.kv, "kvV": self.filter.kv}
        if self.filter.parallel:
            values["parallel"] = self.filter.parallel
        return urlencode(values)

    @property
    def heads(self) -> list[Head]:
        tiers = [self._head(str(tokens), ctx_tag(tokens), "r") for tokens in self.page.tiers]
        return [
            self._head("name", "Model", ""),
            self._head("size", "File", "r"),
            *tiers,
            self._head("planned", "Planned now", "r"),
        ]

    def _head(self, key: str, text: str, css: str) -> Head:
        """Ascending, then descending, then by name again."""
        now = self.filter.sort
        following = {key: f"-{key}", f"-{key}": ""}.get(now, key)
        direction = {key: "ascending", f"-{key}": "descending"}.get(now, "")
        return Head(text, self._url(sort=following), direction, css)

    def _url(self, **changes: object) -> str:
        return f"{self.address}{self.filter.query(**{'page': 1, **changes})}"

    @property
    def kv_choices(self) -> list[Choice]:
        return [Choice("", "as stored", not self.filter.kv)] + [
            Choice(name, name, name == self.filter.kv) for name in KV_TYPES
        ]

    @property
    def slot_choices(self) -> list[Choice]:
        now = self.filter.parallel
        return [Choice("", "as stored", not now)] + [Choice(str(slots), str(slots), slots == now) for slots in SLOTS]

    @property
    def show_choices(self) -> list[Choice]:
        return [Choice(key, text, key == self.filter.show) for key, text in SHOWS.items()]

    @property
    def tier_choices(self) -> list[Choice]:
        return [Choice(str(tokens), ctx_tag(tokens), tokens == self.filter.at) for tokens in self.page.all_tiers]

    @property
    def is_filtered(self) -> bool:
        return bool(self.filter.q or self.filter.show)

    @property
    def count_text(self) -> str:
        """`30 files` or `Page 2 of 4 · 400 files`."""
        text = counted(self.page.total, "file")
        return f"Page {self.page.page} of {self.page.pages} · {text}" if self.page.pages > 1 else text

    @property
    def links(self) -> list[PageLink]:
        """To the other pages, and to all of them on one."""
        found = []
        if self.page.page > 1:
            found.append(PageLink(self._url(page=self.page.page - 1), "Previous"))
        if self.page.page < self.page.pages:
            found.append(PageLink(self._url(page=self.page.page + 1), "Next"))
        if self.page.pages > 1:
            found.append(PageLink(self._url(whole=True), "All on one page, for printing"))
        return found


def figure_of(fit: Fit) -> str:
    """`21.7`, or `33.4 + 2.3` with the second part in RAM, or `71.4` for what it would need in all; GiB."""
    if fit.state in ("unknown", PINNED, BEYOND, UNPLANNED):
        return ""
    if fit.state == "over":
        return gib(fit.total_bytes, 1)
    if fit.on_cpu or not fit.vram_bytes:
        return gib(fit.ram_bytes, 1)
    return f"{gib(fit.vram_bytes, 1)} + {gib(fit.ram_bytes, 1)}" if fit.state == "spills" else gib(fit.vram_bytes, 1)


def word_of(fit: Fit) -> str:
    """What the shape of a cell stands for, in a word or two."""
    match fit.state:
        case "fits":
            return "in RAM" if fit.on_cpu else "all on GPU"
        case "stepped":
            return f"with {_cache(fit.placement)} cache"
        case "spills":
            return _spill(fit)
        case "over":
            return _shortage(fit)
        case "unknown":
            return "cannot judge"
        case "pinned":
            return "window pinned"
    return "beyond training"


def _cache(placement: Placement | None) -> str:
    return placement.type_k if placement else ""


def _spill(fit: Fit) -> str:
    if fit.placement is None:
        return "parts in RAM"
    if fit.placement.kv_in_ram:
        return "cache in RAM"
    where = placement_word(fit.placement, fit.block_count)
    return where if fit.placement.type_k in ("f16", "bf16", "f32") else f"{where}, {fit.placement.type_k}"


def _shortage(fit: Fit) -> str:
    if fit.short_ram_bytes:
        return f"{gib(fit.short_ram_bytes, 1)} RAM short"
    return f"{gib(fit.short_vram_bytes, 1)} VRAM short" if fit.short_vram_bytes else "does not fit"


def budget_line(budget: Budget) -> str:
    """`22.50 GiB VRAM on RTX 3090 and 48.00 GiB RAM`."""
    ram = f"{gib(budget.ram_bytes)} GiB RAM" if budget.ram_bytes else "RAM without a cap"
    if not budget.device_bytes:
        return f"no GPU, {ram}"
    sizes = _joined([gib(size) for size in budget.device_bytes])
    names = f" on {_joined(budget.device_names)}" if budget.device_names else ""
    return f"{sizes} GiB VRAM{names}, {ram}"


def _joined(parts: Sequence[str]) -> str:
    return " + ".join(parts)
