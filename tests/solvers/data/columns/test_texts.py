"""Text is taken as categories and dates alike where polars does it and where Python looks at each value."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.dates import dates, dates_or_none
from ranktune.solvers.data.columns.texts import Series, numbered


def both(values: list[str | None]) -> tuple[Series, Series]:
    """Return a column of polars and one of Python's objects."""
    objects = pd.Series(values, name="column", dtype=object)
    return (
        nw.from_native(pl.Series("column", values, dtype=pl.String), series_only=True),
        nw.from_native(objects, series_only=True),
    )


def outcome(column: Series) -> list[float] | str:
    try:
        return list(np.nan_to_num(dates(column), nan=-1.0))
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("unit", ["D", "m", "s", "ms", "us"])
@pytest.mark.parametrize(("sign", "end"), [("T", ""), (" ", ""), ("T", "Z")])
def test_dates_of_the_usual_forms(unit: str, sign: str, end: str) -> None:
    times = np.random.default_rng(0).integers(-60 * 10**15, 250 * 10**15, 200).astype("datetime64[us]")
    times = times.astype(f"datetime64[{unit}]")
    end = "" if unit == "D" else end
    texts = [str(time).replace("T", sign) + end for time in times]
    for column in both([None, "", *texts]):
        found = dates_or_none(column)
        assert found is not None and np.isnan(found[:2]).all()
        assert found[2:].tolist() == times.astype("datetime64[us]").astype(float).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01", "9999-12-31T23:59:59.999999", "2024-02-29", "31.01.2026", "1.2.2026 03:04", "2026-01-31T12",
        "2026-01-31T12:00+01:00", "2026-01-31 12:00:00.5", "2026-01-31T12:00:00.1234567", "20260131", "2026-01-31Z",
        "2026-01-31T", "2026-01-31\n", "2026-02-30", "2026-01-31T24:00", "2026-01-31T23:59:60", "0000-01-01",
        "2026- 1-31", "+026-01-31", "2026-01-31T12:00:00.", "2026-01-31x12:00", "٢٠٢٦-01-31", "soon", " ",
    ],
)  # fmt: skip
def test_text_of_any_other_form(text: str) -> None:
    fast, slow = both(["2026-01-31", None, text, "2025-12-31T01:02:03"])
    assert outcome(fast) == outcome(slow)


def test_the_different_values_are_numbered_in_their_order() -> None:
    drawn = np.random.default_rng(1).choice(["b", "", "a ", "a", "ä", "nan", "\0"], 300).tolist()
    fast, slow = map(numbered, both([None, *drawn]))
    assert fast[0].tolist() == slow[0].tolist() and fast[1] == slow[1] == list(dict.fromkeys(filter(None, drawn)))
    assert [fast[1][code] if code >= 0 else "" for code in fast[0]] == ["", *drawn]
