"""JSON to the columns of a table: documents, and what search engines log of their features.

Understood are, one a line or in one list or response,

- documents: {"qid": 7, "grade": 2, "bm25": 0.5}, where inner objects give columns such as bm25.title
- documents with their features apart: {"qid": 7, "features": {"bm25": 0.5}}
- a query with its documents: {"qid": 7, "documents": [{...}, ...]}
- hits of Elasticsearch and OpenSearch with the _ltrlog of their learning-to-rank plugin
- documents of Solr with [features], dense or sparse

Where features are apart, a feature that a document lacks is 0, as it is for the model that the engine serves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.roles import QUERIES
from ranktune.solvers.data.readers.formats import ending
from ranktune.solvers.data.readers.frames import Table
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks, lines_of
from ranktune.solvers.data.readers.tables.files import frame_of

Value: TypeAlias = str | float | bool | None
Fields: TypeAlias = Mapping[str, object]

_FEATURES = ("features", "[features]", "_ltrlog")
_DOCUMENTS = ("documents", "docs", "hits")
_TOO_LARGE = 10**308
"""Whole numbers from here are no features."""
_BOOKKEEPING = frozenset({"took", "timed_out", "status", "_index", "_type", "_version", "numFound", "start"})


@dataclass
class _Rows:
    """The documents of a file: their fields, their features where these are apart, and their responses."""

    path: Path
    fields: list[dict[str, Value]] = field(default_factory=list)
    features: list[dict[str, float | None] | None] = field(default_factory=list)
    responses: list[int | None] = field(default_factory=list)
    n_responses: int = 0

    def add_text(self, text: str | bytes, line: int) -> None:
        """Add the documents in a JSON text."""
        try:
            value = json.loads(text)
        except RecursionError:
            raise DataError(f"{self.path}:{line}: is nested too deeply to be documents.") from None
        except ValueError as error:  # also of a number of thousands of digits
            raise DataError(f"{self.path}:{line}: is not JSON ({error}). Each line must be one value.") from None
        try:
            self.add(value, line, {})
        except RecursionError:
            raise DataError(f"{self.path}:{line}: is nested too deeply to be documents.") from None

    def add(self, value: object, line: int, shared: dict[str, Value], response: int | None = None) -> None:
        """Add the documents in a value; shared are the fields of what they are in."""
        if isinstance(value, list):
            for item in value:
                self.add(item, line, shared, response)
        elif not isinstance(value, dict):
            raise DataError(f"{self.path}:{line}: holds {_shown(value)} where a document must be, such as {{...}}.")
        elif isinstance(value.get("responses"), list):  # of _msearch
            self.add(value["responses"], line, shared | _scalars(value))
        elif (inner := _inner(value)) is not None:
            self.n_responses += 1
            self.add(inner, line, shared | _header(value) | _scalars(value), self.n_responses)
        else:
            self._add_document(value, line, shared, response)

    def _add_document(self, value: Fields, line: int, shared: dict[str, Value], response: int | None) -> None:
        fields = dict(shared)
        logged: dict[str, float | None] | None = None
        for name, inner in value.items():
            if name in _FEATURES and (name != "features" or not isinstance(inner, int | float)):
                logged = (logged or {}) | dict(self._logged(inner, line))
            elif name == "_source" and isinstance(inner, dict):
                fields |= _scalars(inner)
            elif name == "fields" and isinstance(inner, dict):
                if "_ltrlog" in inner:
                    logged = (logged or {}) | dict(self._logged(inner["_ltrlog"], line))
                fields |= _scalars({key: x[0] for key, x in inner.items() if isinstance(x, list) and len(x) == 1})
            elif name not in _BOOKKEEPING:
                fields |= _flat(name, inner)
        self.fields.append(fields)
        self.features.append(logged)
        self.responses.append(response)

    def _logged(self, value: object, line: int) -> Iterator[tuple[str, float | None]]:
        """Yield the names and values of features, in any of the forms of a log."""
        if isinstance(value, str):
            yield from self._from_text(value, line)
        elif isinstance(value, list):
            for item in value:
                yield from self._logged(item, line)
        elif isinstance(value, dict) and isinstance(value.get("name"), str):
            yield value["name"], self._number(value.get("value", 0.0), line)  # without a value: did not match
        elif isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, dict | list):
                    yield from self._logged(inner, line)
                else:
                    yield str(name), self._number(inner, line)
        else:
            raise DataError(f"{self.path}:{line}: {_shown(value)} are no features. Give {{name: value, ...}}.")

    def _from_text(self, text: str, line: int) -> Iterator[tuple[str, float | None]]:
        """Yield the features of Solr's text: a=1.0,b=2.0, or a:1.0;b:2.0 before version 7."""
        between, equals = (",", "=") if "=" in text else (";", ":")
        for part in filter(None, text.split(between)):
            name, sign, number = part.rpartition(equals)
            try:
                yield name.strip(), float(number)
            except ValueError:
                sign = ""
            if not sign:
                raise DataError(f"{self.path}:{line}: {part[:40]!r} is no feature of Solr, such as bm25=1.5.")

    def _number(self, value: object, line: int) -> float | None:
        if value is None:
            return None
        if isinstance(value, float) or (isinstance(value, int) and abs(value) < _TOO_LARGE):
            return float(value)
        raise DataError(f"{self.path}:{line}: a feature is {_shown(value)}: it must be a number.")

    def columns(self) -> tuple[dict[str, list[Value]], tuple[str, ...] | None]:
        """Return the columns, and the names of the features where these are apart."""
        apart = [features for features in self.features if features is not None]
        if apart and len(apart) < len(self.features):
            number = self.features.index(None) + 1
            raise DataError(
                f"{self.path}: document {number} has no features, as others have. Log them for all, or none."
            )
        names = dict.fromkeys(name for features in apart for name in features)
        others = dict.fromkeys(name for fields in self.fields for name in fields if name not in names)
        columns = {name: [fields.get(name) for fields in self.fields] for name in others}
        columns |= {name: [features.get(name, 0.0) for features in apart] for name in names}
        if not any(name.lower() in QUERIES for name in columns) and None not in self.responses:
            columns["qid"] = list(self.responses)  # each response is of one query
        return columns, tuple(names) if apart else None


def read_json(path: Path) -> Table:
    """Return a JSON file as a table. A file that is called .json may be one value; else each line is one."""
    columns, features = read_documents(path, whole=ending(path).lower() == ".json")
    return Table(frame_of(path, columns), features)


def read_documents(path: Path, *, whole: bool) -> tuple[dict[str, list[Value]], tuple[str, ...] | None]:
    """Return the columns of a JSON file, and the names of the features where documents have them apart.

    whole: the file may be one JSON value; else each line is one. Raises DataError where it is neither.
    """
    rows = _Rows(path)
    if whole:
        text = b"".join(block.tobytes() for block in line_blocks(Position(path)))
        if not _has_lines(text):
            rows.add_text(text, 1)
    if not rows.fields:
        position = Position(path)
        for line in lines_of(position):
            if line.strip():
                rows.add_text(line, position.lines)
    if not rows.fields:
        raise DataError(f"{path}: holds no documents.")
    return rows.columns()


def _has_lines(text: bytes) -> bool:
    """Return whether the first of several lines is a whole JSON value."""
    first, _, rest = text.strip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest)


def _inner(value: Fields) -> object:
    """Return the list of documents in a response or in a query with its documents, None in a document."""
    response = value.get("response")
    if isinstance(response, dict) and isinstance(response.get("docs"), list):
        return response["docs"]
    for name in _DOCUMENTS:
        inner = value.get(name)
        inner = inner.get("hits") if isinstance(inner, dict) else inner
        if isinstance(inner, list) and all(isinstance(item, dict) for item in inner):
            return inner
    return None


def _header(value: Fields) -> dict[str, Value]:
    """Return the query of a response of Solr: the parameter qid, else q."""
    header = value.get("responseHeader")
    params = header.get("params") if isinstance(header, dict) else None
    if not isinstance(params, dict):
        return {}
    return next(({"qid": params[name]} for name in ("qid", "q") if isinstance(params.get(name), str | int)), {})


def _scalars(value: Fields) -> dict[str, Value]:
    return {
        name: inner
        for name, inner in value.items()
        if isinstance(inner, str | int | float) and name not in _BOOKKEEPING
    }


def _flat(name: str, value: object) -> dict[str, Value]:
    """Return a field as columns: those of an inner object by names with a dot, a list as text."""
    if isinstance(value, dict):
        return {key: cell for field, inner in value.items() for key, cell in _flat(f"{name}.{field}", inner).items()}
    if isinstance(value, list):
        return {name: json.dumps(value)}
    return {name: value if value is None or isinstance(value, str | int | float) else str(value)}


def _shown(value: object) -> str:
    return json.dumps(value)[:40]
