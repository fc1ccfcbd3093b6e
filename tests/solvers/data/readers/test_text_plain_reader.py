"""Reading text: damaged lines, any bytes and any doubles, as an independent plain reader has them."""

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.arrays import stored_arrays
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.grammar import is_largest
from ranktune.solvers.data.readers.text import read_text

# An independent reader: split and regular expressions, one line after the other.
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class RefusedError(Exception):
    pass


def number(token: bytes) -> float:
    if not NUMBER.fullmatch(token):
        raise RefusedError
    value = float(token)
    if math.isinf(value):
        raise RefusedError
    return value


def plain_line(line: bytes) -> tuple[float, bytes | None, dict[int, float]] | None:
    body, _, comment = line.partition(b"#")
    tokens = re.split(rb"[ \t\r]+", body.strip(b" \t\r"))
    if b"\0" in comment and b"#" in line and tokens == [b""]:
        raise RefusedError
    if tokens == [b""]:
        return None
    grade, query, entries = number(tokens[0]), None, {}
    if grade < 0 or b"\0" in comment:
        raise RefusedError
    rest = tokens[1:]
    if rest and rest[0].startswith(b"qid:"):
        query = rest.pop(0)[4:]
        if not query or min(query) < 32:
            raise RefusedError
    for token in rest:
        index, colon, value = token.partition(b":")
        if (
            not re.fullmatch(rb"[0-9]+", index)
            or not colon
            or not 1 <= int(index) <= 1_000_000
            or int(index) in entries
        ):
            raise RefusedError
        entries[int(index)] = number(value)
    return grade, query, entries


def plainly(content: bytes) -> list[tuple[float, bytes | None, dict[int, float]]] | int:
    """The rows of content, or the number of the first bad line."""
    rows: list[tuple[float, bytes | None, dict[int, float]]] = []
    for at, line in enumerate(content.split(b"\n"), start=1):
        try:
            row = plain_line(line)
        except RefusedError:
            return at
        if row is not None:
            if rows and (row[1] is None) != (rows[0][1] is None):
                return at
            rows.append(row)
    return rows


TOKENS = [b"qid:", b"1:", b"2:0.5", b"nan", b"NULL", b"1e999", b"-", b"+", b".", b"e", b"#", b"\n", b"\r", b"\t", b" ",
          b"\0", b":", b"0", b"1_0", b"0x1", b"999999999999", b"\xef\xbb\xbf", b"\xff", b"qid:a", b"1 :",
          b"1e-330", b"12345678901234567890"]  # fmt: skip
LINES = [b"2 qid:10 1:0.5 3:-2 #docid = GX-1 inc = 1", b"0 qid:10 2:1e2 4:0.333333333333333333", b"1 qid:x 1:1 2:2 # c"]


def mutated(generator: np.random.Generator) -> bytes:
    content = b"\n".join(LINES[k] for k in generator.integers(0, len(LINES), generator.integers(1, 4)))
    for _ in range(generator.integers(1, 4)):
        at = int(generator.integers(0, len(content) + 1))
        cut = int(generator.integers(0, 4)) if generator.random() < 0.5 else 0
        token = TOKENS[int(generator.integers(0, len(TOKENS)))] if generator.random() < 0.7 else b""
        content = content[:at] + token + content[at + cut :]
        if generator.random() < 0.1:
            content = content[: int(generator.integers(0, len(content) + 1))]
    return content


def check_against_plain_reader(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    expected = plainly(content.removeprefix(b"\xef\xbb\xbf"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            queries = read_text(file, dtype=np.float64, layout="sparse")
    except DataError as error:
        if isinstance(expected, int):
            assert re.match(rf"{re.escape(str(file))}:{expected}:\d+: ", str(error)), (content, expected, str(error))
        elif expected and "no line has a feature" in str(error):
            assert not any(entries for _, _, entries in expected), content
        elif expected:
            assert expected[0][1] is None and "no line has a qid:" in str(error), (content, str(error))
        else:
            assert "no documents" in str(error), (content, str(error))
        return
    assert not isinstance(expected, int), content
    rows = np.arange(len(expected)) if queries.rows is None else queries.rows
    values, indices, indptr = stored_arrays(queries.features)
    ids = np.repeat(queries.query_ids, queries.lengths)
    for at, row in enumerate(rows.tolist()):
        grade, query, entries = expected[row]
        assert queries.grades[at] == grade, content
        assert query is not None and str(ids[at]) == query.decode("utf-8", "backslashreplace"), content
        cells = slice(indptr[at], indptr[at + 1])
        held = dict(zip((indices[cells] + 1).tolist(), values[cells].tolist(), strict=True))
        assert held == {index: value for index, value in entries.items() if value}, content


def test_mutated_lines_are_read_or_refused_as_a_plain_reader_does(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        check_against_plain_reader(tmp_path / "f", mutated(generator))


@pytest.mark.slow
def test_a_hundred_thousand_mutated_lines(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for _ in range(50_000):  # two lines each on average
        check_against_plain_reader(tmp_path / "f", mutated(generator))


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            assert read_text(file).n_documents >= 1
    except DataError as error:
        assert str(file) in str(error)


@settings(max_examples=30)
@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: not is_largest(value)),
        min_size=1,
        max_size=50,
    )
)
def test_written_doubles_come_back(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    file = tmp_path_factory.getbasetemp() / "doubles"
    file.write_text("".join(f"{abs(value)!r} qid:1 1:{value!r}\n" for value in values))
    queries = read_text(file, dtype=np.float64, layout="dense")
    assert queries.features.ravel().tolist() == values
    assert queries.grades.tolist() == [abs(value) for value in values]
