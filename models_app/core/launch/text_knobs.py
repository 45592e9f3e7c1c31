"""Knobs of a launch text that are no pins of launch.md 10 and still change what a launch allocates."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.errors import LaunchError
from models_app.core.launch.pins import flag_values
from models_app.core.launch.tokens import POSIX, split_command


@dataclass(frozen=True, slots=True)
class TextKnobs:
    """The last value of each; None and blank where the text does not say."""

    batch: int | None = None
    kv_unified: bool = True
    flash_attn: str = ""
    swa_full: bool = False
    tensor_split: str = ""
    split_mode: str = ""
    main_gpu: str = ""
    devices: tuple[str, ...] = ()
    """The list of `--device`."""
    no_device: bool = False
    """`--device none`."""
    draft_tokens: int = 0
    draft_k: str = ""
    draft_v: str = ""


def read_text_knobs(text: str, rules: str = POSIX) -> TextKnobs:
    """Never fails: a text that can't be split says nothing."""
    try:
        return text_knobs_of(split_command(text, rules))
    except LaunchError:
        return TextKnobs()


def text_knobs_of(tokens: list[str]) -> TextKnobs:
    """The knobs of the words of a command."""
    given = dict(flag_values(tokens))
    listed = tuple(name for name in given.get("device", "").split(",") if name)
    none = [name.lower() for name in listed] == ["none"]
    return TextKnobs(
        batch=_number(given.get("batch", "")) or None,
        kv_unified="--no-kv-unified" not in given,
        flash_attn=given.get("flashAttn", ""),
        swa_full="--swa-full" in given,
        tensor_split=given.get("tensorSplit", ""),
        split_mode=given.get("splitMode", ""),
        main_gpu=given.get("mainGpu", ""),
        devices=() if none else listed,
        no_device=none,
        draft_tokens=_number(given.get("specDraftNMax", "")),
        draft_k=given.get("kvKDraft", ""),
        draft_v=given.get("kvVDraft", ""),
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
