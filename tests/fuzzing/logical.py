"""Logical tables with awkward names, ids and numbers, written in every format: each is read as it is, or refused."""

import csv
import io
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning
from ranktune.solvers.data.sources import catalogue
from tests.fuzzing.mutation import Outcome, rows_of

BIG = 1 << 53
NAMES = ("a", "b", "f1", "bm25.title", "é", "a b")
TAKEN = ("A", "Weight", "weight", "query", "grade", "label", "qid", "2", "name")
"""Names that mean something else in a format, or only seem to."""
IDS: tuple[tuple[object, ...], ...] = (
    (1, 2, 30), (BIG, BIG + 1, BIG + 2), (float(BIG), BIG + 1), (1.0, 2.5), ("01", "1", "x"), ("é", "1_0", "nan")
)  # fmt: skip
NUMBERS: tuple[tuple[object, ...], ...] = (
    (0.5, -2.0, 1e-310, 1e308, 0.1), (0.25, None, -0.0), (0, 1, -7), (1, BIG + 1), (0.5, BIG + 1), (1, 10**309),
    (2, 10**22),
)  # fmt: skip


@dataclass(frozen=True)
class Logical:
    """Names of features, and of each row its grade, query, document and features."""

    names: list[str]
    rows: list[tuple[int, object, str, tuple[object, ...]]]

    @property
    def expected(self) -> list[tuple[float, str, tuple[float, ...]]] | None:
        """What is read of each row; None where a number is none for doubles, so that it must be refused."""
        try:
            return [
                (float(grade), str(query), tuple(math.nan if x is None else float(x) for x in features))  # type: ignore[arg-type]
                for grade, query, _, features in self.rows
            ]
        except OverflowError:
            return None

    @property
    def is_rounded(self) -> bool:
        """Whether a number of a column of whole numbers is no double, which is to be said."""
        columns = zip(*(features for *_, features in self.rows), strict=True)
        whole = [column for column in columns if all(isinstance(x, int) for x in column)]
        return any(int(float(x)) != x for column in whole for x in column if isinstance(x, int))


def logical(seed: int) -> Logical:
    """Return a random table."""
    g = np.random.default_rng([seed, 7])
    shares = np.array([6.0] * len(NAMES) + [1.0] * len(TAKEN))
    chosen = g.choice(len(shares), 3, p=shares / shares.sum(), replace=g.random() < 0.2)
    names = [(*NAMES, *TAKEN)[k] for k in chosen.tolist()]
    pools = [NUMBERS[k] for k in g.choice(len(NUMBERS), 3, p=[0.4, 0.2, 0.2, 0.05, 0.05, 0.05, 0.05])]
    ids = IDS[int(g.integers(len(IDS)))]
    rows = []
    for row in range(int(g.integers(3, 9))):  # the first has all features: a sparse log does not tell those of no row
        features = tuple(pool[int(g.integers(len(pool))) if row else 0] for pool in pools)
        rows.append((int(g.integers(3)), ids[int(g.integers(len(ids)))], f"d{g.integers(90)}", features))
    return Logical(names, sorted(rows, key=lambda row: str(row[1])))


def _text(table: Logical) -> bytes:
    lines = []
    for grade, query, name, xs in table.rows:
        values = (f"{k}:{'NULL' if x is None else x}" for k, x in enumerate(xs, 1))
        lines.append(f"{grade} qid:{query} {' '.join(values)} # {name}\n")
    return "".join(lines).encode()


def _separated(table: Logical) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["qid", "grade", "docid", *table.names])
    writer.writerows([query, grade, name, *xs] for grade, query, name, xs in table.rows)
    return out.getvalue().encode()


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


def _lines(form: str) -> Callable[[Logical], bytes]:
    def write(table: Logical) -> bytes:
        lines = []
        for grade, query, name, xs in table.rows:
            keys = [("qid", json.dumps(query)), ("grade", str(grade)), ("docid", json.dumps(name))]
            features = [(key, json.dumps(x)) for key, x in zip(table.names, xs, strict=True)]
            if form == "apart":
                features = [("features", _object(features))]
            elif form == "elastic":
                pairs = [_object([("name", json.dumps(key)), ("value", x)]) for key, x in features]
                features = [("fields", _object([("_ltrlog", f'[{{"entry": [{", ".join(pairs)}]}}]')]))]
                keys = [("_source", _object(keys))]
            elif form == "solr":
                logged = (f"{key}={x}" for key, x in features if x != "null")
                features = [("[features]", json.dumps(",".join(logged)))]
            lines.append(_object([*keys, *features]) + "\n")
        return "".join(lines).encode()

    return write


def _arrow(table: Logical) -> pa.Table:
    columns = [list(column) for column in zip(*((q, y, d, *xs) for y, q, d, xs in table.rows), strict=True)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], names=["qid", "grade", "docid", *table.names])


def _ipc(table: Logical) -> bytes:
    out, given = io.BytesIO(), _arrow(table)
    with pa.ipc.new_file(out, given.schema) as file:
        file.write_table(given)
    return out.getvalue()


def _parquet(table: Logical) -> bytes:
    out = io.BytesIO()
    pq.write_table(_arrow(table), out)
    return out.getvalue()


def _npz(table: Logical) -> bytes:
    out = io.BytesIO()
    grades, ids, _, rows = zip(*table.rows, strict=True)
    np.savez(out, X=np.array(rows, dtype=np.float64), y=grades, qid=np.array(ids), feature_names=table.names)
    return out.getvalue()


def _pandas(table: Logical) -> pd.DataFrame:
    frame = pd.DataFrame([(q, y, d, *xs) for y, q, d, xs in table.rows])
    frame.columns = pd.Index(["qid", "grade", "docid", *table.names])
    return frame


WRITERS: Mapping[str, Callable[[Logical], bytes | pd.DataFrame]] = {
    "a.txt": _text, "a.csv": _separated, "a.jsonl": _lines("flat"), "apart.jsonl": _lines("apart"),
    "elastic.jsonl": _lines("elastic"), "solr.jsonl": _lines("solr"), "a.parquet": _parquet, "a.arrow": _ipc,
    "a.npz": _npz, "frame": _pandas,
}  # fmt: skip
ABSENT_IS_0 = ("solr.jsonl",)
NAMELESS = ("a.txt",)
ROUNDED_BY_WRITER = ("a.txt", "a.npz", "solr.jsonl", "apart.jsonl", "elastic.jsonl")
"""Formats of decimals or doubles, in which a whole number of many digits is one of them."""


def outcome(name: str, seed: int, folder: Path) -> tuple[Outcome | None, str]:
    """Write a table in a format and read it; None where the format cannot hold it."""
    table = logical(seed)
    source: object = None
    with suppress(pa.ArrowException, OverflowError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = WRITERS[name](table)
    if source is None:
        return None, ""
    if isinstance(source, bytes):
        (folder / name).write_bytes(source)
        source = folder / name
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            queries = catalogue.read(source, dtype=np.float64) if name == "a.txt" else catalogue.read(source)
    except RankTuneError as error:
        return Outcome.REFUSED, str(error)
    rows, expected = rows_of(queries), table.expected
    if name in ABSENT_IS_0 and expected is not None:
        expected = [(y, query, tuple(np.nan_to_num(xs, nan=0.0).tolist())) for y, query, xs in expected]
    order = list(range(len(table.names)))
    if queries.feature_names is not None:
        order = [queries.feature_names.index(key) for key in table.names if key in queries.feature_names]
    rows = [(y, query, tuple(xs[k] for k in order)) for y, query, xs in rows]
    is_named = name in NAMELESS or sorted(queries.feature_names or ()) == sorted(table.names)
    is_said = any(issubclass(w.category, RankTuneWarning) for w in caught)
    if not is_named or expected is None or not np.array_equal(_flat(rows), _flat(expected), equal_nan=True):
        return Outcome.WRONG, f"{queries.feature_names} {rows}\ninstead of\n{table.names} {expected}"
    if [row[1] for row in rows] != [row[1] for row in expected]:
        return Outcome.WRONG, f"queries {rows}\ninstead of\n{expected}"
    if table.is_rounded and name not in ROUNDED_BY_WRITER and not is_said:
        return Outcome.WRONG, f"rounded without a word: {expected}"
    return Outcome.EQUAL, ""


def _flat(rows: list[tuple[float, str, tuple[float, ...]]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([(y, *xs) for y, _, xs in rows])


def tried(name: str, count: int, seed: int, folder: Path) -> tuple[Counter[Outcome], list[str]]:
    """Write and read that many tables; return the counts of outcomes, and what is wrong."""
    result: Counter[Outcome] = Counter()
    bad = []
    for number in range(seed, seed + count):
        came, said = outcome(name, number, folder)
        if came is not None:
            result[came] += 1
            bad += [f"{name} {number}: {said[:600]}"] if came == Outcome.WRONG else []
    return result, bad
