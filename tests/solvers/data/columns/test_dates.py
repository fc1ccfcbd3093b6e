"""Text is taken as dates and categories alike where Arrow does it and where each value is taken apart."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.arrow import TableColumn, numbered
from ranktune.solvers.data.columns.dates import dates, dates_or_none, microseconds_of


def column(values: list[str | None]) -> TableColumn:
    return TableColumn("column", pa.chunked_array([pa.array(values, pa.string())]), pa.field("column", pa.string()))


@pytest.mark.parametrize("unit", ["D", "m", "s", "ms", "us"])
@pytest.mark.parametrize(("sign", "end"), [("T", ""), (" ", ""), ("T", "Z"), (" ", "+00:00")])
@pytest.mark.parametrize("other", [[], ["31.01.2026"]], ids=["alike", "mixed"])
def test_dates_of_the_usual_forms(unit: str, sign: str, end: str, other: list[str]) -> None:
    times = np.random.default_rng(0).integers(-60 * 10**15, 250 * 10**15, 200).astype("datetime64[us]")
    times = times.astype(f"datetime64[{unit}]")
    texts = [str(time).replace("T", sign) + ("" if unit == "D" else end) for time in times]
    found = dates_or_none(column([None, "", *texts, *other]))
    assert found is not None and np.isnan(found[:2]).all()
    assert found[2:202].tolist() == times.astype("datetime64[us]").astype(float).tolist()


ACCEPTED = {
    "0001-01-01": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    "2024-02-29": datetime(2024, 2, 29, tzinfo=UTC),
    "31.01.2026": datetime(2026, 1, 31, tzinfo=UTC),
    "1.2.2026 03:04": datetime(2026, 2, 1, 3, 4, tzinfo=UTC),
    "2026-01-31T12": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "2026-01-31T12:00+01:00": datetime(2026, 1, 31, 11, tzinfo=UTC),
    "2026-01-31 12:00:00.5-0130": datetime(2026, 1, 31, 13, 30, 0, 500_000, tzinfo=UTC),
    "2026-01-31T12:00:00.1234567": datetime(2026, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC),
}
REFUSED = [
    "20260131", "2026-01-31Z", "2026-01-31T", "2026-02-30", "2026-01-31T24:00", "2026-01-31T23:59:60", "0000-01-01",
    "2026- 1-31", "+026-01-31", "2026-01-31T12:00:00.", "2026-01-31x12:00", "٢٠٢٦-01-31", "soon", "01/31/2026",
]  # fmt: skip


@pytest.mark.parametrize("others", [["2026-01-31", None], ["31.1.2026", ""]], ids=["iso", "dots"])
def test_a_text_is_a_date_whatever_the_others_are(others: list[str | None]) -> None:
    for text, time in ACCEPTED.items():
        assert dates(column([*others, text]))[-1] == time.timestamp() * 1e6, text
    for text in REFUSED:
        assert dates_or_none(column([*others, text])) is None
        with pytest.raises(DataError, match=r"here it holds .* in row 2"):
            dates(column([*others, text]))


@pytest.mark.parametrize(("unit", "size"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_the_size_of_a_number_tells_its_unit(unit: str, size: int) -> None:
    moments = [datetime(year, 5, 6, tzinfo=UTC).timestamp() for year in (1974, 2026, 2200)]
    counts = [int(moment) * size for moment in moments]
    for given in (pa.array(counts), pa.array(map(str, counts)), pa.array([*map(str, counts), "31.01.2026"])):
        found = microseconds_of(pa.chunked_array([given]), count=True)
        assert found[:3].tolist() == [moment * 1e6 for moment in moments]


def test_the_different_values_are_numbered_in_their_order() -> None:
    drawn = np.random.default_rng(1).choice(["b", "", "a ", "a", "ä", "nan", "\0"], 300).tolist()
    codes, texts = numbered(column([None, *drawn]))
    assert texts == list(dict.fromkeys(filter(None, drawn)))
    assert [texts[code] if code >= 0 else "" for code in codes] == ["", *drawn]
