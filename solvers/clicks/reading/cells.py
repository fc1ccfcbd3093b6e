"""Columns of text, as Arrow holds them, to texts, numbers and categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.clicks.reading.store import NO_TIME, NONE, Names, coded
from ranktune.solvers.core.arrays import Array, Floats, Ints, Mask, as_floats
from ranktune.solvers.data.columns.arrow import cast_or_none
from ranktune.solvers.data.columns.dates import microseconds_of
from ranktune.solvers.data.columns.grammar import bits_of, number_of

MOST_TEXTS = 10_000
"""Different values beyond which a further column of text is none of categories."""
TRUTH: Mapping[str, float] = {"true": 1.0, "false": 0.0}
_NO_WORDS: Mapping[str, float] = MappingProxyType({})


def text_of(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> pa.StringArray:
    """Return the text of columns, (n,), of several the first that a row has; null for lists and objects."""
    columns = [batch.column(name) for name in names]
    columns = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
    texts = [column.cast(pa.string()) for column in columns if not pa.types.is_nested(column.type)]
    return pc.coalesce(*texts, pa.nulls(batch.num_rows, pa.string()))


def numbers_of(column: pa.StringArray, words: Mapping[str, float] = _NO_WORDS) -> Floats:
    """Return the numbers in a column of text, (n,), NaN where it is null or holds other text, but for these words."""
    whole = cast_or_none(column, pa.float64())
    if whole is None:
        place, texts = coded(column)
        each = (words.get(text.lower(), number_of(text.strip() or "-")) for text in texts)
        numbers = np.array([*(math.nan if number is None else number for number in each), math.nan])[place]
    else:
        numbers = whole.to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), as_floats(numbers), math.nan)


def milliseconds(column: pa.StringArray) -> Ints:
    """Return the times in a column of text since 1970, (n,), NO_TIME where one is missing or is no time."""
    times = microseconds_of(pa.chunked_array([column]), count=True) // 1000.0
    return np.where(np.isnan(times), NO_TIME, np.nan_to_num(times).astype(np.int64))


def lists_of(column: pa.Array) -> pa.ListArray:
    """Return the lists of text in a column, (n,), null where it holds something else."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return column.cast(pa.list_(pa.string()))
    return pa.nulls(len(column), pa.list_(pa.string()))


def hashed(column: pa.StringArray) -> Array:
    """Return 64 bits for each text, (n,), 0 where it is null."""
    place, texts = coded(column)
    return np.array([*map(bits_of, texts), 0], dtype=np.uint64)[place]


def is_null(column: pa.Array) -> Mask:
    """Return which values are null, (n,)."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def codes(column: pa.StringArray, names: Names) -> Floats:
    """Return the numbers of the values of a column of text as floats, (n,), NaN where it is null.

    There are none once the column has more different values than a category can have.
    """
    if len(names.names) > MOST_TEXTS:
        return np.full(len(column), math.nan)
    numbers = names.numbered(column)
    return np.where(numbers == NONE, math.nan, numbers)


def numbers_and_texts(batch: pa.RecordBatch | pa.Table) -> tuple[list[str], list[str]]:
    """Return the columns that hold numbers and, besides empty cells, nothing else; and those that hold other text."""
    numbers, texts = list[str](), list[str]()
    for name in batch.schema.names:
        column = text_of(batch, [name])
        if column.null_count < len(column):
            plain = np.isfinite(numbers_of(column)).sum() == len(column) - column.null_count
            (numbers if plain else texts).append(name)
    return numbers, texts
