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
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import RepeatedName, json_of, number_of, once
from ranktune.solvers.data.columns.roles import QUERIES, RESERVED
from ranktune.solvers.data.columns.usual import plain
from ranktune.solvers.data.readers.formats import ending
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.streams import Position, line_blocks, lines_of
from ranktune.solvers.data.readers.tables.arrow_files import frame_of
from ranktune.solvers.data.readers.tables.json_lines import json_at

Value: TypeAlias = str | float | bool | None
Fields: TypeAlias = Mapping[str, object]

_FEATURES = ("features", "[features]", "_ltrlog")
_DOCUMENTS = ("documents", "docs", "hits")
_TOO_LARGE = 10**308
"""Whole numbers from here are no features."""
_SIGNS = [(between, equals) for equals in "=:" for between in ",;| \t&/#"]
"""csvFeatureSeparator and csvKeyValueDelimiter of Solr's [features], those by default first."""
_INNER = re.compile(r"[=:]\s*([+-]?\.?(\d|NaN|Inf)|$)|[;|\t]|^\d[\d.]*\W")
"""What no name of a feature holds: another feature as Java writes numbers, a sign between others, a number's end."""
_SCALARS = (str, int, float, type(None))
_BOOKKEEPING = frozenset({"took", "timed_out", "status", "_index", "_type", "_version", "numFound", "start"})


@dataclass(frozen=True)
class _Around:
    """What documents are in: its fields, those that hold where documents have none of the name, and its number."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    header: Mapping[str, Value] = field(default_factory=dict)
    response: int | None = None


@dataclass
class _Rows:
    """The documents of a file: their fields, their features where these are apart, and their responses.

    texts are features of Solr that are text still: the number of the document, the line, and the text.
    """

    path: Path
    fields: list[dict[str, Value]] = field(default_factory=list)
    features: list[dict[str, float | None] | None] = field(default_factory=list)
    responses: list[int | None] = field(default_factory=list)
    n_responses: int = 0
    texts: list[tuple[int, int, str]] = field(default_factory=list)

    def add_text(self, text: str | bytes, line: int) -> None:
        """Add the documents in a JSON text."""
        with json_at(self.path, line):
            value = json_of(text)
            if "\\ud" in str(text).lower():
                json.dumps(value, ensure_ascii=False).encode()  # half of a character cannot be written
            self.add(value, line, _Around())

    def add(self, value: object, line: int, around: _Around) -> None:
        """Add the documents in a value that is in others."""
        if isinstance(value, list):
            for item in value:
                self.add(item, line, around)
        elif not isinstance(value, dict):
            raise DataError(f"{self.path}:{line}: holds {_shown(value)} where a document must be, such as {{...}}.")
        elif (partial := _partial(value)) is not None:
            raise DataError(
                f"{self.path}:{line}: is a partial answer of the search engine ({partial}): documents may lack, or "
                "features of them. Ask it again."
            )
        elif isinstance(value.get("responses"), list):  # of _msearch
            self.add(value["responses"], line, replace(around, fields={**around.fields, **_scalars(value)}))
        elif (inner := _inner(value)) is not None:
            self.n_responses += 1
            fields, header = {**around.fields, **_scalars(value)}, {**around.header, **_header(value)}
            self.add(inner, line, _Around(fields, header, self.n_responses))
        else:
            self._add_document(value, line, around)

    def _add_document(self, value: Fields, line: int, around: _Around) -> None:
        members: list[tuple[str, Value]] = []
        stored: list[Fields] = []
        logs: list[object] = []
        for name, inner in value.items():
            if name in _FEATURES and (name != "features" or not isinstance(inner, int | float)):
                logs.append(inner)
            elif name == "_source" and isinstance(inner, dict):
                stored.append(inner)
            elif name == "fields" and isinstance(inner, dict):
                logs += [inner["_ltrlog"]] if "_ltrlog" in inner else []
                stored.append({key: x[0] for key, x in inner.items() if isinstance(x, list) and len(x) == 1})
            elif name not in _BOOKKEEPING:
                members += [(name, inner)] if isinstance(inner, _SCALARS) else _flat(name, inner)
        fields = once(members)
        for part in map(_scalars, stored):
            fields = _together(fields, part, RESERVED)
        self.fields.append({**around.header, **_together(around.fields, fields, QUERIES)})
        pairs: list[tuple[str, float | None]] = []
        for log in logs:
            self._logged(log, line, pairs)
        self.features.append(once(pairs) if logs else None)
        self.responses.append(around.response)

    def _logged(self, value: object, line: int, pairs: list[tuple[str, float | None]]) -> None:
        """Add the names and values of features, in any of the forms of a log, to pairs."""
        if isinstance(value, list):
            for item in value:
                self._logged(item, line, pairs)
        elif isinstance(value, dict) and isinstance(name := value.get("name"), str):
            number = value.get("value", 0.0)  # without a value: did not match
            if len(value) != 1 + ("value" in value):
                other = min(value.keys() - {"name", "value"})
                raise DataError(
                    f"{self.path}:{line}: the feature {name!r} has {other!r}, and its number is its value. Is that a "
                    "typing error?"
                )
            pairs.append((name, number if type(number) is float else self._number(number, line)))
        elif isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, dict | list):
                    self._logged(inner, line, pairs)
                else:
                    pairs.append((str(name), self._number(inner, line)))
        elif isinstance(value, str):
            self.texts.append((len(self.features), line, value))
        else:
            raise DataError(f"{self.path}:{line}: {_shown(value)} are no features. Give {{name: value, ...}}.")

    def _read_texts(self) -> None:
        """Add the features that documents have as text, whose signs are those that read all texts of the file."""
        every = ([_pairs(text, *signs) for _, _, text in self.texts] for signs in _SIGNS)
        first = next(every)
        read = first if None not in first else next((pairs for pairs in every if None not in pairs), first)
        known = {name for pairs in read for name, _ in pairs or ()}
        wrong = [  # a name such as 'a=x,b' holds a known one whose value is no number
            pairs is None or any("," in (cut := name.partition("="))[2] and cut[0] in known for name, _ in pairs)
            for pairs in read
        ]
        if any(wrong):
            _, line, text = self.texts[wrong.index(True)]
            raise DataError(
                f"{self.path}:{line}: {text[:40]!r} is no feature of Solr, nor several, such as bm25=1.5,price=2.0, "
                "with the same signs in all documents. A name must not hold what reads as another name and its number. "
                "Log them with csvFeatureSeparator=, and csvKeyValueDelimiter==, and rename such features."
            )
        for (number, line, _), pairs in zip(self.texts, read, strict=True):
            try:
                self.features[number] = once([*(self.features[number] or {}).items(), *(pairs or ())])
            except RepeatedName as error:
                raise DataError(f"{self.path}:{line}: {error}.") from None

    def _number(self, value: object, line: int) -> float | None:
        if value is None:
            return None
        if isinstance(value, float) or (isinstance(value, int) and abs(value) < _TOO_LARGE):
            return float(value)
        raise DataError(f"{self.path}:{line}: a feature is {_shown(value)}: it must be a number.")

    def columns(self) -> tuple[dict[str, list[Value]], tuple[str, ...] | None]:
        """Return the columns, and the names of the features where these are apart."""
        self._read_texts()
        apart = [features for features in self.features if features is not None]
        if apart and len(apart) < len(self.features):
            number = self.features.index(None) + 1
            raise DataError(
                f"{self.path}: document {number} has no features, as others have. Log them for all, or none."
            )
        names = dict.fromkeys(name for features in apart for name in features)
        all_fields = dict.fromkeys(name for fields in self.fields for name in fields)
        for name in names:
            if name in ("qid", "grade") or (name in all_fields and plain(name) in RESERVED):
                raise DataError(
                    f"{self.path}: the feature {name!r} is called as the grade, the query, the document or its weight. "
                    "Rename the feature, or write it beside the features if it is none."
                )
        others = [name for name in all_fields if name not in names]
        columns = {name: [fields.get(name) for fields in self.fields] for name in others}
        columns |= {name: [features.get(name, 0.0) for features in apart] for name in names}
        if not any(plain(name) in QUERIES for name in columns) and None not in self.responses:
            columns["qid"] = list(self.responses)  # each response is of one query
        for name in [name for name in columns if plain(name) in QUERIES]:
            kinds = {type(value): value for value in columns[name]}
            if int in kinds and float in kinds:
                raise DataError(
                    f"{self.path}: {name!r} is a whole number of some documents, as {kinds[int]}, and a decimal of "
                    f"others, as {kinds[float]}: 1 and 1.0 would be one query. Write all as whole numbers, or as text."
                )
        return columns, tuple(names) if apart else None


def read_json(path: Path) -> FrameTable:
    """Return a JSON file as a table. A file that is called .json may be one value; else each line is one."""
    columns, features = read_documents(path, whole=ending(path).lower() == ".json")
    return FrameTable(frame_of(path, columns), features)


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


def _pairs(text: str, between: str, equals: str) -> list[tuple[str, float | None]] | None:
    """Return the features in a text of Solr by the signs between them and before numbers, None if they do not read it.

    A name may hold the first sign; one that holds another name with a number tells that the signs are others. NaN is a
    missing value.
    """
    pairs: list[tuple[str, float | None]] = []
    pending = ""
    for part in text.split(between):
        pending = f"{pending}{between}{part}" if pending.strip() else part
        name, _, word = pending.rpartition(equals)
        number = number_of(word.strip()) if word.strip() else None
        if number is None and word.strip() != "NaN":
            continue
        if not name.strip() or _INNER.search(name):
            return None
        pairs.append((name.strip(), number))
        pending = ""
    return None if pending.strip() else pairs


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


def _flat(name: str, value: object) -> Iterator[tuple[str, Value]]:
    """Yield a field as columns: those of an inner object by names with a dot, a list as text."""
    if isinstance(value, dict):
        for field_name, inner in value.items():
            yield from _flat(f"{name}.{field_name}", inner)
    elif isinstance(value, list):
        yield name, json.dumps(value)
    else:
        yield name, value if isinstance(value, _SCALARS) else str(value)


def _together(fields: Mapping[str, Value], more: Mapping[str, Value], names: Container[str]) -> dict[str, Value]:
    """Return fields and more, which replace them. Raises RepeatedName where these names have two values."""
    for name in fields.keys() & more.keys():
        if plain(name) in names and fields[name] != more[name]:
            raise RepeatedName(name)
    return {**fields, **more}


def _partial(value: Fields) -> str | None:
    """Return why a response holds less than was asked for, None where it does not say so."""
    shards, header = value.get("_shards"), value.get("responseHeader")
    if value.get("timed_out") is True:
        return "timed_out"
    if isinstance(shards, dict) and shards.get("failed"):
        return "failed _shards"
    if isinstance(header, dict) and header.get("partialResults"):
        return "partialResults"
    return "error" if isinstance(value.get("error"), dict) and ("status" in value or header) else None


def _shown(value: object) -> str:
    return json.dumps(value)[:40]
