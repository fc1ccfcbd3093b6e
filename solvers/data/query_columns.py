"""The columns that queries can have: weights, positions, times, scores of a baseline, clicks, cells of their tables.

A column says what each document, query or feature has besides its features, grades and names.

A monotone constraint is 1 where the score must not fall as the feature rises, and -1 where it must not rise. Missing
values are exempt: a missing value is neither more nor less than a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.columns.encoding import time_text
from ranktune.solvers.data.columns.grammar import number_of, values_by_name, warn_of_rounding
from ranktune.solvers.data.columns.table import COLUMNS, column_of

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries


T = TypeVar("T")

Rows = Ints | slice
"""Numbers of documents or queries."""
DOCUMENT, QUERY, FEATURE = "document", "query", "feature"
_MANY = {DOCUMENT: "documents", QUERY: "queries", FEATURE: "features"}


@dataclass(frozen=True)
class Column:
    """What each document has, or each query or feature, mostly a number.

    what         what a value is called in messages
    absent       the value of those without one, where others have one
    good         whether values can be its own, where not all can; rule says which
    is_void      whether values say no more than their absence
    is_digested  whether data that differ in it are other data
    weighs       whether each document counts as often as its value says in fitting, besides its document weight
    has_dates    whether values may be dates: microseconds since 1970 where queries are dated
    of           what has a value: DOCUMENT, QUERY or FEATURE
    file         what its file is called where queries are stored, if not as the column
    """

    what: str = "value"
    absent: float = np.nan
    dtype: DTypeLike = np.float64
    good: Callable[[Array], Array] | None = None
    rule: str = ""
    is_void: Callable[[Array], bool] = lambda values: False
    is_digested: bool = True
    weighs: bool = False
    has_dates: bool = False
    of: str = DOCUMENT
    file: str = ""

    def check(self, values: Array, name: str, queries: Queries) -> None:
        """Raise DataError for values that the column of that name cannot have."""
        many = _MANY[self.of]
        count = getattr(queries, f"n_{many}")
        if values.shape[:1] != (count,) or (self.good is not None and values.ndim != 1):
            raise DataError(f"{name} has shape {values.shape} for {count} {many}: give one {self.what} per {self.of}.")
        bad = np.flatnonzero(np.zeros(count) if self.good is None else ~self.good(values))
        if len(bad):
            raise DataError(f"the {self.what} of {self.of} number {bad[0]} is {values[bad[0]]}: {self.rule}")

    def given(self, values: Any, name: str, queries: Queries) -> Array | None:
        """Return values that a caller gives, of documents in the order of the caller's rows."""
        if self.has_dates and is_dates(values):
            moments = np.asarray(values)
            microseconds = moments.astype("datetime64[us]").astype(np.int64).astype(np.float64)
            values = np.where(np.isnat(moments), np.nan, microseconds)
        array = numeric(values, name)
        self.check(array, name, queries)
        array = np.ascontiguousarray(array, dtype=self.dtype)
        return array if queries.rows is None else array[queries.rows]

    def selected(self, values: Array, queries: Rows, documents: Rows) -> Array:
        """Return the values of some queries and their documents."""
        return values if self.of == FEATURE else values[queries if self.of == QUERY else documents]

    def described(self, values: Array, columns: Ints) -> Array:
        """Return the values where documents have the features of these numbers, and none where one is -1."""
        if self.of != FEATURE:
            return values
        return np.where(columns < 0, self.absent, values[columns]).astype(self.dtype)

    def joined(self, parts: Sequence[tuple[Queries, Rows]], values_of: Sequence[Array | None]) -> Array | None:
        """Return the values of rows of parts, one part after another; None where parts do not fit together."""
        present = [values for values in values_of if values is not None]
        if self.of == FEATURE:
            return present[0]
        if len({values.shape[1:] for values in present}) > 1:  # of tables that do not fit together, contents differ
            return None
        joined = []
        for (part, rows), values in zip(parts, values_of, strict=True):
            shape = (getattr(part, f"n_{_MANY[self.of]}"), *present[0].shape[1:])
            absent = np.broadcast_to(np.array(self.absent, self.dtype), shape)
            joined.append((absent if values is None else values)[rows])
        return np.concatenate(joined)

    def shown(self, values: Array, queries: Queries) -> str:
        """Return a text about the values of queries, for a summary of the data."""
        lowest, highest = values.min(), values.max()
        if self.has_dates:
            return " to ".join(time_text(time, dated=queries.dated) for time in (lowest, highest))
        return f"{lowest:g} to {highest:g}"


class HeldColumn(Generic[T]):
    """A column as an attribute of Queries: its values, or None."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, queries: Queries | None, owner: type) -> T | None:
        return None if queries is None else queries.columns.get(self.name)  # type: ignore[return-value]


def is_dates(values: Any) -> bool:
    """Return whether values are dates."""
    return np.asarray(values).dtype.kind == "M"


def joined_columns(parts: Sequence[tuple[Queries, Rows]], *of: str) -> dict[str, Array]:
    """Return the columns of these kinds, or of all, of rows of parts, one part after another, that some part has."""
    joined = {}
    for name, entry in COLUMNS.items():
        values_of = [part.columns.get(name) for part, _ in parts]
        if any(values is not None for values in values_of) and entry.column.of in (of or _MANY):
            joined[name] = entry.column.joined(parts, values_of)
    return {name: values for name, values in joined.items() if values is not None}


def columns_of(queries: Queries, *of: str) -> dict[str, Array]:
    """Return the columns of queries of these kinds."""
    return {name: values for name, values in queries.columns.items() if COLUMNS[name].column.of in of}


def for_fitting(queries: Queries) -> Queries:
    """Return the same queries without columns that say nothing, and with what weighs documents as their weights."""
    weighing = [name for name in queries.columns if column_of(name).weighs]
    if weighing:
        weights = np.prod([queries.copies, *(queries.columns[name] for name in weighing)], axis=0)
        queries = queries.replaced(**dict.fromkeys(weighing), document_weights=weights)
    void = [name for name, values in queries.columns.items() if column_of(name).is_void(values)]
    return queries.replaced(**dict.fromkeys(void)) if void else queries


KINDS = {"c": "complex numbers", "V": "records", "m": "durations", "M": "dates", "U": "text", "S": "bytes"}
"""Kinds of arrays that hold no numbers."""


def numeric(values: object, name: str) -> Array:
    """Return values as an array of float32 (if they are) or float64, or say why that cannot be."""
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(value, str | bytes) for value in array.flat):
            raise DataError(f"{name} is not numeric: it holds text. Encode text as numbers before.")
        if array.dtype == object and hasattr(values, "to_numpy"):  # nullable types of pandas, whose NA is no number
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if array.dtype.kind not in KINDS:
            if array.dtype in (np.float32, np.float64):
                return array
            doubles = array.astype(np.float64)
            if array.dtype.kind in "iuO":
                warn_of_rounding(array.ravel().__getitem__, doubles.ravel(), name)
            return doubles
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is not numeric ({error}). Encode text as numbers before.") from None
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} is {array.dtype}. Pass real numbers.")
    what = KINDS[array.dtype.kind]
    raise DataError(
        f"{name} is not numeric: it is {array.dtype}, and must hold numbers, not {what}. Convert it before."
    )


Monotone: TypeAlias = Mapping[str, int] | Mapping[int, int] | Mapping[str | int, int] | Sequence[int] | Array
"""Signs by the name or number of a feature, or one sign per feature."""

SIGNS = (-1, 0, 1)
_GIVE = "Give 1 (the score may only rise with the feature) or -1 (only fall)"


def signs_of(monotone: Monotone, n_features: int, names: Sequence[str] | None = None) -> Ints | None:
    """Return the sign of each feature, (n_features,), 0 for those without a constraint; None where none has one.

    Keys are names, globs such as "bm25*", or numbers of columns from 0, also as text; later ones replace earlier ones.
    Features without names are called f1, f2, ...

    Raises ParameterError for a feature that does not exist, and for a sign that is none.
    """
    signs = np.zeros(n_features, dtype=np.int64)
    if isinstance(monotone, Mapping):
        for key, sign in monotone.items():
            signs[_columns(key, n_features, names)] = _sign(key, sign)
    else:
        if len(monotone) != n_features:
            raise ParameterError(
                f"monotone has {len(monotone)} signs for {n_features} features: give one per feature, 0 where there is "
                "no constraint, or a mapping from name to sign."
            )
        signs[:] = [_sign(column, sign) for column, sign in enumerate(monotone)]
    return signs if signs.any() else None


def named_signs(signs: Ints, names: Sequence[str] | None) -> dict[str, int]:
    """Return the constraints of features by name; those without names are called f1, f2, ..."""
    columns = np.flatnonzero(signs).tolist()
    return {name_of(column, names): int(signs[column]) for column in columns}


def name_of(column: int, names: Sequence[str] | None) -> str:
    """Return the name of a column, f1 for the first of features without names."""
    return f"f{column + 1}" if names is None else names[column]


def within(weights: Floats, signs: Ints | None) -> Floats:
    """Return weights with 0 where they are of the other sign than a constraint."""
    return weights if signs is None else np.where(weights * signs < 0.0, 0.0, weights)


def constraints(monotone: object) -> dict[str, int]:
    """Return constraints that are given as a mapping, as a text such as "price=-1,bm25*=1", or as several texts.

    Raises ParameterError where they are none of these, or a sign is none.
    """
    pairs = values_by_name(monotone, f"monotone={{}}: {_GIVE} for each feature, such as price=-1,bm25=1.", number_of)
    return {name: _sign(name, sign) for name, sign in pairs.items()}


def _columns(key: str | int, n_features: int, names: Sequence[str] | None) -> list[int]:
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if 0 <= key < n_features:
            return [int(key)]
        raise ParameterError(
            f"monotone names column {key}: the data have {n_features} features, numbered from 0 to {n_features - 1}."
        )
    labels = [name_of(column, names) for column in range(n_features)]
    exact = [column for column, name in enumerate(labels) if name == key]
    if not exact and str(key).isdecimal() and int(key) < n_features:
        return [int(key)]
    columns = exact or [column for column, name in enumerate(labels) if fnmatchcase(name, str(key))]
    if not columns:
        raise ParameterError(
            f"monotone names the feature '{key}', which the data do not have. {nearest(str(key), labels)}"
        )
    return columns


def _sign(key: object, sign: object) -> int:
    if isinstance(sign, bool) or not isinstance(sign, int | float | np.number) or sign not in SIGNS:
        raise ParameterError(f"monotone: the sign of '{key}' is {sign!r}. {_GIVE}, or 0 for no constraint.")
    return int(sign)


Weights: TypeAlias = Sequence[float] | Array | Mapping[Any, float]


LARGEST = 1e100
"""Sums and squares of larger weights, and of the inverse of smaller ones, are no numbers."""


def is_weight(values: Array) -> Array:
    """Return which values are positive, and can be summed up and squared."""
    return np.asarray((values > 1.0 / LARGEST) & (values < LARGEST))


class QueryWeights(Column):
    """The weights of queries, which can be given by id, in the order of queries, or one a row."""

    def given(self, values: Weights, name: str, queries: Queries) -> Array:
        """Return the weights of queries, (n_queries,)."""
        if isinstance(values, Mapping):
            ids = queries.query_ids.tolist()
            present = set(ids)
            strange = [each for each in values if each not in present]
            if strange:
                raise DataError(f"{name} names the query {strange[0]!r}, which the data do not hold.")
            return np.array([values.get(each, 1.0) for each in ids], dtype=np.float64)
        weights = np.ascontiguousarray(numeric(values, name), dtype=np.float64)
        if weights.shape == (queries.n_documents,) != (queries.n_queries,):
            rows = weights if queries.rows is None else weights[queries.rows]
            weights = rows[queries.starts[:-1]]
            differ = np.flatnonzero(rows != np.repeat(weights, queries.lengths))
            if len(differ):
                query = queries.query_ids[np.searchsorted(queries.starts, differ[0], side="right") - 1]
                raise DataError(
                    f"{name} differs between the documents of query {query}: a weight says how often a query counts. "
                    "Give all documents of a query the same."
                )
        return weights


_RULE = f"weights must be positive, from {1.0 / LARGEST:g} to {LARGEST:g}. Leave out {{}} that should not count."

QUERY_WEIGHTS = QueryWeights("weight", 1.0, good=is_weight, rule=_RULE.format("queries"), of=QUERY, file="weights")
DOCUMENT_WEIGHTS = Column(
    "weight",
    1.0,
    good=is_weight,
    rule=_RULE.format("documents"),
    is_void=lambda values: bool((values == 1.0).all()),
)


class _Signs(Column):
    """The signs of the monotone constraints of features, which can be given by name."""

    def given(self, values: Monotone, name: str, queries: Queries) -> Array | None:
        """Return the sign of each feature, (n_features,); None where there is no constraint."""
        return signs_of(values, queries.n_features, queries.feature_names)


LAST_POSITION = 2**31 - 1
"""The largest position: libraries take 32 bits."""


def _is_position(values: Array) -> Array:
    return np.asarray((values >= 0) & (values <= LAST_POSITION) & (values == np.floor(values)))


POSITIONS = Column(
    "position",
    0,
    np.int64,
    good=_is_position,
    rule=f"positions are whole numbers from 0 to {LAST_POSITION}. Give those at which documents were shown.",
    is_void=lambda values: bool((values == values[0]).all()),
)
TIMES = Column(
    "time", good=np.isfinite, rule="times are finite numbers or dates. Give each document one.", has_dates=True
)
MONOTONE = _Signs("sign", 0, np.int64, is_digested=False, of=FEATURE)
BASELINE = Column(is_digested=False)
CLICKS = Column()
CONTENTS = Column(absent=0, dtype=np.uint64, is_digested=False)
