"""Readers of each format that share nothing with RankTune's: slow, exact, one row after the other."""

import bz2
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MISSING = ("NULL", "null", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "")


class RefusedError(Exception):
    """The content is not what the format says."""


@dataclass(frozen=True)
class Row:
    """One document: its grade, the text of its query id, and its features by name; NaN is missing."""

    grade: float
    query: str
    features: Mapping[str, float] = field(hash=False)


def number(text: str) -> float:
    """Return the number that a text is."""
    if not NUMBER.fullmatch(text) or math.isinf(float(text)):
        raise RefusedError(text)
    return float(text)


def read_text(content: bytes) -> list[Row]:
    """Return the rows of ranking text."""
    rows = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        body, sign, comment = line.partition(b"#")
        tokens = re.split(r"[ \t\r]+", body.strip(b" \t\r").decode("utf-8", "backslashreplace"))
        if b"\0" in comment and sign:
            raise RefusedError("control character")
        if tokens == [""]:
            continue
        grade = number(tokens[0])
        if grade < 0 or len(tokens) < 2 or not tokens[1].startswith("qid:"):
            raise RefusedError(tokens[0])
        query = tokens[1][4:]
        if not query or min(map(ord, query)) < 32:
            raise RefusedError(query)
        features: dict[str, float] = {}
        for token in tokens[2:]:
            index, colon, value = token.partition(":")
            if not re.fullmatch("[0-9]+", index, re.ASCII) or not colon or str(int(index)) in features:
                raise RefusedError(token)
            if not 1 <= int(index) <= 1_000_000:
                raise RefusedError(token)
            is_missing = value.lower() in ("null", "nan", "na", "none") or (
                value[1:].lower() == "nan" and value[0] in "+-"
            )
            features[str(int(index))] = math.nan if is_missing else number(value)
        rows.append(Row(grade, query, features))
    return rows


def read_gzip(content: bytes) -> list[Row]:
    """Return the rows of ranking text that gzip packed."""
    try:
        return read_text(gzip.decompress(content))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise RefusedError(str(error)) from None


def read_bzip2(content: bytes) -> list[Row]:
    """Return the rows of ranking text in bzip2 streams, of which each must be whole."""
    text = b""
    while content:
        stream = bz2.BZ2Decompressor()
        try:
            text += stream.decompress(content)
        except (OSError, ValueError) as error:
            raise RefusedError(str(error)) from None
        if not stream.eof:
            raise RefusedError("cut off")
        content = stream.unused_data
    return read_text(text)


def _separated(separator: str) -> Callable[[bytes], list[Row]]:
    def read(content: bytes) -> list[Row]:
        try:
            lines = list(
                csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=separator, strict=True)
            )
        except (csv.Error, UnicodeDecodeError) as error:
            raise RefusedError(str(error)) from None
        lines = [line for line in lines if line]
        if lines:
            lines[0] = [{"grade": "grade", "qid": "qid"}.get(title.lower(), title) for title in lines[0]]
        if not lines or len(set(lines[0])) < len(lines[0]):
            raise RefusedError("titles")
        return [_row(dict(zip(lines[0], line, strict=False)), len(line) != len(lines[0])) for line in lines[1:]]

    return read


def _row(cells: Mapping[str, str], is_ragged: bool = False) -> Row:
    """Return the row of the cells of a table, which are text."""
    if is_ragged or not {"qid", "grade"} <= cells.keys() or cells["qid"] in MISSING:
        raise RefusedError("columns")
    features = {
        name: math.nan if cell in MISSING else number(cell.strip())  # spaces around, of whatever kind, are no text
        for name, cell in cells.items()
        if name not in ("qid", "grade")
    }
    return Row(number(cells["grade"]), cells["qid"], features)


def _unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in pairs:
        if name in values:
            raise RefusedError(f"{name} twice")
        values[name] = value
    return values


def _json_lines(document: Callable[[Any], Row]) -> Callable[[bytes], list[Row]]:
    def read(content: bytes) -> list[Row]:
        rows = []
        for line in content.splitlines():
            if line.strip():
                try:
                    rows.append(document(json.loads(line, object_pairs_hook=_unique)))
                except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError) as error:
                    raise RefusedError(str(error)) from None
        return rows

    return read


def _hit(value: Any) -> Row:
    """Return the document that Elasticsearch logged."""
    entries = [item for log in value["fields"]["_ltrlog"] for entry in log.values() for item in entry]
    features = _unique((item["name"], item["value"]) for item in entries if item.keys() == {"name", "value"})
    source = value["_source"]
    return _document({**features, "qid": source["qid"], "grade": source["grade"]})


def _of_solr(value: Any) -> Row:
    pairs, pending = [], ""
    for part in value["[features]"].split(","):
        pending = f"{pending},{part}" if pending else part  # a name may hold commas
        if "=" in part:
            name, _, text = pending.rpartition("=")
            pairs.append((name.strip(), number(text.strip())))
            pending = ""
    if pending:
        raise RefusedError(pending)
    features = _unique(pairs)
    return _document({**features, "qid": value["qid"], "grade": value["grade"]})


def _words(content: bytes) -> list[list[str]]:
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise RefusedError(str(error)) from None
    return [line.split() for line in re.split("\r\n|\r|\n", text)]


def read_run(content: bytes) -> list[Row]:
    """Return the rows of a TREC run, which have no grades."""
    lines = list(filter(None, _words(content)))
    if any(len(words) != 6 for words in lines):
        raise RefusedError("words")
    _unique((f"{words[0]} {words[2]}", None) for words in lines)
    tags = {words[5] for words in lines}
    name = tags.pop() if len(tags) == 1 else "score"
    return [Row(0.0, words[0], {name: number(words[4])}) for words in lines]


JUDGED = [(f"q{row // 4}", f"d{row}") for row in range(14)]
"""Queries and documents of the data that judgments are read with, whose feature f is the number of the row."""


def read_judged(content: bytes) -> list[Row]:
    """Return the rows of JUDGED with the grades that a file of judgments gives."""
    grades: dict[tuple[str, str], float] = {}
    for row, words in enumerate(_words(content)):
        if not words or (row == 0 and not any(map(NUMBER.fullmatch, words)) and words[-1].isidentifier()):
            continue
        if len(words) not in (3, 4):
            raise RefusedError("words")
        grade = max(number(words[-1]), 0.0)
        if grades.setdefault((words[0], words[-2]), grade) != grade:
            raise RefusedError("two grades")
    if not grades.keys() & set(JUDGED):
        raise RefusedError("none is judged")
    return [Row(grades.get(pair, 0.0), pair[0], {"f": float(row)}) for row, pair in enumerate(JUDGED)]


def _document(value: object) -> Row:
    if not isinstance(value, dict) or not {"qid", "grade"} <= value.keys():
        raise RefusedError("no document")
    features = {k: math.nan if v is None else v for k, v in value.items() if k not in ("qid", "grade")}
    if not all(isinstance(feature, int | float) and not math.isinf(feature) for feature in features.values()):
        raise RefusedError("no number")
    if not (isinstance(value["grade"], int | float) and math.isfinite(value["grade"])):
        raise RefusedError("no grade")
    return Row(float(value["grade"]), str(value["qid"]), {k: float(v) for k, v in features.items()})


def _by_polars(read: Callable[[io.BytesIO], pl.DataFrame]) -> Callable[[bytes], list[Row]]:
    def rows(content: bytes) -> list[Row]:
        try:
            frame = read(io.BytesIO(content))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise RefusedError(str(error)) from None
        return [_document(row) for row in frame.rows(named=True)]

    return rows


def read_npz(content: bytes) -> list[Row]:
    """Return the rows of an archive of NumPy arrays."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            X, y, qid = (archive[name] for name in ("X", "y", "qid"))
    except Exception as error:
        raise RefusedError(str(error)) from None
    if X.ndim != 2 or not (X.shape[0] == len(y) == len(qid)):
        raise RefusedError("shapes")
    return [
        Row(float(g), str(q), {str(k): float(v) for k, v in enumerate(x, 1)}) for x, g, q in zip(X, y, qid, strict=True)
    ]


READERS: Mapping[str, Callable[[bytes], list[Row]]] = {
    "text": read_text,
    "text.gz": read_gzip,
    "text.bz2": read_bzip2,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "jsonl": _json_lines(lambda value: _document(value)),
    "elastic.jsonl": _json_lines(_hit),
    "solr.jsonl": _json_lines(_of_solr),
    "run": read_run,
    "qrels": read_judged,
    "parquet": _by_polars(pl.read_parquet),
    "arrow": _by_polars(pl.read_ipc),
    "npz": read_npz,
}
"""Format -> what reads it."""
