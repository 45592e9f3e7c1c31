"""What to download beside a split diffusion model (discovery.md 16).

Which roles are missing is decided as for a launch. Where a file comes from is a table kept by hand, because no header
says where a component is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a repository."""

    repo: str
    path: str
    label: str


@dataclass(frozen=True, slots=True)
class CompanionFamily:
    """One row of the table. A blank condition always holds; specific rows go first."""

    key: str
    architecture: str = ""
    name: str = ""
    caption_width: int = 0
    sources: Mapping[str, Source] = field(default_factory=dict)

    def matches(self, architecture: str, name: str, caption_width: int) -> bool:
        return (
            architecture.strip().lower().startswith(self.architecture.lower())
            and self.name.lower() in name.lower()
            and self.caption_width in (0, caption_width)
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """The family that matched, a source for each missing role that has one, and the roles without."""

    family: str = ""
    offered: Mapping[str, Source] = field(default_factory=dict)
    unsourced: tuple[str, ...] = ()


def offer_companions(
    families: Iterable[CompanionFamily], architecture: str, name: str, caption_width: int, missing: Iterable[str]
) -> Offer:
    """What can be offered for the missing roles of one model."""
    family = next((item for item in families if item.matches(architecture, name, caption_width)), None)
    sources = family.sources if family else {}
    roles = tuple(missing)
    return Offer(
        family.key if family else "",
        {role: sources[role] for role in roles if role in sources},
        tuple(role for role in roles if role not in sources),
    )
