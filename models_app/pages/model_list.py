"""What stands around the rows of the list of models: categories, chips, column heads, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import reverse

from models_app.pages.model_row import HostScale, ModelItem, family_of, model_item
from models_app.selectors import STATES, ModelGroup, ModelPage
from quartermaster_site.figures import counted, gib

CATEGORY_NAMES = {
    "llm": "Text",
    "image": "Image",
    "video": "Video",
    "3d": "3D",
    "segment": "Segmentation",
    "tts": "Speech",
    "transcribe": "Transcription",
    "music": "Music",
    "embed": "Embedding",
}
_COLUMNS = (
    ("name", "Name", ""),
    ("quant", "Quant", "w"),
    ("host", "Host", ""),
    ("cat", "Class", "q-hide-m"),
    ("size", "Size", "r q-hide-m"),
    ("ctx", "Context", "r"),
    ("vram", "Est. VRAM", "r text-nowrap"),
    ("ram", "RAM", "r q-hide-m"),
    ("", "Placement", "q-nw"),
    ("state", "State", "q-nw"),
)


@dataclass(frozen=True, slots=True)
class ListLink:
    url: str
    text: str
    on: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    text: str
    css: str
    url: str
    direction: str


class ModelList:
    """One page of the list, ready to print. `scales` has every host of it by number."""

    def __init__(self, page: ModelPage, scales: dict[int, HostScale], user: Any) -> None:
        self.page = page
        self.filter = page.filter
        self._scales = scales
        self._user = user
        self._many_hosts = len(scales) > 1

    @cached_property
    def items(self) -> list[ModelItem]:
        """Rows in order; with grouping the first of each family carries its heading."""
        sizes = Counter(group.chosen.family_key for group in self.page.groups)
        headings = Counter(self._heading(group, sizes) for group in self.page.groups)
        items, last = [], ""
        for group in self.page.groups:
            heading = self._heading(group, sizes)
            items.append(self._item(group, heading if heading != last else "", headings[heading]))
            last = heading
        return items

    def _heading(self, group: ModelGroup, sizes: Mapping[str, int]) -> str:
        """Under which heading a model stands: its family, when that has other members too."""
        if not self.filter.families:
            return ""
        family = family_of(group.chosen, self._user)
        return family if family and sizes[family] > 1 else "Without relatives"

    def _item(self, group: ModelGroup, heading: str, members: int) -> ModelItem:
        return model_item(
            group,
            self._scales[group.chosen.host_id],
            self.filter,
            self._user,
            show_host=self._many_hosts,
            heading=heading,
            members=members if heading else 0,
        )

    @property
    def tabs(self) -> list[ListLink]:
        counts = self.page.categories
        tabs = [ListLink(self._url(cat=""), "All", not self.filter.cat, sum(counts.values()))]
        for slug, name in CATEGORY_NAMES.items():
            if counts.get(slug) or slug == self.filter.cat:
                tabs.append(ListLink(self._url(cat=slug), name, slug == self.filter.cat, counts.get(slug, 0)))
        return tabs

    @property
    def chips(self) -> list[ListLink]:
        """Active filters, each with the address that lifts it."""
        active = self.filter
        named = {
            "q": f"“{active.q}”",
            "host": f"host: {active.host}",
            "cat": CATEGORY_NAMES.get(active.cat, active.cat),
            "state": STATES.get(active.state, ""),
        }
        return [ListLink(self._url(**{key: ""}), text) for key, text in named.items() if getattr(active, key)]

    @property
    def columns(self) -> list[Column]:
        return [self._column(*column) for column in _COLUMNS if self._many_hosts or column[0] != "host"]

    def _column(self, key: str, text: str, css: str) -> Column:
        """Ascending, then descending, then the natural order again."""
        if not key:
            return Column(text, css, "", "")
        now = self.filter.sort
        following = {key: f"-{key}", f"-{key}": ""}.get(now, key)
        direction = {key: "ascending", f"-{key}": "descending"}.get(now, "")
        return Column(text, css, self._url(sort=following), direction)

    def _url(self, **changes: str) -> str:
        return f"{reverse('models:model-list')}{self.filter.query(page=1, **changes)}"

    @property
    def bulk_url(self) -> str:
        """The bulk edit of everything that the filter leaves."""
        return f"{reverse('models:model-bulk')}{self.filter.query(page=1, picks=frozenset())}&all=1".replace("?&", "?")

    @property
    def pages(self) -> list[ListLink]:
        """Previous and next, where there are any."""
        address = reverse("models:model-list")
        links = []
        if self.page.page > 1:
            links.append(ListLink(f"{address}{self.filter.query(page=self.page.page - 1)}", "Previous"))
        if self.page.page < self.page.pages:
            links.append(ListLink(f"{address}{self.filter.query(page=self.page.page + 1)}", "Next"))
        return links

    @property
    def count_text(self) -> str:
        """`30 models in 35 files · filters hide 14 · budget line at 22.00 GiB`."""
        if not self.page.row_total:
            return ""
        parts = [f"{counted(self.page.group_total, 'model')} in {counted(self.page.row_total, 'quant')}"]
        if self.page.hidden:
            parts.append(f"filters hide {self.page.hidden:,}")
        budgets = {scale.budget_bytes for scale in self._scales.values() if scale.budget_bytes}
        if len(budgets) == 1:
            parts.append(f"budget line at {gib(budgets.pop())} GiB")
        return " · ".join(parts)
