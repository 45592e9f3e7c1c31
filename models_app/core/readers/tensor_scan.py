"""What the tensor table tells about a model: one walk answers everything below (headers.md 7).

Diffusion, video and caption markers are looked for in the bare name, without the prefix that ComfyUI writes.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from models_app.core.catalog import TensorInfo, WeightTable
from models_app.core.readers.limits import MAX_EXTRA_KEY_BYTES, MAX_INTEGER
from models_app.core.readers.tensor_types import tensor_bytes
from models_app.core.readers.weights import WeightTally

_PREFIX = "model.diffusion_model."
_UNET, _UNET_LABELS, _FLUX = "input_blocks.", "label_emb.", "double_blocks"
_QWEN_IMAGE = ("img_in", "txt_in", "transformer_blocks")
_ENCODERS = ("conditioner.embedders.", "cond_stage_model.")
_SUBSTRINGS = (_UNET, _UNET_LABELS, _FLUX, *_QWEN_IMAGE, *_ENCODERS)

_H3_VIDEO = ("video_patch_proj.", "final_layer.video_out.")
_H3_AUDIO = ("audio_patch_proj.", "final_layer.audio_out.")
_LTX_VIDEO, _LTX_AUDIO = "patchify_proj.weight", "audio_patchify_proj.weight"
WAN_VIDEO = "patch_embedding.weight"
WAN_BIAS = "patch_embedding.bias"
_WAN_DIMENSIONS = 5

CAPTION_TENSORS = (
    "txt_in.weight",
    "txt_in.in_layer.weight",
    "cap_embedder.1.weight",
    "text_proj.weight",
    "condition_proj.weight",
    "context_embedder.weight",
    "txtfusion.layerwise_blocks.0.prenorm.scale",
)
"""By rank, not by file order: the width that a diffusion model expects of its text encoder is `ne[0]` of the first."""
_CAPTION_RANK = {name: rank for rank, name in enumerate(CAPTION_TENSORS)}

COMPONENT_TENSORS = frozenset(
    {
        "decoder.conv_in.weight",
        "conv1.weight",
        "decoder.conv1.weight",
        "encoder.conv_in.weight",
        "decoder.conv_in.conv.weight",
        "audio_vae.decoder.conv_in.conv.weight",
        "dec_in_proj.weight",
        "text_model.embeddings.token_embedding.weight",
        "encoder.block.0.layer.0.SelfAttention.q.weight",
        "shared.weight",
        "conv1.bias",
        "decoder.conv1.bias",
        "decoder.conv_in.conv.bias",
    }
)
"""Tensors by whose shapes the component pool knows VAEs and encoders (components/signals.py); only these are kept."""

TOKEN_TABLE, OUTPUT, HF_TOKEN_TABLE = "token_embd.weight", "output.weight", "model.embed_tokens.weight"


class TensorScan:
    """Sums and signs over the tensors of a model, all shards of a set together."""

    def __init__(self) -> None:
        self.count = 0
        self.param_count = 0
        self.type_bytes: dict[int, int] = {}
        """Histogram: type id -> bytes, 0 for an unknown type, whose presence must stay visible."""
        self.total_bytes = 0
        self.has_unknown_type = False
        self._expert_bytes = 0
        self._tally = WeightTally()
        self._signs: set[str] = set()
        self._caption_widths: dict[int, int] = {}
        self._table_elements: dict[str, int] = {}
        self._table_widths: dict[str, int] = {}
        self._wan_dimensions: dict[str, int] = {}
        self.component_shapes: dict[str, tuple[int, ...]] = {}
        """Shapes of the tensors that mark a component, and of a Wan network's way in, innermost first."""

    def add(self, name: str, shape: tuple[int, ...], type_id: int, elements: int) -> int | None:
        """Count one tensor and return its bytes, None for an unknown type."""
        size_bytes = tensor_bytes(type_id, (elements,))
        self.count += 1
        self.param_count += elements
        self.type_bytes[type_id] = self.type_bytes.get(type_id, 0) + (size_bytes or 0)
        if size_bytes is None:
            self.has_unknown_type = True
        else:
            self.total_bytes += size_bytes
            if "_exps" in name:
                self._expert_bytes += size_bytes
        self._tally.add(TensorInfo(name[:MAX_EXTRA_KEY_BYTES], shape, type_id, size_bytes))
        self._note_signs(name.removeprefix(_PREFIX), name, shape)
        if name in (TOKEN_TABLE, OUTPUT, HF_TOKEN_TABLE):
            self._table_elements.setdefault(name, elements)
            self._table_widths.setdefault(name, shape[0] if shape else 0)
        elif name in COMPONENT_TENSORS:
            self.component_shapes[name] = shape
        return size_bytes

    def _note_signs(self, bare: str, name: str, shape: tuple[int, ...]) -> None:
        for sign in _SUBSTRINGS:
            if sign in bare:
                self._signs.add(sign)
        if bare.startswith(_H3_VIDEO):
            self._signs.add(_H3_VIDEO[0])
        elif bare.startswith(_H3_AUDIO):
            self._signs.add(_H3_AUDIO[0])
        elif bare in (_LTX_VIDEO, _LTX_AUDIO):
            self._signs.add(bare)
        elif bare == WAN_VIDEO:
            self._wan_dimensions[name] = len(shape)
            self.component_shapes[bare] = shape
        elif bare == WAN_BIAS:
            self.component_shapes[bare] = shape
        rank = _CAPTION_RANK.get(bare)
        if rank is not None and shape and shape[0] > 0:
            self._caption_widths.setdefault(rank, shape[0])

    @property
    def diffusion_kind(self) -> str:
        """The layout of an image network, "" for anything else."""
        if _UNET in self._signs:
            return "sdxl" if _UNET_LABELS in self._signs else "sd1"
        if _FLUX in self._signs:
            return "flux"
        return "qwen_image" if self._signs.issuperset(_QWEN_IMAGE) else ""

    @property
    def has_baked_encoders(self) -> bool:
        """A full checkpoint, with its text encoders inside."""
        return not self._signs.isdisjoint(_ENCODERS)

    def video_kind(self, original_dimensions: Mapping[str, int]) -> str:
        """The layout of a video network. `original_dimensions`: how many a tensor had before it was flattened."""
        if _H3_VIDEO[0] in self._signs:
            return "minimax_h3"
        if _LTX_VIDEO in self._signs:
            return "ltxav"
        for name, dimensions in self._wan_dimensions.items():
            if _WAN_DIMENSIONS in (dimensions, original_dimensions.get(name)):
                return "wan"
        return ""

    def has_audio_out(self, video_kind: str) -> bool:
        """The video network has an audio branch."""
        sign = {"minimax_h3": _H3_AUDIO[0], "ltxav": _LTX_AUDIO}.get(video_kind)
        return sign in self._signs

    @property
    def wan_tensors(self) -> tuple[str, ...]:
        """Full names of the tensors that would mark a Wan network if they had five dimensions."""
        return tuple(self._wan_dimensions)

    @property
    def caption_width(self) -> int:
        """`ne[0]` of the best caption projection, 0 without one."""
        return self._caption_widths[min(self._caption_widths)] if self._caption_widths else 0

    @property
    def embedding_width(self) -> int:
        """`ne[0]` of the token table, under either of its names; 0 without one."""
        return self._table_widths.get(TOKEN_TABLE) or self._table_widths.get(HF_TOKEN_TABLE) or 0

    @property
    def vocab_elements(self) -> int:
        """Elements of the token table, or of the output matrix where there is none."""
        return self._table_elements.get(TOKEN_TABLE, self._table_elements.get(OUTPUT, 0))

    @property
    def expert_share(self) -> float:
        """Share of the expert tensors in all bytes; 0 when a type is unknown, because the total is then."""
        if self.has_unknown_type or self.total_bytes == 0:
            return 0.0
        return self._expert_bytes / self.total_bytes

    def weights(self) -> WeightTable:
        """Bytes per block. Sums that no file can hold mean lying dimensions; such a table says nothing."""
        table = self._tally.table()
        return table if table.total_bytes <= MAX_INTEGER else WeightTable(complete=False)


class DataExtent:
    """Where the tensors of one file lie in its data section: is all of it there, and does nothing overlap?"""

    def __init__(self) -> None:
        self._offsets = array("Q")
        self._sizes = array("Q")
        self._count = 0
        self._end = 0
        self._is_known = True
        self._is_ordered = True

    def add(self, offset: int, size_bytes: int | None) -> None:
        """One tensor, `offset` counted from the start of the data section."""
        self._count += 1
        if size_bytes is None:
            self._is_known = False
            return
        if size_bytes > MAX_INTEGER:
            self._end = max(self._end, offset + size_bytes)
            return
        if offset < self._end:
            self._is_ordered = False
        self._offsets.append(offset)
        self._sizes.append(size_bytes)
        self._end = max(self._end, offset + size_bytes)

    def is_complete(self, data_start: int, file_size: int) -> bool | None:
        """Does the file reach to the end of its last tensor? None when a tensor has no known size (headers.md 6.7)."""
        if not self._is_known:
            return None
        return self._count == 0 or data_start + self._end <= file_size

    def overlaps(self) -> bool:
        """Do two tensors claim the same bytes? No engine loads such a file."""
        if self._is_ordered:
            return False
        end = 0
        for index in sorted(range(len(self._offsets)), key=self._offsets.__getitem__):
            if self._sizes[index] and self._offsets[index] < end:
                return True
            end = max(end, self._offsets[index] + self._sizes[index])
        return False
