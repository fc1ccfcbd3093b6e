"""The unpacked bytes of a bzip2 file of any number of streams, as pbzip2 writes them.

The standard library's BZ2File takes whatever is wrong after the first stream for the end of the file: here it is an
error.
"""

from __future__ import annotations

import bz2
import io
from typing import Any

_PACKED = 1 << 16  # bytes that are read at once


class Bzip2Stream(io.RawIOBase):
    """Reads the unpacked bytes of source. Raises OSError where it is damaged, and EOFError where it is cut off."""

    def __init__(self, source: io.RawIOBase) -> None:
        self._source = source
        self._decompressor = bz2.BZ2Decompressor()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill buffer from its beginning; return the number of bytes, 0 at the end of the last stream."""
        while len(buffer):
            packed = b""
            if self._decompressor.eof:
                packed = self._decompressor.unused_data or self._source.read(_PACKED) or b""
                if not packed:
                    return 0
                self._decompressor = bz2.BZ2Decompressor()
            elif self._decompressor.needs_input:
                packed = self._source.read(_PACKED) or b""
                if not packed:
                    raise EOFError("the last bzip2 stream is cut off")
            data = self._decompressor.decompress(packed, max_length=len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0
