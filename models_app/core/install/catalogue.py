"""The components that we know how to install, as data: repositories, variants, and rules for file names (16.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

WINDOWS, LINUX, DARWIN = "windows", "linux", "darwin"
ANY = "any"


@dataclass(frozen=True, slots=True)
class AssetRule:
    """File names of one variant on one system: patterns in order of preference, matched without regard to case.

    `extras` go with the chosen file as far as they are published; `{name}` in them is a group of the chosen pattern.
    """

    variant: str
    system: str
    patterns: tuple[str, ...]
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """Something that can be installed. `kind` is the kind of backend that it becomes, "" for a helper."""

    id: str
    repo: str
    kind: str
    rules: tuple[AssetRule, ...] = ()
    manual: bool = False
    """Only described; its own tools install it."""

    def variants(self, system: str) -> list[str]:
        """Variants that are published for a system, in order of the table."""
        return list(dict.fromkeys(rule.variant for rule in self.rules if rule.system == system))


_ARCHIVE = r"\.(?:zip|tar\.gz)"


def _llama(variant: str, system: str, *names: str, extras: tuple[str, ...] = ()) -> AssetRule:
    return AssetRule(variant, system, tuple(rf"llama-.+-bin-{name}{_ARCHIVE}" for name in names), extras)


def _diffusion(variant: str, system: str, *names: str, extras: tuple[str, ...] = ()) -> AssetRule:
    return AssetRule(variant, system, tuple(rf"sd-.*{name}\.zip" for name in names), extras)


def _trellis(variant: str, system: str, name: str) -> AssetRule:
    return AssetRule(variant, system, (rf"trellis2-server-.*{name}",))


def _audio(variant: str, system: str, words: str) -> AssetRule:
    """Its names are not settled: one that holds system and variant as words is taken."""
    return AssetRule(
        variant, system, (rf"audio(?:\.|_|-)?cpp.*(?:{words})(?:.*[-_.])?{variant}(?:[-_.].*)?{_ARCHIVE}",)
    )


_CUDART = "cudart-llama-bin-win-cuda-"
COMPONENTS: tuple[Component, ...] = (
    Component(
        "llama-server",
        "ggml-org/llama.cpp",
        "llama",
        (
            _llama("vulkan", WINDOWS, "win-vulkan-x64"),
            _llama("vulkan", LINUX, "ubuntu-vulkan-x64"),
            _llama(
                "cuda",
                WINDOWS,
                r"win-cuda-(?P<toolkit>13\.\d+)-x64",
                r"win-cuda-(?P<toolkit>[\d.]+)-x64",
                extras=(rf"{_CUDART}{{toolkit}}-x64\.zip", rf"{_CUDART}[\d.]+-x64\.zip"),
            ),
            _llama("rocm", WINDOWS, "win-rocm-.*x64", "win-hip-radeon-x64", "win-hip-.*x64"),
            _llama("rocm", LINUX, "ubuntu-rocm-.+-x64"),
            _llama("metal", DARWIN, "macos-arm64"),
            _llama("cpu", WINDOWS, "win-cpu-x64", "win-avx2-x64"),
            _llama("cpu", LINUX, "ubuntu-x64"),
            _llama("cpu", DARWIN, "macos-x64"),
        ),
    ),
    Component("vllm", "vllm-project/vllm", "vllm", manual=True),
    Component(
        "sd-server",
        "leejet/stable-diffusion.cpp",
        "sd",
        (
            _diffusion("vulkan", WINDOWS, "win-vulkan-x64"),
            _diffusion("vulkan", LINUX, "ubuntu.*vulkan.*"),
            _diffusion("rocm", WINDOWS, "win-rocm.*x64", "win-hip.*x64"),
            _diffusion("rocm", LINUX, "ubuntu.*rocm.*", "ubuntu.*hip.*"),
            _diffusion(
                "cuda",
                WINDOWS,
                r"win-cuda(?P<toolkit>\d+)-x64",
                extras=(r"cudart-sd-bin-win-cu{toolkit}-x64\.zip", r"cudart-sd-bin-win-cu\d+-x64\.zip"),
            ),
            _diffusion("metal", DARWIN, "(?:darwin|macos).*"),
            _diffusion("cpu", WINDOWS, "win-cpu-x64", "win-avx2-x64"),
            _diffusion("cpu", LINUX, r"linux-ubuntu-[\d.]+-x86_64"),
        ),
    ),
    Component(
        "upscaler",
        "xinntao/Real-ESRGAN",
        "upscale",
        (
            AssetRule(ANY, WINDOWS, (r"realesrgan-ncnn-vulkan-.*windows\.zip",)),
            AssetRule(ANY, LINUX, (r"realesrgan-ncnn-vulkan-.*ubuntu\.zip",)),
            AssetRule(ANY, DARWIN, (r"realesrgan-ncnn-vulkan-.*macos\.zip",)),
        ),
    ),
    Component(
        "trellis2-server",
        "Radu0120/trellis2.c",
        "trellis2",
        (
            _trellis("vulkan", WINDOWS, r"-win-x64-vulkan\.zip"),
            _trellis("vulkan", LINUX, r"-linux-x64-vulkan\.tar\.gz"),
            _trellis("cuda", WINDOWS, r"-win-x64-cuda\.zip"),
        ),
    ),
    Component(
        "audiocpp-server",
        "0xShug0/audio.cpp",
        "audiocpp",
        tuple(
            _audio(variant, system, words)
            for variant in ("vulkan", "cuda", "cpu", "cpu-portable")
            for system, words in ((WINDOWS, "win|windows"), (LINUX, "linux|ubuntu"))
        )
        + tuple(_audio(variant, DARWIN, "mac|macos|darwin") for variant in ("metal", "cpu")),
    ),
    Component(
        "yt-dlp",
        "yt-dlp/yt-dlp",
        "",
        (
            AssetRule(ANY, WINDOWS, (r"yt-dlp\.exe",)),
            AssetRule(ANY, LINUX, ("yt-dlp_linux", "yt-dlp")),
            AssetRule(ANY, DARWIN, ("yt-dlp_macos",)),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A repository that people track beside the built-in ones."""

    id: str
    repo: str = ""
    kind: str = ""
    name: str = ""
    blurb: str = ""
    exe: str = ""
    bare: bool = False
    allow_prerelease: bool = False
    systems: tuple[str, ...] = ()
    rules: tuple[AssetRule, ...] = field(default=())


def merge_sources(sources: Iterable[Source], builtin: Iterable[Component] = COMPONENTS) -> tuple[Component, ...]:
    """The catalogue with tracked sources behind the built-in components. An id that is taken is dropped."""
    merged = {component.id: component for component in builtin}
    for source in sources:
        merged.setdefault(source.id, Component(source.id, source.repo, source.kind, source.rules))
    return tuple(merged.values())


def component_of(component_id: str, components: Iterable[Component] = COMPONENTS) -> Component | None:
    return next((component for component in components if component.id == component_id), None)
