from typing import Any

import numpy as np
import pytest

from ranktune.solvers.data.readers.parsing.feature_rows import scatter
from ranktune.solvers.data.readers.parsing.options import Missing
from ranktune.solvers.data.readers.parsing.parse_buffers import Grouped, LineFault, ParseBuffers, ParseResult
from ranktune.solvers.data.readers.parsing.parser import parse


def run(
    text: bytes, *, base: int = 1, single: bool = False, missing: Missing = "keep"
) -> tuple[ParseResult, ParseBuffers]:
    into = ParseBuffers.for_text_of(len(text))
    array = np.frombuffer(bytearray(text), dtype=np.uint8)  # may be written, as the blocks of a file: the same kernel
    result = parse(
        array,
        into,
        base=base,
        max_features=1000,
        single=single,
        missing=missing,
        grouped=Grouped.UNKNOWN,
    )
    return result, into


def test_one_pass_finds_grades_entries_queries_and_comments() -> None:
    text = b"2 qid:7 1:0.5 3:-2\n\n# heading\n0 qid:7 2:1e2 # a b \n1\tqid:q8  3:4 #docid = GX-1 inc = 1\r\n"
    result, into = run(text)
    assert result.fault == LineFault.NONE and result.offset == len(text)
    assert (result.n_rows, result.n_values, result.n_lines, result.width) == (3, 4, 5, 3)
    assert (result.unsorted, result.commented, result.grouped) == (False, True, Grouped.YES)
    assert into.grades[:3].tolist() == [2.0, 0.0, 1.0]
    assert into.values[:4].tolist() == [0.5, -2.0, 100.0, 4.0]
    assert into.columns[:4].tolist() == [0, 2, 1, 2]
    assert into.ends[:3].tolist() == [2, 3, 4]
    comments = [text[first:end] for first, end in into.comments[:3].tolist()]
    assert comments == [b"", b"a b", b"GX-1"]
    runs = [(row, text[first:end], whole, number) for row, first, end, whole, number in into.runs[:2].tolist()]
    assert [run[:3] for run in runs] == [(0, b"7", 1), (2, b"q8", 0)]
    assert runs[0][3] == 7


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("7", 1),
        ("-7", 1),
        ("0", 1),
        ("007", 0),
        ("-0", 0),
        ("+7", 0),
        ("7.0", 0),
        ("7a", 0),
        ("-", 0),
        ("9" * 18, 1),
        ("9" * 19, 0),
    ],
)
def test_only_the_one_spelling_of_a_whole_number_is_a_number(query: str, whole: int) -> None:
    result, into = run(f"0 qid:{query} 1:1\n".encode())
    assert result.n_runs == 1
    assert into.runs[0, 3] == whole
    assert not whole or into.runs[0, 4] == int(query)


def test_hard_numbers_are_listed_for_exact_arithmetic() -> None:
    text = b"1e-320 qid:1 1:16777217.000000000000001 2:0.5 3:1e39\n"
    result, into = run(text, single=True)
    hard = [(value, text[first:end]) for value, first, end in into.hard[: result.n_hard].tolist()]
    assert hard[0] == (-1, b"1e-320")
    assert (2, b"1e39") in hard
    assert all(value != 1 for value, _ in hard)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scatter_puts_entries_in_their_cells(dtype: type) -> None:
    out: Any = np.zeros((3, 4), dtype=dtype)
    scatter(np.array([1.0, 2.0, 3.0]), np.array([0, 3, 2], dtype=np.int32), np.array([2, 2, 3]), out)
    assert out.tolist() == [[1, 0, 0, 2], [0, 0, 0, 0], [0, 0, 3, 0]]


def test_the_densest_text_fits() -> None:
    text = b"0\n" * 5 + b"0 " + b"1:1 2:2 3:3 4:4 5:5\n"
    result, into = run(text)
    assert result.n_rows == 6 <= len(into.grades)
    assert result.n_values == 5 <= len(into.values)
