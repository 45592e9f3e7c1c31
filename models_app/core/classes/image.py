"""Image: diffusion models for sd-server (classes.md 6)."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass, has_prefix

ARCHITECTURES = (
    "flux",
    "sd1",
    "sd3",
    "sdxl",
    "stable-diffusion",
    "qwen_image",
    "z_image",
    "lumina",
    "wan",
    "diffusion",
    "moss_image",
)
UNDECLARED = "diffusion"
"""Architecture given to a file that only says `general.type = diffusion`."""
FAST_WORDS = ("turbo", "distill")
WIDE_CAPTION = 4096
"""Caption width of Qwen-Image 2.1."""


def is_image_architecture(architecture: str) -> bool:
    return has_prefix(architecture, ARCHITECTURES)


def image_architecture(header: Header) -> str:
    """The architecture to use: the declared one if it is one of images, else what the tensors or the type say."""
    if is_image_architecture(header.architecture):
        return header.architecture
    if header.diffusion_kind:
        return header.diffusion_kind
    return UNDECLARED if header.general_type == UNDECLARED else header.architecture


def match(file_name: str, header: Header | None) -> str:
    if header is None:
        return ""
    architecture = image_architecture(header)
    if not is_image_architecture(architecture):
        return ""
    if is_image_architecture(header.architecture):
        return f"image architecture {header.architecture.strip()}"
    return f"tensors of a {header.diffusion_kind} model" if header.diffusion_kind else "general.type is diffusion"


def image_defaults(architecture: str, name: str, caption_width: int) -> tuple[int | None, float | None]:
    """Steps and guidance scale to set; None leaves them to the server (classes.md 6.5)."""
    if not architecture.strip().lower().startswith("qwen_image"):
        return None, None
    if any(word in name.lower() for word in FAST_WORDS):
        return 8, 1.0
    return (40, 1.0) if caption_width == WIDE_CAPTION else (None, None)


IMAGE = ModelClass("image", "Image", "image", match)
