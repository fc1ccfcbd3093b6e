"""bzip2 files of one and of several streams: what was packed comes back whole, or an error does."""

import bz2
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks
from ranktune.solvers.data.readers.text import read_text

LINES = [f"{k % 3} qid:{k // 4} 1:{k}.5\n".encode() for k in range(40)]
WHOLE = b"".join(LINES)
STREAMS = [bz2.compress(b"".join(LINES[:20])), bz2.compress(b"".join(LINES[20:]))]


def unpacked(path: Path, size: int = 1 << 20) -> bytes:
    return b"".join(block.tobytes() for block in line_blocks(Position(path), size=size))


@pytest.mark.parametrize("size", [16, 100, 1 << 20])
def test_all_streams_are_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "data.bz2"
    for parts in ([bz2.compress(WHOLE)], STREAMS, [STREAMS[0], bz2.compress(b""), STREAMS[1]], STREAMS * 9):
        path.write_bytes(b"".join(parts))
        assert unpacked(path, size) == b"".join(bz2.decompress(part) for part in parts)


def test_every_wrong_byte_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.bz2"
    packed = b"".join(STREAMS)
    generator = np.random.default_rng(3)
    refused = 0
    for at in range(3, len(packed)):  # of a changed signature the rest is read as text
        wrong = bytearray(packed)
        wrong[at] ^= 1 << int(generator.integers(8))
        path.write_bytes(wrong)
        try:
            assert unpacked(path) == WHOLE
        except DataError:
            refused += 1
    assert refused > 0.9 * len(packed)


@pytest.mark.parametrize("after", [b"garbage", b"\0", b"BZh9", STREAMS[1][:-1], STREAMS[1][:5]])
def test_what_follows_the_last_stream_is_an_error(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "data.bz2"
    path.write_bytes(STREAMS[0] + after)
    with pytest.raises(DataError, match="Is it damaged or cut off"):
        unpacked(path)


def test_a_cut_is_an_error_except_between_streams(tmp_path: Path) -> None:
    path = tmp_path / "data.bz2"
    for end in range(4, len(STREAMS[0]) + len(STREAMS[1])):
        path.write_bytes(b"".join(STREAMS)[:end])
        if end == len(STREAMS[0]):
            assert read_text(path).n_documents == 20
        else:
            with pytest.raises(DataError):
                unpacked(path)
