"""A table is the same in every form: equal values, or the same refusal."""

import csv
import gzip
import json
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import ranktune
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.grammar import MISSING
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.tables.opening import open_table
from ranktune.solvers.data.sources.catalogue import read
from ranktune.solvers.rankings.opening import open_ranking
from tests.support.click_logs import impressions

Drawn = Mapping[str, list[str | None]]
"""A column as text, None where it is missing."""
DATES = ("{:%Y-%m-%d}", "{:%d.%m.%Y}", "{:%Y-%m-%dT%H:%M}", "{:%Y-%m-%d %H:%M:%S}", "{:%Y-%m-%dT%H:%M:%SZ}")
KINDS: tuple[Callable[[np.random.Generator], str], ...] = (
    lambda draw: str(draw.integers(-9, 9)),
    lambda draw: f"{draw.normal():.3f}",
    lambda draw: str(draw.choice(["red", "dark red", 'a "b"', "x,y", "ä"])),
    lambda draw: f"${draw.integers(1, 9)},{draw.integers(100, 999)}.50",
    lambda draw: f"{draw.integers(1, 99)}.5 %",
    lambda draw: f"0x{draw.integers(10, 14)}",
    lambda draw: str(draw.choice(DATES)).format(
        pd.Timestamp(2020, 1, 1) + pd.Timedelta(int(draw.integers(10**8)), "s")
    ),
)


def drawn(seed: int) -> Drawn:
    """Return a table of a few columns, of whose cells some are missing and one may be of another kind."""
    draw = np.random.default_rng(seed)
    queries = [str(k) for k in draw.integers(1, 5, 24)]
    columns: dict[str, list[str | None]] = {"qid": list(queries), "grade": [str(k) for k in draw.integers(0, 3, 24)]}
    for number in range(int(draw.integers(1, 4))):
        kind = KINDS[draw.integers(len(KINDS))]
        values: list[str | None] = [kind(draw) for _ in queries]
        if draw.random() < 0.4:
            values = [None if draw.random() < 0.2 else value for value in values]
        if draw.random() < 0.2:
            values[draw.integers(24)] = KINDS[draw.integers(len(KINDS))](draw)
        columns[f"c{number}"] = values
    return columns


def typed(values: list[str | None]) -> list[Any]:
    """Return numbers where all values are, else the text, as a program would give it."""
    for kind in (int, float):
        try:
            return [None if value is None else kind(value) for value in values]
        except ValueError:
            continue
    return list(values)


def rows_of(table: Drawn, missing: str = "") -> list[list[str]]:
    return [list(table), *([missing if x is None else x for x in row] for row in zip(*table.values(), strict=True))]


def delimited(table: Drawn, path: Path, separator: str = ",", missing: str = "") -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows_of(table, missing))
    return path


def packed(path: Path) -> Path:
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return path.with_suffix(".csv.gz")


def json_lines(columns: Mapping[str, list[Any]], path: Path) -> Path:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ways_in(table: Drawn, folder: Path, word: str) -> dict[str, object]:
    """Return the same table in every form; word stands for a missing value in text."""
    columns = {name: typed(values) for name, values in table.items()}
    worded = {
        name: [word if x is None else x for x in values] if any(isinstance(x, str) for x in values) else values
        for name, values in columns.items()
    }
    whole = pa.table(columns)
    pq.write_table(whole, folder / "a.parquet")
    with ipc.new_file(folder / "a.arrow", whole.schema) as file:
        file.write_table(whole)
    return {
        "csv": delimited(table, folder / "a.csv"),
        "a word for missing": delimited(table, folder / "word.csv", missing=word),
        "semicolons": delimited(table, folder / "semicolon.csv", ";"),
        "tabs": delimited(table, folder / "a.tsv", "\t", word),
        "packed": packed(folder / "a.csv"),
        "Parquet": folder / "a.parquet",
        "Arrow": folder / "a.arrow",
        "JSON lines": json_lines(columns, folder / "a.jsonl"),
        "JSON lines with a word": json_lines(worded, folder / "word.jsonl"),
        "pandas": pd.DataFrame(columns),
        "pandas with a word": pd.DataFrame(worded),
        "polars": pl.DataFrame(columns, infer_schema_length=None),
        "lazy": pl.LazyFrame(columns, infer_schema_length=None),
        "pyarrow": whole,
    }


def as_training(source: Any) -> object:
    queries = read(source)
    return queries.feature_names, queries.features.tolist(), queries.grades.tolist(), list(queries.query_ids)


def as_log(source: Any) -> object:
    log = ClickLog.open(source)
    return sorted(impressions(log).items()), log.account.left_out


def ids_and(**columns: list[str | None]) -> Drawn:
    """Return the columns of a table of documents, with ids."""
    numbers: Any = range(24)
    return {
        "query": [f"q{k % 5}" for k in numbers],
        "rank": [f"{k // 5 + 1}" for k in numbers],
        "item": [f"d{k}" for k in numbers],
        **columns,
    }


WAYS: Mapping[str, tuple[Callable[[Any], object], Callable[[Drawn], Drawn]]] = {
    "training": (as_training, dict),
    "judgments": (lambda source: read_judgments(source).by_query, lambda table: ids_and(rating=table["c0"])),
    "scores": (lambda source: vars(open_ranking(source))["by_query"], lambda table: ids_and(score=table["c0"])),
    "clicks": (as_log, lambda table: ids_and(click=table["grade"], time=table["c0"])),
}
"""What reads tables: its values, and the table that it is given, made of a drawn one."""


def outcome(way: str, source: object) -> str:
    """Return the values that were read, or the refusal without its place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankTuneWarning)
            return f"({WAYS[way][0](source)!r})"
    except DataError as error:
        return re.sub(r"^\S+: |\((string|double|int64)\)", "", str(error))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(1, 50))])
def test_a_table_is_the_same_in_every_form(part: int, tmp_path: Path) -> None:
    refused = 0
    for seed in range(10 * part, 10 * part + 10):
        table, word = drawn(seed), list(filter(None, MISSING))[seed % (len(MISSING) - 1)]
        for way, (_, made) in WAYS.items():
            forms = ways_in(made(table), tmp_path, word)
            expected = outcome(way, forms["csv"])
            refused += not expected.startswith("(")
            for form, source in forms.items():
                if way == "training" or isinstance(source, Path):
                    assert outcome(way, source) == expected, (seed, way, form, word)
    assert refused < 30


@pytest.mark.parametrize("way", ["judgments", "scores", "clicks"])
def test_a_comma_may_be_the_decimal_sign(way: str, tmp_path: Path) -> None:
    tables = [
        WAYS[way][1]({"c0": [f"{k // 4}{sign}25" for k in range(24)], "grade": [f"{k % 2}{sign}0" for k in range(24)]})
        for sign in ".,"
    ]
    expected, found = (outcome(way, delimited(table, tmp_path / "a.csv", ";")) for table in tables)
    assert found == expected and found[0] == "("


OPENED: Mapping[str, Callable[[Path], object]] = {
    **{way: reads for way, (reads, _) in WAYS.items()},
    "conversion": lambda path: ranktune.convert(path, path.parent / str(path.stat().st_mtime_ns)),
    "any table": lambda path: open_table(path).read(),
    "any table as text": lambda path: open_table(path).read(text=True),
}
"""The ways into a file of rows. Each refuses rows that are not whole alike."""


@pytest.mark.parametrize("way", OPENED)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [*lines[:3], "1,2", *lines[3:]], r"a\.csv.*:4: has 2 cells, and the first line 6"),
        (lambda lines: [*lines[:3], lines[3] + ",4", *lines[3:]], r"a\.csv.*:4: has 7 cells, and the first line 6"),
        (lambda lines: [*lines[:3], "", *lines[3:]], r"a\.csv.*:4: is empty, and rows follow"),
        (lambda lines: [lines[0].replace("score", "qid"), *lines[1:]], "several columns called 'qid'"),
    ],
)
def test_rows_that_are_not_whole_are_refused_alike(
    way: str, change: Callable[[list[str]], list[str]], words: str, tmp_path: Path
) -> None:
    if (way, "empty" in words) == ("judgments", True):
        pytest.skip("files of Quepid have empty lines")
    lines = [
        "qid,grade,item,score,rank,click",
        *(f"{k // 4},{k % 3},d{k},{k / 2},{k % 4 + 1},{k % 2}" for k in range(12)),
    ]
    for name, pack in (("a.csv", bytes), ("a.csv.gz", gzip.compress)):
        path = tmp_path / name
        path.write_bytes(pack(("\n".join(lines) + "\n\n").encode()))
        OPENED[way](path)
        path.write_bytes(pack(("\n".join(change(lines)) + "\n").encode()))
        with pytest.raises(DataError, match=words):
            OPENED[way](path)
