import bz2
import gzip
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing import streams
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks


def whole(path: Path, size: int = 16) -> list[bytes]:
    return [block.tobytes() for block in line_blocks(Position(path), size=size)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("size", [1, 7, 16, 1000])
def test_blocks_are_the_file_in_complete_lines(tmp_path: Path, pack: type, size: int) -> None:
    text = b"first\n\nthird is longer than the block\nlast"
    file = tmp_path / "f"
    file.write_bytes(pack(text))
    blocks = whole(file, size)
    assert b"".join(blocks) == text + b"\n"
    assert all(block.endswith(b"\n") for block in blocks)


def test_an_empty_file_has_no_blocks(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"")
    assert whole(file) == []


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\xef\xbb\xbf1 qid:1\n2\n")
    assert b"".join(whole(file)) == b"1 qid:1\n2\n"


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"PK\x03\x04...", "zip"), (b"PAR1..", "Parquet"), (b"\x93NUMPY...", "npz"), (b"\xff\xfe1\0", "UTF-16")],
)
def test_other_kinds_of_files_are_named(tmp_path: Path, content: bytes, word: str) -> None:
    file = tmp_path / "f"
    file.write_bytes(content)
    with pytest.raises(DataError, match=word):
        whole(file)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_damaged_archive_is_an_error(tmp_path: Path, pack: type) -> None:
    packed = pack(b"0 qid:1 1:1\n" * 1000)
    for cut in (4, len(packed) // 2, len(packed) - 3):
        file = tmp_path / f"f{cut}"
        file.write_bytes(packed[:cut])
        with pytest.raises(DataError, match="cannot be read"):
            whole(file)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_decompression_bomb_is_stopped_early(tmp_path: Path, pack: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FREE_EXPANSION", 1 << 16)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 50)
    file = tmp_path / "f"
    file.write_bytes(pack(b"0 qid:1 1:1\n" * 500_000))
    seen = 0
    with pytest.raises(DataError, match="decompression bomb"):
        for block in line_blocks(Position(file), size=1 << 12):
            seen += len(block)
    assert seen <= max(50 * file.stat().st_size, 1 << 16)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 1e6)
    assert sum(map(len, whole(file, 1 << 16))) == 6_000_000


def test_a_line_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_LINE", 1000)
    file = tmp_path / "f"
    file.write_bytes(b"short\n" + b"x" * 5000)
    position = Position(file)
    with pytest.raises(DataError, match=r"f:2: a line of more than"):
        for _ in line_blocks(position, size=100):
            position.lines += 1


def test_missing_files_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        whole(tmp_path / "none")
    with pytest.raises(DataError, match="folder"):
        whole(tmp_path)
