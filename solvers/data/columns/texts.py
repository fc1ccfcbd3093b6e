"""The values of a column as Python has them, and as text: those of a category.

Empty text is a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data.columns.grammar import text_of

if TYPE_CHECKING:
    import polars

Frame: TypeAlias = nw.DataFrame[IntoDataFrame]
Series: TypeAlias = nw.Series[IntoSeries]

OTHER, MISSING = -1, -2
"""Places among levels of values that are none of them."""


def values_of(column: Series) -> list[object]:
    """Return the values of a column, None where one is missing."""
    values = column.to_list()
    if not column.null_count():
        return values
    return [None if absent else value for value, absent in zip(values, column.is_null().to_list(), strict=True)]


def numbered(column: Series) -> tuple[Ints, list[str]]:
    """Return the different values of a column as text, in the order of the rows, and the number of each row's.

    The numbers, (n_rows,), are -1 where the value is missing.
    """
    text = polars_text(column)
    if text is not None:
        return numbered_text(text, missing="")
    numbers: dict[str | None, int] = {None: -1}
    codes = [numbers.setdefault(value, len(numbers) - 1) for value in map(text_of, values_of(column))]
    return np.array(codes, dtype=np.int64), [value for value in numbers if value is not None]


def places_among(column: Series, levels: Sequence[str]) -> Ints:
    """Return the place among levels of the value of each row as text, else OTHER or MISSING, (n_rows,).

    A level that is a number or a truth value is found as Python writes it too, 7 as 7.0 and true as True.
    """
    codes, values = numbered(column)
    written = {"true": "True", "false": "False"} | {level: f"{level}.0" for level in levels if level.isdecimal()}
    names = [*(written.get(level, level) for level in levels), *levels]  # of two places the last counts
    places = {text: place % len(levels) for place, text in enumerate(names)}
    return np.array([*(places.get(value, OTHER) for value in values), MISSING])[codes]  # the last is that of -1


def numbered_text(text: polars.Series, missing: str | None = None) -> tuple[Ints, list[str]]:
    """Return what `numbered` does for text of polars; missing is a text that counts as missing besides null."""
    import polars

    values = text.unique(maintain_order=True).drop_nulls()
    if missing is not None:
        values = values.filter(values != missing)
    codes = text.cast(polars.Enum(values), strict=False).to_physical()
    return codes.cast(polars.Int64).fill_null(-1).to_numpy(), values.to_list()


def polars_text(column: Series) -> polars.Series | None:
    """Return a column of text of polars as such, None for any other: that is looked at value by value."""
    if column.dtype != nw.String or not column.implementation.is_polars():
        return None
    import polars

    text = column.to_native()
    assert isinstance(text, polars.Series)
    return text
