"""A text file as blocks of complete lines, plain or compressed, in bounded memory.

Whether a file is compressed is read from its first bytes, not from its name. A bzip2 file may have any number of
streams, as pbzip2 writes them. The standard library's BZ2File takes whatever is wrong after the first stream for the
end of the file: here it is an error.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.decimals import Bytes

BLOCK = 1 << 20  # it and the arrays parsed from it fit the processor's cache
LONGEST_LINE = 64 << 20
MAX_EXPANSION = 200
FREE_EXPANSION = 64 << 20  # any compressed file may unpack to this size

PACKED = (b"\x1f\x8b", b"BZh")
"""The first bytes of compressed files."""
_FOREIGN = {
    b"PK\x03\x04": "a zip archive. Unpack it first (an .npz file must be named so)",
    b"PAR1": "a Parquet file. Name it .parquet",
    b"\x93NUMPY": "a single NumPy array. Save X, y and qid together as .npz",
    b"\x89HDF": "an HDF5 file. Save X, y and qid as .npz",
    b"\xfd7zXZ": "compressed by xz. Unpack it, or compress it by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd. Unpack it, or compress it by gzip",
    b"\xff\xfe": "UTF-16 text. Save it as UTF-8",
    b"\xfe\xff": "UTF-16 text. Save it as UTF-8",
}


def check_path(source: object) -> None:
    """Raise DataError for a path that cannot be looked up, such as one that is too long; not for a missing one."""
    if not isinstance(source, str | Path):
        return
    try:
        os.stat(source)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        shown = str(source) if len(str(source)) <= 80 else f"{str(source)[:77]}..."
        raise DataError(f"{shown}: is no path that can be read ({getattr(error, 'strerror', error)}).") from None


@dataclass
class Position:
    """A position in a file: the number of lines before the current block, and the file's unpacked size if known.

    share is the part of the file, packed or not, that was read.
    """

    path: Path
    lines: int = 0
    size: int = 0
    share: float = 0.0


def line_blocks(position: Position, *, size: int = BLOCK) -> Iterator[Bytes]:
    """Yield the bytes of the file in blocks of complete lines, the last one ended by a newline if it was not.

    A block is valid until the next one is taken. The caller counts the lines of the blocks in `position`.

    Raises DataError where the file cannot be read, is damaged or of another kind, where a line is longer than
    LONGEST_LINE bytes, and where a compressed file grows to more than MAX_EXPANSION times its size.
    """
    with _opened(position.path) as (raw, stream, packed):
        limit = packed * MAX_EXPANSION
        position.size = 0 if packed else position.path.stat().st_size
        buffer, filled, total, first = bytearray(size + 1), 0, 0, True
        while True:
            got = _filled(stream, memoryview(buffer)[filled:-1])
            total += got
            position.share = raw.tell() / max(packed or position.size, 1)
            if FREE_EXPANSION < total > limit > 0:
                raise DataError(
                    f"{position.path}: unpacks to more than {MAX_EXPANSION} times its size ({total >> 20} MB and "
                    "more): that looks like a decompression bomb. If it is not, unpack it."
                )
            end = buffer.rfind(b"\n", filled, filled + got) + 1
            filled += got
            if not got and filled:
                buffer[filled] = 10
                end = filled = filled + 1
            if end:
                skip = _skipped(position.path, buffer) if first else 0
                first = False
                yield np.frombuffer(buffer, dtype=np.uint8)[skip:end]
                buffer[: filled - end] = buffer[end:filled]
                filled -= end
            if not got:
                return
            if filled == len(buffer) - 1:
                buffer = _larger(position, buffer)


def lines_of(position: Position) -> Iterator[str]:
    """Yield the lines of a text file without their ends, counted in position. Raises what line_blocks raises."""
    for block in line_blocks(position):
        for line in block.tobytes().splitlines():
            position.lines += 1
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{position.path}:{position.lines}: is not UTF-8 ({error.reason}). Save it as UTF-8."
                ) from None


def words_of(position: Position) -> Iterator[list[str]]:
    """Yield the words of the lines that have some, as `lines_of` yields lines."""
    return filter(None, map(str.split, lines_of(position)))


def _filled(stream: io.BufferedIOBase | io.RawIOBase, view: memoryview) -> int:
    """Read until view is full or the stream ends; return the number of bytes."""
    got = 0
    while got < len(view):
        more = stream.readinto(view[got:])
        if not more:
            break
        got += more
    return got


def _larger(position: Position, buffer: bytearray) -> bytearray:
    if len(buffer) > LONGEST_LINE:
        raise DataError(
            f"{position.path}:{position.lines + 1}: a line of more than {LONGEST_LINE >> 20} MB. "
            "Every document needs a separate line: are the line ends missing?"
        )
    return buffer[:-1] + bytes(len(buffer))


def _skipped(path: Path, buffer: bytearray) -> int:
    """Return the length of the byte order mark. Raises DataError for a format other than text."""
    for magic, what in _FOREIGN.items():
        if buffer.startswith(magic):
            raise DataError(f"{path}: is no ranking text but {what}.")
    return 3 if buffer.startswith(b"\xef\xbb\xbf") else 0


@contextmanager
def _opened(path: Path) -> Iterator[tuple[io.FileIO, io.BufferedIOBase | io.RawIOBase, int]]:
    """Open path; give the file, the stream of its unpacked bytes and, where it is compressed, its size (else 0)."""
    try:
        with open(path, "rb", buffering=0) as raw:
            magic = raw.read(3)
            raw.seek(0)
            packed = magic.startswith(PACKED)
            stream = Bzip2Stream(raw) if magic == b"BZh" else gzip.GzipFile(fileobj=raw) if packed else raw
            yield raw, stream, path.stat().st_size if packed else 0
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file. A LETOR folder holds Fold1 to Fold5.") from None
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Is it damaged or cut off? Fetch it again.") from error


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
