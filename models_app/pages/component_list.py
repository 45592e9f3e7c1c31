"""The component files of a host as a table: what each is, who uses it, and why this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.urls import reverse

from models_app import convert
from models_app.core.components import signals
from models_app.models import Component
from models_app.pages.component_words import ROLES, WIRED, because_text, is_ambiguous, pin_key, shape_text
from models_app.selectors.components import HostComponents, ModelRef, Use
from quartermaster_site.figures import gib

PER_PAGE = 100
SHOWN_USERS = 4
TABS: Mapping[str, tuple[str, frozenset[str]]] = {
    "encoders": ("Encoders and VAEs", signals.POOL_ROLES),
    "projectors": ("Projectors", frozenset({signals.PROJECTOR})),
    "drafters": ("Drafters", frozenset({signals.DRAFTER})),
    "enhancers": ("Prompt enhancers", frozenset({signals.ENHANCER})),
    "parts": ("Codecs and parts", frozenset({signals.CODEC, signals.MATTING, signals.AUDIO_PART})),
}
STATES = {
    "used": "Used",
    "unused": "Not used",
    "ambiguous": "Equal candidates",
    "pinned": "Pinned",
    "withheld": "Withheld",
    "away": "Out of reach",
}
_SIDECARS = (signals.PROJECTOR, signals.DRAFTER, signals.CODEC)
_CHAT_ROLES = (signals.LLM, signals.RECURRENT_LLM)


@dataclass(frozen=True, slots=True)
class ComponentFilter:
    """What the address of the list says. Unknown words are dropped, so that an old link still works."""

    host: str = ""
    tab: str = "encoders"
    q: str = ""
    role: str = ""
    state: str = ""
    chat: bool = False
    """Chat models too that no image or video model asks for."""

    @classmethod
    def from_query(cls, query: Any) -> ComponentFilter:
        """From `request.GET`."""
        tab, role, state = (query.get(name, "") for name in ("tab", "role", "state"))
        tab = tab if tab in TABS else "encoders"
        return cls(
            host=query.get("host", "").strip()[:40],
            tab=tab,
            q=query.get("q", "").replace("\x00", "").strip()[:200],
            role=role if role in TABS[tab][1] else "",
            state=state if state in STATES else "",
            chat=query.get("chat") == "1",
        )

    @property
    def is_active(self) -> bool:
        return bool(self.q or self.role or self.state)

    def url(self, **changes: Any) -> str:
        """The address of this filter with some parts changed."""
        new = replace(self, **changes)
        pairs = {"host": new.host, "tab": "" if new.tab == "encoders" else new.tab, "q": new.q, "role": new.role}
        pairs |= {"state": new.state, "chat": "1" if new.chat else ""}
        query = urlencode({name: value for name, value in pairs.items() if value})
        return reverse("models:component-list") + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One reason: a status where it needs one, a text, and a second line below it."""

    text: str
    below: str = ""
    tone: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True)
class ComponentItem:
    pk: int
    name: str
    folder: str
    url: str
    role: str
    shape: str
    evidence: str
    size: str
    users: Sequence[Link]
    more_users: int
    reasons: Sequence[Line]
    pin: str
    """The pin of the host that it may be made, "" where there is none or it is."""
    pinned: str


class ComponentList:
    """One tab of the list, ready to print."""

    def __init__(self, found: HostComponents, wanted: ComponentFilter, page: str | None) -> None:
        self.found = found
        self.filter = wanted
        self._page = page
        self._by_path = {model.path: model for model in found.models}
        self._pins = {path: key for key, path in convert.encoder_pins(found.host).items()}

    @cached_property
    def page(self) -> Page[Component]:
        """The files of the tab, a page of them."""
        roles = {self.filter.role} if self.filter.role else TABS[self.filter.tab][1]
        wanted = self.filter.state
        files = [file for file in self._found if file.role in roles and (not wanted or wanted in self._states(file))]
        return Paginator(files, PER_PAGE).get_page(self._page)

    @cached_property
    def items(self) -> list[ComponentItem]:
        """What the page shows; the other files of the tab are only counted."""
        return [self._item(file) for file in self.page.object_list]

    @cached_property
    def _found(self) -> list[Component]:
        """What the text filter leaves of all kinds, without idle chat models."""
        words = self.filter.q.lower().split()
        listed = (file for file in self.found.files if self.filter.chat or not self._is_idle(file))
        return [file for file in listed if not words or self._has_all(file, words)]

    def _has_all(self, file: Component, words: Sequence[str]) -> bool:
        users = (use.model.served_id for use in self.found.uses.get(file.path, ()))
        text = " ".join((file.path, ROLES.get(file.role, file.role), file.family, *users)).lower()
        return all(word in text for word in words)

    def _is_idle(self, file: Component) -> bool:
        """A chat model that no image or video model asks for: it is an encoder in theory only."""
        is_model = file.path in self._by_path and file.role in _CHAT_ROLES
        return is_model and not any(file.path in known for known in (self.found.uses, self.found.runners_up))

    @property
    def idle_count(self) -> int:
        """Chat models that are left out."""
        if self.filter.tab != "encoders" or self.filter.chat:
            return 0
        return sum(map(self._is_idle, self.found.files))

    @property
    def tabs(self) -> list[dict[str, object]]:
        """All kinds with the number of files that the text filter leaves."""
        counts = Counter(file.role for file in self._found)
        kept = ComponentFilter(host=self.filter.host, q=self.filter.q, chat=self.filter.chat)
        return [
            {
                "text": text,
                "count": sum(counts[role] for role in roles),
                "url": kept.url(tab=slug),
                "on": slug == self.filter.tab,
            }
            for slug, (text, roles) in TABS.items()
        ]

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Roles of the tab that occur, for the filter."""
        present = {file.role for file in self.found.files} & TABS[self.filter.tab][1]
        return [(role, text) for role, text in ROLES.items() if role in present] if len(present) > 1 else []

    def _item(self, file: Component) -> ComponentItem:
        uses = self.found.uses.get(file.path, ())
        model = self._by_path.get(file.path)
        folder, _, name = file.path.replace("\\", "/").rpartition("/")
        key = pin_key(file.role, file.family, file.width)
        pinned = self._pins.get(file.path, "")
        entry = convert.core_component(file)
        users, more_users = _users(uses)
        return ComponentItem(
            pk=file.pk,
            name=name,
            folder=folder,
            url=_url(model) if model else "",
            role=ROLES.get(file.role, file.role),
            shape=shape_text(entry),
            evidence=file.recognised_by,
            size=gib(file.size_bytes),
            users=users,
            more_users=more_users,
            reasons=self._reasons(file, uses, pinned),
            pin=key if entry.is_offered and not pinned and self._has_rivals(file, uses) else "",
            pinned=pinned,
        )

    def _idle_sidecar(self, file: Component) -> Line:
        """Why nobody uses a file that lies beside models."""
        for other in self.found.files:
            if other.role == file.role and _folder(other.path) == _folder(file.path) and other.path in self.found.uses:
                return Line("another is used", f"{other.path.rpartition('/')[2]}, of this folder", "", "dash")
        return Line("no model fits", "neither in its folder nor in its family", "", "dash")

    def _has_rivals(self, file: Component, uses: Sequence[Use]) -> bool:
        """Is there a choice that a pin would settle?"""
        return file.path in self.found.runners_up or any(use.pick.others for use in uses)

    def _states(self, file: Component) -> frozenset[str]:
        """Which choices of the use filter this file answers to."""
        uses = self.found.uses.get(file.path, ())
        lost = self.found.runners_up.get(file.path, ())
        ambiguous = any(_is_as_good(file.path, use) for use in lost) or any(is_ambiguous(use.pick) for use in uses)
        held = {
            "used": bool(uses),
            "unused": not uses,
            "ambiguous": ambiguous,
            "pinned": file.path in self._pins,
            "withheld": bool(file.withheld),
            "away": file.away_since is not None,
        }
        return frozenset(name for name, holds in held.items() if holds)

    def _reasons(self, file: Component, uses: Sequence[Use], pinned: str) -> list[Line]:
        lines = []
        if file.away_since:
            lines.append(Line("out of reach", "its folder could not be read", "bad", "off"))
        if pinned:
            lines.append(Line(f"pinned on the host as {pinned}", shape="lock"))
        if file.withheld:
            lines.append(Line("withheld", file.withheld, "", "hidden"))
        lines += self._choices(uses, pinned)
        if not uses:
            lines += self._losses(file)
        return lines

    def _choices(self, uses: Sequence[Use], pinned: str) -> Iterable[Line]:
        """Why this one, said once for all models with the same reason."""
        reasons: dict[str, Use] = {}
        for use in uses:
            reasons.setdefault(because_text(use.pick), use)
        for text, use in reasons.items():
            if is_ambiguous(use.pick):
                count = len(use.pick.ranking.equals) + 1
                yield Line(f"{count} equal candidates", "this one is used, by path alone", "warn", "warn")
            elif not (pinned and use.pick.because == "host-pin"):
                yield Line(text)

    def _losses(self, file: Component) -> Iterable[Line]:
        if file.role in _SIDECARS and not file.withheld:
            yield self._idle_sidecar(file)
        lost = self.found.runners_up.get(file.path, ())
        for use in {use.pick.path: use for use in lost}.values():
            winner = use.pick.path.rpartition("/")[2]
            if _is_as_good(file.path, use):
                yield Line("an equal one is used", f"{winner}, by path alone", "warn", "warn")
            else:
                yield Line("another is used", f"{winner}: {because_text(use.pick)}", "", "dash")


def _folder(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[0]


def _is_as_good(path: str, lost: Use) -> bool:
    """Did a file lose this choice by nothing but its path?"""
    return is_ambiguous(lost.pick) and any(entry.path == path for entry in lost.pick.ranking.equals)


def _users(uses: Sequence[Use]) -> tuple[list[Link], int]:
    """The first few models with the role of the file in them, each once, and how many more there are."""
    named: dict[str, Use] = {}
    for use in uses:
        named.setdefault(use.model.served_id, use)
    shown = list(named.items())[:SHOWN_USERS]
    links = [Link(name, _url(use.model), WIRED.get(use.role, use.role)) for name, use in shown]
    return links, len(named) - len(links)


def _url(model: ModelRef) -> str:
    return reverse("models:model-files", args=[model.pk])
