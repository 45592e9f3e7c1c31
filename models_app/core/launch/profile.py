"""What planning hands to the renderer of llama-server, besides the placement."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.planning.checkpoints import Checkpoints


@dataclass(frozen=True, slots=True)
class LaunchProfile:
    """One launch of a model. Values are resolved: what the sizer charged is what is emitted.

    `tensor_split` holds the shares as text in the order of `device_ids`, or of the device set where there are none;
    `main_gpu` is a position in that order. With fewer than two shares nothing about devices is emitted.
    """

    spec: str
    checkpoints: Checkpoints
    vision: bool = False
    """The profile carries a projector, where one resolves."""
    projector_in_ram: bool = False
    reasoning_fmt: str = ""
    """Blank: the override's."""
    tensor_split: tuple[str, ...] = ()
    main_gpu: int = 0
    lone_gpu: int = 0
    """Of several devices the one that a launch without a split runs on; 0 is the server's own choice."""
    device_ids: tuple[str, ...] = ()
