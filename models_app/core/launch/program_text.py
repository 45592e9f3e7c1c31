"""What a server's own texts say of it: which engine it is, its version, its flags, what it calls the devices.

Two projects name their program `tts-server`, so a file name proves nothing (classes.md 3; qwentts.md 1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpus_app.core.device_listing import ListedDevice, match_devices, parse_listing
from gpus_app.core.gpu_set import GpuDevice
from models_app.core.launch.audio_devices import AudioDevice, parse_devices
from models_app.core.launch.help import parse_help
from models_app.core.launch.lora import takes_joined_scale

MAX_FLAGS = 1000
MAX_FLAG_CHARACTERS = 64
MAX_DEVICES = 64
MAX_NAME_CHARACTERS = 100
_SHOWN = 60

_VERSION = re.compile(r"\bversion:?\s+v?([0-9]\S*)(?:\s+\(([^)\n]{1,80})\))?", re.IGNORECASE)
_BARE_VERSION = re.compile(r"^\s*(?:[A-Za-z][\w.-]{0,40}\s+)?v?([0-9]+(?:\.[0-9A-Za-z+-]+)+)\s*$", re.MULTILINE)
"""A line of its own, alone or behind the name of the program."""

SIGNATURES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("tts", re.compile(r"^qwentts\.cpp (?P<build>\S+)(?: \((?P<version>[^)\n]{1,40})\))?", re.MULTILINE)),
    ("sd", re.compile(r"^stable-diffusion\.cpp version (?P<version>\S+), commit (?P<build>\S+)", re.MULTILINE)),
    ("vllm", re.compile(r"^vLLM CLI\s*$|^\s*\{chat,complete,serve[,}]", re.MULTILINE)),
    ("asr", re.compile(r"^\s*(?:usage: *)?parakeet-server --model\b", re.MULTILINE | re.IGNORECASE)),
    ("upscale", re.compile(r"^Usage: realesrgan-ncnn-vulkan\b", re.MULTILINE)),
)
"""Kind of a backend -> words of its help that do not come from the name of the file; some say version and build."""
FINGERPRINTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("trellis2", frozenset({"--model", "--dino", "--port"})),
    ("audiocpp", frozenset({"--config", "--voice-dir"})),
    ("audiocpp", frozenset({"--config", "--model-spec-override"})),
    ("sd", frozenset({"--diffusion-model", "--vae"})),
    ("llama", frozenset({"--ctx-size", "--n-gpu-layers", "--port"})),
    ("llama", frozenset({"--ctx-size", "--gpu-layers", "--port"})),
    # Builds for the CPU alone did not name layers before 2025.
    ("llama", frozenset({"--ctx-size", "--batch-size", "--parallel", "--port"})),
    ("ttscpp", frozenset({"--model-path", "--n-threads", "--port"})),
    ("tts", frozenset({"--model", "--codec", "--port"})),
)
"""Kind of a backend -> flags that only its help has all of, the more telling first."""
_SAM_FLAGS = frozenset({"--model", "--port", "--no-gpu"})
_SAM_WORD = re.compile(r"\b(?:sam[23]?|edgetam)(?![a-z])", re.IGNORECASE)
"""Speech servers have the same flags, so the help must speak of its models too."""
UNLISTED: Mapping[str, tuple[str, ...]] = {"asr": ("--version",)}
"""Kind of a backend -> questions that it answers although its help does not name them."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What one executable said. `kind` is "" where its texts give no clear answer."""

    kind: str = ""
    version: str = ""
    build: str = ""
    flags: tuple[str, ...] = ()
    """Spellings of its help in their order; none where the help could not be read."""
    joined_lora_scale: bool = False
    """llama-server takes the scale of an adapter behind its file, as one word."""


@dataclass(frozen=True, slots=True)
class ProgramDevice:
    """One device as the program names it. `tag` is what audio.cpp says of it: GPU, IGPU or CPU."""

    id: str
    name: str
    total_bytes: int = 0
    tag: str = ""


def program_facts(help_text: str, version_text: str = "") -> ProgramFacts:
    """Reads both texts. They are foreign: everything is bounded, nothing is believed beyond its shape."""
    found = parse_help(help_text)
    flags = tuple(spelling for spelling in found.spellings if len(spelling) <= MAX_FLAG_CHARACTERS)[:MAX_FLAGS]
    kind, said = _signed(help_text)
    version, build = _version(version_text)
    return ProgramFacts(
        kind or _by_flags(help_text, frozenset(flags)),
        (said.get("version") or version)[:_SHOWN],
        (said.get("build") or build)[:_SHOWN],
        flags,
        takes_joined_scale(found.hints.get("--lora-scaled")),
    )


def _signed(help_text: str) -> tuple[str, dict[str, str | None]]:
    """The kind whose own words stand in the help, and what they say of version and build; "" where none do."""
    for kind, words in SIGNATURES:
        if found := words.search(help_text):
            return kind, found.groupdict()
    return "", {}


def _by_flags(help_text: str, flags: frozenset[str]) -> str:
    if flags >= _SAM_FLAGS and _SAM_WORD.search(help_text):
        return "sam"
    return next((kind for kind, needed in FINGERPRINTS if needed <= flags), "")


def _version(text: str) -> tuple[str, str]:
    """`version: 6524 (0a1b2c3)` is a version and a build; a bare number is a version."""
    if found := _VERSION.search(text):
        return found[1][:_SHOWN], (found[2] or "")[:_SHOWN]
    bare = _BARE_VERSION.search(text)
    return (bare[1][:_SHOWN] if bare else ""), ""


def program_devices(text: str) -> tuple[ProgramDevice, ...]:
    """The devices of a listing, in whichever of the two forms it is written."""
    audio = parse_devices(text.splitlines())
    if audio:
        found = [
            ProgramDevice(f"{row.backend}:{row.index}", row.name[:MAX_NAME_CHARACTERS], 0, row.kind) for row in audio
        ]
    else:
        found = [ProgramDevice(row.id, row.name[:MAX_NAME_CHARACTERS], row.total_bytes) for row in parse_listing(text)]
    return tuple(device for device in found if len(device.id) <= MAX_FLAG_CHARACTERS)[:MAX_DEVICES]


def audio_devices(devices: Sequence[ProgramDevice]) -> tuple[AudioDevice, ...]:
    """Those that audio.cpp listed, as its own rules take them."""
    found = []
    for device in devices:
        engine, _, number = device.id.partition(":")
        if device.tag and number.isdecimal():
            found.append(AudioDevice(engine, int(number), device.name, device.tag))
    return tuple(found)


def matched_ids(
    ours: Sequence[GpuDevice], devices: Sequence[ProgramDevice], others: Sequence[GpuDevice] = ()
) -> tuple[str, ...]:
    """What the program calls our devices, in our order; () unless every one of them is found.

    `others` are devices of the machine that plans do not use: cards of the same name are told apart by their order.
    Devices that audio.cpp numbers per engine name nothing here.
    """
    listed = [ListedDevice(device.id, device.name, device.total_bytes) for device in devices if not device.tag]
    names = {device.name for device in ours}
    rivals = [device for device in others if device.name in names]
    wanted = sorted([*ours, *rivals], key=lambda device: device.index)
    # A reserve makes no card smaller, only what plans may use of it.
    found = match_devices([(device.name, device.total_bytes + device.reserve_bytes) for device in wanted], listed)
    ids = dict(zip((device.index for device in wanted), found, strict=False))
    return tuple(ids[device.index] for device in ours if device.index in ids)
