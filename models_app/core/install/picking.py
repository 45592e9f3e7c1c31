"""Which release, which variant, which file (classes.md 16.2, 16.3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from models_app.core.errors import QuartermasterError
from models_app.core.install.catalogue import ANY, DARWIN, AssetRule, Component

_NVIDIA = re.compile(r"nvidia|geforce|quadro|tesla|rtx", re.IGNORECASE)
_APPLE = re.compile(r"apple", re.IGNORECASE)


class NoAsset(QuartermasterError):
    """A release has no file for this component, variant and system. Another variant is never taken instead."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The file to download and those that go with it."""

    asset: str
    extras: tuple[str, ...] = ()


def match_asset(component: Component, variant: str, system: str, assets: Sequence[str]) -> Picked:
    """Raises `NoAsset`."""
    if component.manual:
        raise NoAsset(f"{component.id} is installed by its own tools")
    rules = [rule for rule in component.rules if (rule.variant, rule.system) == (variant, system)]
    for rule in rules:
        for pattern in rule.patterns:
            for asset in assets:
                if found := re.fullmatch(pattern, asset, re.IGNORECASE):
                    return Picked(asset, _extras(rule, found.groupdict(), assets))
    raise NoAsset(f"this release of {component.id} has no file for {variant} on {system}")


def _extras(rule: AssetRule, parts: dict[str, str | None], assets: Iterable[str]) -> tuple[str, ...]:
    """The first extra that is published. A pattern whose placeholder was not filled is dropped."""
    known = {name: re.escape(value) for name, value in parts.items() if value}
    names = list(assets)
    for pattern in rule.extras:
        for name, value in known.items():
            pattern = pattern.replace(f"{{{name}}}", value)
        if re.search(r"\{[a-z]+\}", pattern):
            continue
        if found := [asset for asset in names if re.fullmatch(pattern, asset, re.IGNORECASE)]:
            return (found[0],)
    return ()


def suggest_variant(gpus: Iterable[str]) -> str:
    """The variant for these graphics cards, by their names. One NVIDIA card decides for CUDA."""
    names = [name for name in gpus if name.strip()]
    if any(_NVIDIA.search(name) for name in names):
        return "cuda"
    if any(_APPLE.search(name) for name in names):
        return "metal"
    return "vulkan" if names else "cpu"


def default_variant(component: Component, gpus: Iterable[str], system: str) -> str:
    """The suggested variant where it is published for this system, else the first one that is; "" for none."""
    published = component.variants(system)
    wanted = "metal" if system == DARWIN else suggest_variant(gpus)
    for variant in (wanted, ANY):
        if variant in published:
            return variant
    return published[0] if published else ""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a repository."""

    tag: str
    prerelease: bool = False


def pick_release(
    releases: Sequence[Release], tag: str, *, allow_prerelease: bool, installable: Collection[str] | None
) -> str:
    """The tag to install, "" for none. `releases` are newest first; `installable` are tags with a file for us.

    A wanted tag is taken exactly or not at all.
    """
    if tag:
        return tag if any(release.tag == tag for release in releases) else ""
    if not releases:
        return ""
    if allow_prerelease:
        return releases[0].tag
    usable = [release for release in releases if installable is None or release.tag in installable]
    final = [release for release in usable if not release.prerelease]
    return (final or usable or list(releases))[0].tag
