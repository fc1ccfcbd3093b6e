"""Small texts of the commonest form are read to the bit as the kernels read them; of others nothing is read."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.data.readers.parsing.parse_buffers import Grouped, ParseBuffers, ParseResult
from ranktune.solvers.data.readers.parsing.parser import parse
from ranktune.solvers.data.readers.text import parse_common, read_text

COMMENTS = ("", " ", "\r", " # a b \r", "#docid = GX-1 inc = 1", " # docid=7", "#", " ## x", "# docid =")
OTHERS = (
    "", "# heading\n", "1.5 qid:1 1:1\n", "1 1:1\n", "1 qid:a 1:1\n", "1 qid:007 1:1\n", "1 qid:1 2:1 1:1\n",
    "1 qid:1 1:1 1:2\n", "1 qid:1 1:1e3\n", "1 qid:1 1:NULL\n", "1 qid:1 1:12345678\n", "1 qid:1 0:1\n",
    "1 qid:1 1001:1\n", "1 qid:1 1:1048576.0625\n", "1 qid:1 1:1 # \0\n", "1 qid:1 1:1\n\n1 qid:1 1:1\n",
    "-1 qid:1 1:1\n", "1 qid:1\n", "x1 qid:1 1:1\n",
)  # fmt: skip
"""Texts of other forms, and with faults."""


def _number(generator: np.random.Generator) -> str:
    whole, part = (int(generator.integers(0, 10 ** generator.integers(1, 8))) for _ in range(2))
    return f"{generator.choice(['', '-'])}{whole}" + (f".{part}" if generator.random() < 0.7 else "")


def _text(generator: np.random.Generator) -> str:
    lines = []
    for _ in range(int(generator.integers(1, 30))):
        columns = np.sort(generator.choice(np.arange(1, 100), int(generator.integers(1, 9)), replace=False))
        entries = " ".join(f"{column}:{_number(generator)}" for column in columns)
        lines.append(f"{generator.integers(5)} qid:{generator.integers(4)} {entries}{generator.choice(COMMENTS)}\n")
    return "".join(lines)


def _seen(text: bytes, result: ParseResult, into: ParseBuffers) -> tuple[object, ...]:
    """What the rows, values, queries and comments of a result are, whatever their offsets."""
    rows, values = slice(result.n_rows), slice(result.n_values)
    comments = [text[first:end] for first, end in into.comments[rows].tolist()]
    runs = [(row, text[first:end], *more) for row, first, end, *more in into.runs[: result.n_runs].tolist()]
    arrays = into.values[values], into.columns[values], into.ends[rows], into.grades[rows], into.lines[rows]
    return result, comments, runs, *(array.tobytes() for array in arrays)


def both(text: str, *, single: bool) -> tuple[object, object]:
    """What is read without kernels, None where nothing is, and what the kernels read."""
    content = np.frombuffer(bytearray(text.encode()), dtype=np.uint8)
    one, two = ParseBuffers.for_text_of(len(content)), ParseBuffers.for_text_of(len(content))
    common = parse_common(content, one, 1, 1000, single)
    expected = parse(content, two, base=1, max_features=1000, single=single, missing="keep", grouped=Grouped.UNKNOWN)
    return common and _seen(text.encode(), common, one), _seen(text.encode(), expected, two)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_kernels_read_the_same(seed: int, single: bool) -> None:
    common, expected = both(_text(np.random.default_rng(seed)), single=single)
    assert common == expected or (single and common is None)  # a number may lie midway between two floats


@pytest.mark.parametrize("text", OTHERS)
def test_other_forms_are_left_to_the_kernels(text: str) -> None:
    content = np.frombuffer(bytearray(text.encode()), dtype=np.uint8)
    assert parse_common(content, ParseBuffers.for_text_of(len(content)), 1, 1000, True) is None


def test_loaded_kernels_read_no_small_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.solvers.data.readers.text.parse", None)
    monkeypatch.setattr("ranktune.solvers.data.readers.parsing.feature_rows.scatter", None)
    (tmp_path / "small.txt").write_text("1 qid:1 1:0.5 2:3\n0 qid:1 2:-1.25\n")
    assert np.asarray(read_text(tmp_path / "small.txt").features).tolist() == [[0.5, 3.0], [0.0, -1.25]]
