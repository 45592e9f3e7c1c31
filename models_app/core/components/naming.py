"""What a diffusion model's name says: edits, references, and which encoder it was trained with (discovery.md 11.6, 13).

Tokens count only between the ends and `-`, `_`, `.` or blanks: a `credit-model` is no edit model.
"""

from __future__ import annotations

import re
from collections.abc import Collection

ON, OFF = "on", "off"


def _bounded(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[-_. ])(?:{pattern})(?=$|[-_. ])", re.ASCII | re.IGNORECASE)


_EDIT = _bounded(r"edit|rapid|kontext|instruct[-_]?pix2pix|inpaint|redux")
_REFERENCE = _bounded(r"edit|rapid|kontext")
_UNIFIED = _bounded(r"qwen[-_. ]?image[-_. ]?2\.1")
_FLUX2 = re.compile(r"flux[-_. ]?2(?![0-9])", re.ASCII | re.IGNORECASE)
_FLUX3 = re.compile(r"flux[-_. ]?3(?![0-9])", re.ASCII | re.IGNORECASE)
_Z_IMAGE = re.compile(r"z[-_ ]?image", re.ASCII | re.IGNORECASE)
_KLEIN = _bounded("klein")


def is_flux2_line(name: str) -> bool:
    """FLUX.2 and FLUX.3, which share an autoencoder, by any spelling, and klein models under any name."""
    return "klein" in name.lower() or _FLUX2.search(name) is not None or _FLUX3.search(name) is not None


def is_unified_flux(name: str) -> bool:
    """The klein models of FLUX.2 and FLUX.3 generate and edit; they read references through the VAE."""
    return _KLEIN.search(name) is not None and (_FLUX2.search(name) or _FLUX3.search(name)) is not None


def wants_vision_encoder(name: str, llm_vision: str = "", ref_edit: str = "") -> bool:
    """Does this model need the projector of its text encoder? Pins first, then the name."""
    if llm_vision in (ON, OFF):
        return llm_vision == ON
    if ref_edit == ON:
        return True
    return _EDIT.search(name) is not None or _UNIFIED.search(name) is not None


def is_reference_edit(name: str, llm_vision: str = "", ref_edit: str = "") -> bool:
    """Does this model take a reference image as input? Pins first, then the name."""
    for pin in (ref_edit, llm_vision):
        if pin in (ON, OFF):
            return pin == ON
    return _REFERENCE.search(name) is not None or _UNIFIED.search(name) is not None or is_unified_flux(name)


def encoder_architectures(architecture: str, name: str) -> Collection[str]:
    """Architectures that a model's text encoder is limited to, empty for no limit.

    Different encoders share a width, and a wrong one answers with an unrelated picture instead of an error.
    """
    if _FLUX3.search(name):
        return ("qwen3vl",)
    if "klein" in name.lower() or _Z_IMAGE.search(name) or architecture.strip().lower().startswith("z_image"):
        return ("qwen3",)
    return ()
