"""Text that two threads parse is what one thread reads, and its faults are the same."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers import text as text_reader
from ranktune.solvers.data.readers.parsing import parser
from ranktune.solvers.data.readers.parsing.streams import line_blocks


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks of 300 bytes parsed by two threads; the numbers of threads of each file."""
    used: list[int] = []
    parallel = parser._in_parallel

    def noted(*arguments: object) -> object:
        used.append(int(str(arguments[-1])))
        return parallel(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(parser, "_in_parallel", noted)
    monkeypatch.setattr(parser, "processors", lambda: 2)
    monkeypatch.setattr(parser, "MIN_SIZE", 1)
    monkeypatch.setattr(text_reader, "line_blocks", partial(line_blocks, size=300))
    return used


def _lines(seed: int, n: int = 400) -> list[str]:
    generator = np.random.default_rng(seed)
    values = np.round(generator.normal(size=(n, 4)), 4)
    return [
        f"{k % 3} qid:{k // 7} {' '.join(f'{c}:{v}' for c, v in enumerate(row, 1))}{' # d' * (k % 2)}\n"
        for k, row in enumerate(values.tolist())
    ]


@pytest.mark.parametrize("start", ["", "# only a comment\n" * 40])
def test_the_same_queries(start: str, tmp_path: Path, two_threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.txt"
    path.write_text(start + "".join(_lines(0)))
    result = ranktune.read(path)
    assert two_threads == [2]
    monkeypatch.setattr(parser, "processors", lambda: 1)
    alone = ranktune.read(path)
    assert two_threads == [2]
    assert result.fingerprint == alone.fingerprint
    assert result.query_ids.tolist() == alone.query_ids.tolist()
    assert result.document_ids is not None and alone.document_ids is not None
    assert result.document_ids.tolist() == alone.document_ids.tolist()


@pytest.mark.parametrize("at", [0, 57, 250, 399])
def test_the_first_fault_is_named_by_its_line(at: int, tmp_path: Path, two_threads: list[int]) -> None:
    path = tmp_path / "data.txt"
    lines = _lines(1)
    for later in range(at, len(lines), 40):
        lines[later] = "1 qid:1 1:x\n"
    path.write_text("".join(lines))
    with pytest.raises(DataError, match=rf"data\.txt:{at + 1}:11: "):
        ranktune.read(path)


def test_an_error_of_the_file_comes_after_the_blocks_before_it(
    tmp_path: Path, two_threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("".join(_lines(3)[:100]) + "1 qid:1 1:" + "5" * 5000 + "\n")
    monkeypatch.setattr("ranktune.solvers.data.readers.parsing.streams.LONGEST_LINE", 2000)
    with pytest.raises(DataError, match=r"data\.txt:101: a line of more than"):
        ranktune.read(path)
