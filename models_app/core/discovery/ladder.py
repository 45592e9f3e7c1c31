"""What a file name alone decides, before any header is read (discovery.md 3, steps 1 to 7)."""

from __future__ import annotations

import re

from models_app.core.classes.sam import is_sam_name

SAM = "sam"
IGNORED = "ignored"
OTHER_GGML = "other-ggml"
FAST_MTP = "dropped-fastmtp"
DRAFTER_MTP = "drafter-mtp"
DRAFTER_DFLASH = "drafter-dflash"
CODEC = "codec"
COMPONENT = "dropped-encoder"
CANDIDATE = "candidate"

BIREFNET = "birefnet"
_FAST_MTP = re.compile(r"(?:^|[-_.])fast[-_.]?mtp(?=[-_.])", re.ASCII)
_MTP_PREFIX = re.compile(r"mtp[-_.]", re.ASCII)
_CODEC = re.compile(r"tokenizer[-_]?[0-9]+hz|codec", re.ASCII)
_COMPONENT = re.compile(
    r"(?:^|[-_.])(?:t5xxl|t5[-_]?v1[-_.]?1|umt5|clip[-_]?[lg]|text[-_]?encoder|ae|vae|taesd\w*|with[-_]?proj)(?=[-_.])"
    r"|[-_.]encoder(?=[-_.])",
    re.ASCII,
)
_PROJECTOR_NAME = re.compile(r"(?:^|[-_.])mmproj(?=[-_.])", re.ASCII)

REASONS = {
    FAST_MTP: "a FastMTP head, which llama-server rejects",
    DRAFTER_MTP: "a drafter for the models of its folder",
    DRAFTER_DFLASH: "a drafter for the models of its folder",
    CODEC: "a speech codec for the talker of its folder",
    COMPONENT: "a component of diffusion models (encoder or VAE), by its name",
    IGNORED: "not a model file",
    OTHER_GGML: "a .ggml file of another program; only segmentation models are served in this form",
}
"""Why a file of this kind is not a row."""


def file_kind(name: str) -> str:
    """The kind of a file by its bare name; `candidate` means that the header decides."""
    lower = name.lower()
    if lower.endswith(".ggml"):
        return SAM if is_sam_name(lower) else OTHER_GGML
    if not lower.endswith(".gguf"):
        return IGNORED
    if _FAST_MTP.search(lower):
        return FAST_MTP
    if _MTP_PREFIX.match(lower):
        return DRAFTER_MTP
    if "dflash" in lower:
        return DRAFTER_DFLASH
    if _CODEC.search(lower):
        return CODEC
    if _COMPONENT.search(lower) or BIREFNET in lower:
        return COMPONENT
    return CANDIDATE


def is_projector_name(name: str) -> bool:
    """Does the name claim to be a projector? Only asked when the header cannot be read: it has no say otherwise."""
    return _PROJECTOR_NAME.search(name.lower()) is not None
