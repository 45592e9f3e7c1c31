"""What a header may claim before it is refused (headers.md 3). Every limit is checked before the loop or allocation."""

from __future__ import annotations

MAX_KEYS = 65_536
MAX_TENSORS = 131_072
MAX_NAME_BYTES = 1 << 20
"""Keys and tensor names."""
MAX_STRING_BYTES = 1 << 20
"""A string value that is kept; a longer one reads as absent."""
MAX_ARRAY_ELEMENTS = 1 << 30
MAX_WALKED_ELEMENTS = 1 << 22
"""Elements without a fixed width (strings, inner arrays), which must be walked one by one, in the whole file."""
MAX_NESTING = 4
MAX_KEPT_ELEMENTS = 4_096
"""Elements of one array that is kept."""
MAX_KEPT_TOTAL = 1 << 17
"""Elements of all kept arrays of a file; real files stay below a few thousand."""
MAX_DIMENSIONS = 8
MAX_INTEGER = (1 << 63) - 1
MAX_ALIGNMENT = 1 << 30
DEFAULT_ALIGNMENT = 32
MAX_KEPT_SHAPES = 1 << 14
"""Shapes that a record carries: a whole image checkpoint has 2,600 tensors, the component pool asks for a dozen."""
MAX_SAFETENSORS_HEADER_BYTES = 1 << 26
MAX_REMOTE_HEADER_BYTES = 1 << 26
MAX_CONFIG_JSON_BYTES = 16 << 20

MAX_READ_BYTES = 256 << 20
MAX_READS = 1 << 14
"""Bytes and requests that one header may cost. Only a file built to waste time, one hop per string, comes near."""

MAX_SHORT_TEXT = 64
"""Characters of a name that goes into commands and files (architecture, audio family, decision type)."""
MAX_EXTRA_ENTRIES = 1_024
MAX_EXTRA_KEY_BYTES = 256
MAX_WARNINGS = 32
MAX_SHARDS = 1_024
