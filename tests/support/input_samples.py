"""The same graded documents in every form that RankTune reads."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost

import ranktune
from ranktune.solvers.data.queries import Queries

N_QUERIES, LENGTH = 24, 6
NAMES = ("bm25", "clicks", "age")
SCORE = 0
"""The feature that a TREC run holds."""

_generator = np.random.default_rng(7)
X = np.round(8 * _generator.normal(size=(N_QUERIES * LENGTH, 3))) / 8 + 0.0625  # exact in single precision, never 0
Y = np.digitize(X @ [1.0, -0.5, 0.25] + 0.8 * _generator.normal(size=len(X)), [0.3, 1.2])
QID = np.repeat(np.arange(N_QUERIES), LENGTH) + 100
DOCUMENTS = [f"D{row}" for row in range(len(X))]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


@dataclass(frozen=True)
class Sample:
    """A way in: what makes the source in a folder, the options of reading it, and the columns of X that it holds."""

    make: Callable[[Path], Any]
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[int, ...] = (0, 1, 2)
    is_file: bool = True


def expected(sample: Sample) -> Queries:
    return Queries.from_arrays(X[:, sample.columns], Y, qid=QID)


def in_folder(options: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return options with the path of the judgments."""
    return {name: str(folder / value) if name == "qrels" else value for name, value in options.items()}


def _table() -> dict[str, Any]:
    return {"qid": QID, "grade": Y, "docid": DOCUMENTS, **{name: X[:, k] for k, name in enumerate(NAMES)}}


def _file(name: str, text: Callable[[], str]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(gzip.compress(text().encode()) if name.endswith(".gz") else text().encode())
        return path

    return make


def _with(make: Callable[[Path], Path], *others: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Return make, with other files written too."""

    def both(folder: Path) -> Path:
        for other in others:
            other(folder)
        return make(folder)

    return both


def _letor() -> str:
    return "".join(
        f"{y} qid:{q} {' '.join(f'{k}:{v!r}' for k, v in enumerate(x, 1))} # docid = {name} inc = 1\n"
        for y, q, x, name in zip(Y, QID, X.tolist(), DOCUMENTS, strict=True)
    )


def _ranklib() -> str:
    return "# RankLib\n" + "".join(
        f"{y}\tqid:{q}\t{' '.join(f'{k}:{v!r}' for k, v in enumerate(x, 1))}\r\n"
        for y, q, x in zip(Y, QID, X.tolist(), strict=True)
    )


def _without_qid() -> str:
    return "".join(
        f"{y} {' '.join(f'{k}:{v!r}' for k, v in enumerate(x, 1))}\n" for y, x in zip(Y, X.tolist(), strict=True)
    )


def _sizes() -> str:
    return f"{LENGTH}\n" * N_QUERIES


def _numbers_only(separator: str) -> str:
    return "".join(separator.join(map(repr, [int(y), *x])) + "\n" for y, x in zip(Y, X.tolist(), strict=True))


def _qrels() -> str:
    return "".join(f"{q} 0 {name} {y}\n" for q, name, y in zip(QID, DOCUMENTS, Y, strict=True))


def _runs(folder: Path) -> Path:
    (folder / "runs").mkdir()
    for number in range(len(NAMES)):
        (folder / "runs" / f"{number}.run").write_text(_run(number))
    return folder / "runs"


def _run(number: int = SCORE) -> str:
    scores = X[:, number].tolist()
    lines = zip(QID, DOCUMENTS, scores, strict=True)
    return "".join(f"{q} Q0 {name} {row % LENGTH + 1} {s!r} bm25\n" for row, (q, name, s) in enumerate(lines))


def _lines(documents: list[Any]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def _documents() -> list[dict[str, Any]]:
    return [
        {"qid": int(q), "grade": int(y), "docid": name, **row}
        for q, y, name, row in zip(QID, Y, DOCUMENTS, ROWS, strict=True)
    ]


def _nested() -> list[dict[str, Any]]:
    return [
        {"qid": int(q), "label": int(y), "title": f"about {name}", "features": row}
        for q, y, name, row in zip(QID, Y, DOCUMENTS, ROWS, strict=True)
    ]


def _by_query(make: Callable[[int, list[int]], Any]) -> list[Any]:
    return [make(int(q), np.flatnonzero(q == QID).tolist()) for q in np.unique(QID)]


def _hit(row: int) -> dict[str, Any]:
    logged = [{"name": name, "value": value} for name, value in ROWS[row].items()]
    return {
        "_index": "shop", "_id": DOCUMENTS[row], "_score": 1.0, "_source": {"title": "words"},
        "fields": {"_ltrlog": [{"log_entry1": logged}]},
    }  # fmt: skip


def _elasticsearch() -> list[dict[str, Any]]:
    return [_hit(row) | {"qid": int(QID[row]), "grade": int(Y[row])} for row in range(len(X))]


def _opensearch() -> list[dict[str, Any]]:
    def response(qid: int, rows: list[int]) -> dict[str, Any]:
        hits = {"total": {"value": len(rows)}, "max_score": 1.0, "hits": [_hit(row) for row in rows]}
        return {"qid": qid, "took": 3, "timed_out": False, "hits": hits}

    return _by_query(response)


def _solr() -> list[dict[str, Any]]:
    def text(row: int) -> str:
        return ",".join(f"{name}={value!r}" for name, value in ROWS[row].items())

    def response(qid: int, rows: list[int]) -> dict[str, Any]:
        docs = [{"id": DOCUMENTS[row], "score": 2.0, "[features]": text(row)} for row in rows]
        header = {"status": 0, "params": {"q": str(qid), "fl": "id,score,[features]"}}
        return {"responseHeader": header, "response": {"numFound": len(rows), "start": 0, "docs": docs}}

    return _by_query(response)


def _npz(folder: Path) -> Path:
    np.savez(folder / "data.npz", X=X, y=Y, qid=QID)
    return folder / "data.npz"


def _parquet(folder: Path) -> Path:
    pl.DataFrame(_table()).write_parquet(folder / "data.parquet")
    return folder / "data.parquet"


def _feather(folder: Path) -> Path:
    pl.DataFrame(_table()).write_ipc(folder / "data.feather")
    return folder / "data.feather"


def _csv(separator: str) -> str:
    return str(pd.DataFrame(_table()).to_csv(index=False, sep=separator))


def _object(make: Callable[[], Any]) -> Sample:
    return Sample(lambda folder: make(), is_file=False)


GROUPS = np.full(N_QUERIES, LENGTH)
_judgments = _file("judged.qrels", _qrels)
_judged = {"qrels": "judged.qrels"}


def _converted(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    def convert(folder: Path) -> Path:
        ranktune.convert(make(folder), folder / "data.converted")
        return folder / "data.converted"

    return convert


SAMPLES: Mapping[str, Sample] = {
    "letor": Sample(_file("data.txt", _letor)),
    "letor-gz": Sample(_file("data.txt.gz", _letor)),
    "ranklib": Sample(_file("data.dat", _ranklib)),
    "lightgbm-text": Sample(_with(_file("rank.train", _without_qid), _file("rank.train.query", _sizes))),
    "lightgbm-tsv": Sample(
        _with(_file("rank.tsv", lambda: _numbers_only("\t")), _file("rank.tsv.query", _sizes))
    ),
    "csv": Sample(_file("data.csv", lambda: _csv(","))),
    "csv-gz": Sample(_file("data.csv.gz", lambda: _csv(","))),
    "tsv": Sample(_file("data.tsv", lambda: _csv("\t"))),
    "parquet": Sample(_parquet),
    "feather": Sample(_feather),
    "npz": Sample(_npz),
    "converted": Sample(_converted(_file("data.txt", _letor))),
    "converted-csv": Sample(_converted(_file("data.csv", lambda: _csv(",")))),
    "jsonl": Sample(_file("data.jsonl", lambda: _lines(_documents()))),
    "jsonl-nested": Sample(_file("data.ndjson.gz", lambda: _lines(_nested()))),
    "jsonl-by-query": Sample(
        _file("queries.jsonl", lambda: _lines(_by_query(
            lambda qid, rows: {"query_id": qid, "documents": [{"rel": int(Y[row]), **ROWS[row]} for row in rows]}
        )))
    ),
    "elasticsearch": Sample(_file("log.jsonl", lambda: _lines(_elasticsearch()))),
    "opensearch": Sample(
        _with(_file("log.json", lambda: json.dumps({"responses": _opensearch()}, indent=1)), _judgments), _judged
    ),
    "solr": Sample(_with(_file("solr.jsonl", lambda: _lines(_solr())), _judgments), _judged),
    "trec": Sample(_with(_file("bm25.run", _run), _judgments), _judged, (SCORE,)),
    "trec-txt": Sample(_with(_file("run.txt", _run), _judgments), _judged, (SCORE,)),
    "trec-folder": Sample(_with(_runs, _judgments), _judged),
    "csv-qrels": Sample(
        _with(_file("new.csv", lambda: pd.DataFrame(_table()).drop(columns="grade").to_csv(index=False)), _judgments),
        _judged,
    ),
    "csv-columns": Sample(
        _file("warehouse.csv", lambda: pd.DataFrame(_table() | {"sku": range(len(X)), "day": QID}).rename(
            columns={"qid": "session", "grade": "bought"}).to_csv(index=False)),
        {"qid": "session", "grade": "bought", "drop": "sku,da*"},
    ),
    "pandas": _object(lambda: pd.DataFrame(_table())),
    "polars": _object(lambda: pl.DataFrame(_table())),
    "polars-lazy": _object(lambda: pl.LazyFrame(_table())),
    "pyarrow": _object(lambda: pytest.importorskip("pyarrow").table(_table())),
    "tuple": _object(lambda: (X, Y, QID)),
    "tuple-frame": _object(lambda: (pd.DataFrame(X, columns=list(NAMES)), pd.Series(Y), pd.Series(QID))),
    "queries": _object(lambda: Queries.from_arrays(X, Y, qid=QID)),
    "lightgbm": _object(lambda: lightgbm.Dataset(X, Y, group=GROUPS, free_raw_data=False)),
    "xgboost": _object(lambda: xgboost.DMatrix(X, Y, qid=QID)),
}  # fmt: skip
