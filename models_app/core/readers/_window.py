"""A moving window over a byte source, with the reads that a GGUF walk needs.

Positions in errors are absolute. Running out of bytes is `truncated` with the offset that must be readable to go on;
a length that could not fit in the whole file is malformed, because more bytes cannot help (headers.md 14, 15).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from itertools import repeat
from typing import BinaryIO, NoReturn

from models_app.core.errors import MalformedHeader, TruncatedHeader
from models_app.core.readers.limits import MAX_READ_BYTES, MAX_READS

_SMALLEST_READ = 1 << 15
_LARGEST_READ = 1 << 20
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_INNER_ARRAY = struct.Struct("<IQ")


class Window:
    """Cursor over `stream`, whose bytes may be only the beginning of a file of `full_size` bytes."""

    __slots__ = ("_base", "_buffer", "_bytes_read", "_next_read", "_pos", "_reads", "_stream", "available", "full_size")

    def __init__(self, stream: BinaryIO, full_size: int) -> None:
        self._stream = stream
        self.full_size = full_size
        self.available = stream.seek(0, os.SEEK_END)
        self._buffer = b""
        self._base = 0
        self._pos = 0
        self._next_read = _SMALLEST_READ
        self._reads = 0
        self._bytes_read = 0

    @property
    def offset(self) -> int:
        """Absolute position of the next byte."""
        return self._base + self._pos

    def u32(self) -> int:
        pos = self._pos
        if pos + 4 > len(self._buffer):
            self._require(4)
            pos = self._pos
        self._pos = pos + 4
        value: int = _U32.unpack_from(self._buffer, pos)[0]
        return value

    def u64(self) -> int:
        pos = self._pos
        if pos + 8 > len(self._buffer):
            self._require(8)
            pos = self._pos
        self._pos = pos + 8
        value: int = _U64.unpack_from(self._buffer, pos)[0]
        return value

    def u64s(self, layout: struct.Struct) -> tuple[int, ...]:
        """A run of u64 fields. When it is cut, the need is the end of the first field that is not there whole."""
        start = self.offset
        if start + layout.size > self.available:
            self.run_out(start + 8 * (max(self.available - start, 0) // 8 + 1))
        if self._pos + layout.size > len(self._buffer):
            self._require(layout.size)
        pos = self._pos
        self._pos = pos + layout.size
        return layout.unpack_from(self._buffer, pos)

    def take(self, count: int) -> bytes:
        """The next `count` bytes; the caller has bounded them."""
        if self._pos + count > len(self._buffer):
            self._require(count)
        pos = self._pos
        self._pos = pos + count
        return self._buffer[pos : pos + count]

    def view(self, count: int) -> tuple[bytes, int] | None:
        """The buffer and the position in it, with `count` bytes from there on; None near the end of the source."""
        if self._pos + count > len(self._buffer):
            if self._base + self._pos + count > self.available:
                return None
            self._require(count)
        return self._buffer, self._pos

    def skip(self, count: int) -> None:
        """Step over bytes without reading them; they must be there."""
        if self.offset + count > self.available:
            self.run_out(self.offset + count)
        self._pos += count

    def string_length(self) -> int:
        """The length in front of a string, refused when the whole file could not hold it."""
        start = self.offset
        length = self.u64()
        if length > self.full_size:
            raise MalformedHeader("string_length", f"a string of {length:,} bytes in a smaller file", offset=start)
        return length

    def skip_strings(self, count: int) -> None:
        """Step over `count` strings. The hot loop of a header with a tokenizer: one unpack and one addition each."""
        if count == 0:
            return
        unpack = _U64.unpack_from
        left = repeat(None, count)
        mark = self.offset
        buffer, pos = self._buffer, self._pos
        while True:
            try:
                for _ in left:
                    pos += 8 + unpack(buffer, pos)[0]
            except (struct.error, OverflowError):
                # the window ended, or a length led out of it; the string that was due has not been stepped over
                self._pos = pos
                if self.offset + 8 > self.available:
                    self._blame_strings(mark)
                mark = self.offset
                self._require(8)
                buffer = self._buffer
                pos = self._pos + 8 + unpack(buffer, self._pos)[0]
            else:
                break
        self._pos = pos
        if self.offset > self.available:
            self._blame_strings(mark)

    def skip_arrays(self, count: int, widths: Mapping[int, int]) -> int:
        """Step over inner arrays of fixed-width elements, up to the first that is of another kind or not in the window;
        that one the caller must look at closely. Returns how many."""
        unpack = _INNER_ARRAY.unpack_from
        buffer, pos, end = self._buffer, self._pos, len(self._buffer)
        done = 0
        try:
            while done < count:
                type_id, length = unpack(buffer, pos)
                behind = pos + 12 + length * widths[type_id]
                if behind > end:
                    break
                pos = behind
                done += 1
        except (struct.error, KeyError):
            pass
        self._pos = pos
        return done

    def run_out(self, need: int) -> NoReturn:
        """Say that the bytes end before `need`."""
        raise TruncatedHeader(
            f"the header goes on to byte {need:,}, but only {self.available:,} bytes are there",
            offset=self.offset,
            need=need,
            retryable=need <= self.full_size,
        )

    def _blame_strings(self, mark: int) -> NoReturn:
        """Walk strings again from `mark`, slowly, up to the one that led too far."""
        self._pos = mark - self._base
        while True:
            self.skip(self.string_length())

    def _require(self, count: int) -> None:
        """Have `count` bytes in the buffer from the current position on."""
        start = self.offset
        if start + count > self.available:
            self.run_out(start + count)
        is_straight_on = self._pos <= len(self._buffer)
        self._next_read = min(2 * self._next_read, _LARGEST_READ) if is_straight_on else _SMALLEST_READ
        self._read(start, max(count, self._next_read))
        if len(self._buffer) < count:  # the file became shorter while it was read
            self.available = start + len(self._buffer)
            self.run_out(start + count)

    def _read(self, start: int, count: int) -> None:
        self._reads += 1
        self._bytes_read += count
        if self._reads > MAX_READS or self._bytes_read > MAX_READ_BYTES:
            raise MalformedHeader("string_length", "the header is scattered over too much of the file", offset=start)
        self._stream.seek(start)
        self._buffer, self._base, self._pos = b"", start, 0
        parts: list[bytes] = []
        while count > 0 and (part := self._stream.read(count)):
            parts.append(part)
            count -= len(part)
        self._buffer = parts[0] if len(parts) == 1 else b"".join(parts)
