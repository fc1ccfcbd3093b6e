"""Readers of each format that share nothing with RankTune's: slow, exact, one row after the other."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MISSING = ("NULL", "null", "NA", "NaN", "nan", "None", "")


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
            lines = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=separator, strict=True))
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
        name: math.nan if cell in MISSING else number(cell)
        for name, cell in cells.items()
        if name not in ("qid", "grade")
    }
    return Row(number(cells["grade"]), cells["qid"], features)


def read_json_lines(content: bytes) -> list[Row]:
    """Return the rows of JSON documents, one a line."""
    rows = []
    for line in content.splitlines():
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RefusedError(str(error)) from None
            rows.append(_document(value))
    return rows


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
    "jsonl": read_json_lines,
    "parquet": _by_polars(pl.read_parquet),
    "arrow": _by_polars(pl.read_ipc),
    "npz": read_npz,
}
"""Format -> what reads it."""
