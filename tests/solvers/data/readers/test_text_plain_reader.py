"""Reading text: damaged lines, any bytes and any doubles, as an independent plain reader has them."""

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
