"""How the columns of a table became numbers: learnt from the training table, applied to every other table alike.

A numeric column is a feature of the same name, as is one of amounts. Every other column gives the features that its
kind names, such as colour=red of a category, and published:age_days of dates. The features of a table become a data
frame again for estimators that choose columns by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Features, Json, dense
from ranktune.solvers.core.errors import DataError, ParameterError, listed
from ranktune.solvers.data.columns.grammar import Amount, repeated

VERSION = 1
ROLES = ("query", "grade", "document", "weight")
DAY = 86_400_000_000
"""Microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Category:
    """A feature for each of some values, its levels: 1 where the column has it, else 0.

    All are 0 for other values. Where has_missing, there is one more feature, 1 where the value is missing.
    """

    levels: tuple[str, ...]
    has_missing: bool = False

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the features."""
        names = tuple(f"{column}={level}" for level in self.levels)
        return (*names, f"{column}:missing") if self.has_missing else names

    def explained(self, column: str) -> str:
        """Return how the features are computed."""
        text = f"{column}=VALUE is 1 where {column} is VALUE, else 0"
        return f"{text}; {column}:missing is 1 where it has none" if self.has_missing else text


@dataclass(frozen=True)
class Age:
    """One feature: the days from a date to another, before, which is ISO 8601 text in UTC."""

    before: str

    def names(self, column: str) -> tuple[str, ...]:
        """Return the name of the feature."""
        return (f"{column}:age_days",)

    def explained(self, column: str) -> str:
        """Return how the feature is computed."""
        return f"{column}:age_days is the days from {column} to {self.before}"

    @property
    def microseconds(self) -> int:
        """The date before which ages are counted, in microseconds since 1970."""
        return microseconds(datetime.fromisoformat(self.before))

    @classmethod
    def until(cls, time: int) -> Self:
        """Return ages before a time in microseconds since 1970."""
        latest = microseconds(datetime.max)  # a float of the largest dates is rounded to one beyond it
        return cls((_EPOCH + timedelta(microseconds=min(time, latest))).isoformat())


Kind: TypeAlias = Category | Age | Amount
"""What a column is that is not numeric."""


@dataclass(frozen=True)
class TableEncoding:
    """Which columns of a table are what, and how those that are not numeric become features.

    Attributes
    ----------
    query, grade, document, weight : str or None
        The column of query ids, of grades, of document ids and of weights.
    missing : str
        What missing values are read as: "keep", "error" or "zero".
    columns : mapping of str to Category, Age or Amount
        The feature columns that are not numeric.
    """

    query: str | None = None
    grade: str | None = None
    document: str | None = None
    weight: str | None = None
    missing: str = "keep"
    columns: Mapping[str, Kind] = field(default_factory=dict)

    def features_of(self, column: str) -> tuple[str, ...]:
        """Return the names of the features that a column gives."""
        kind = self.columns.get(column)
        return (column,) if kind is None or isinstance(kind, Amount) else kind.names(column)

    def sources(self, feature_names: Sequence[str]) -> dict[str, str]:
        """Return feature -> column for these features, in their order."""
        made = {name: column for column in self.columns for name in self.features_of(column)}
        return {name: made.get(name, name) for name in feature_names}

    def explained(self, feature_names: Sequence[str]) -> list[str]:
        """Return how those of the features are computed that are no columns, one text per column."""
        columns = dict.fromkeys(column for name, column in self.sources(feature_names).items() if name != column)
        return [self.columns[column].explained(column) for column in columns]  # type: ignore[union-attr] # no Amount

    def as_json(self) -> Json:
        """Return the encoding as JSON values."""
        columns = {
            name: {"levels": list(kind.levels), "missing": kind.has_missing}
            if isinstance(kind, Category)
            else asdict(kind)
            for name, kind in self.columns.items()
        }
        roles = {role: getattr(self, role) for role in ROLES}
        return {"version": VERSION, **roles, "missing": self.missing, "columns": columns}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the encoding that as_json gave. Raises ValueError for anything else."""
        if not isinstance(value, dict):
            raise ValueError("it must be an object")
        if type(value.get("version")) is not int or value["version"] != VERSION:
            raise ValueError(f"version {str(value.get('version'))[:40]} is not known; this RankTune reads {VERSION}")
        roles = {role: value.get(role) for role in ROLES}
        columns, missing = value.get("columns"), value.get("missing")
        if not all(isinstance(name, str | None) for name in roles.values()) or not isinstance(columns, dict):
            raise ValueError("columns must be called by text")
        if missing not in ("keep", "error", "zero"):
            raise ValueError(f"missing is {str(missing)[:40]!r}")
        return cls(**roles, missing=missing, columns={name: _kind(kind) for name, kind in columns.items()})


def check_features(present: Sequence[str], needed: Sequence[str], *, exact: bool = True, what: str = "") -> None:
    """Raise DataError where the needed features are not all present, or (exact) others are; what begins the message."""
    names_present, names_needed = set(present), set(needed)
    extra = [name for name in present if name not in names_needed]
    if exact and extra:
        raise DataError(
            f"{what}features that the training data does not have: {listed(extra)}. Leave those columns out."
        )
    absent = [name for name in needed if name not in names_present]
    if absent:
        raise DataError(f"{what}lacks the features {listed(absent)} of the training data. Add those columns.")


def alike(first: TableEncoding | None, other: TableEncoding | None) -> bool:
    """Return whether features of the same names mean the same where both are known to come from tables."""
    if first is None or other is None:
        return True
    return all(first.columns[name] == other.columns[name] for name in first.columns.keys() & other.columns.keys())


def microseconds(time: datetime) -> int:
    """Return a time as microseconds since 1970; without a zone, in UTC."""
    return ((time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def time_text(time: float, *, dated: bool) -> str:
    """Return a time of documents as text: a number, or a date, with hours and minutes unless it is midnight."""
    if not dated:
        return f"{time:.15g}"
    date = _EPOCH + timedelta(microseconds=int(time))
    return date.strftime("%Y-%m-%d" if time % DAY == 0.0 else "%Y-%m-%d %H:%M")


def _kind(value: object) -> Kind:
    """Return what a column is. Raises ValueError where that is not clear."""
    fields = value if isinstance(value, dict) else {}
    if fields.keys() == {"before"} and isinstance(fields["before"], str):
        age = Age(fields["before"])
        age.microseconds  # noqa: B018 - raises where it is no date
        return age
    if fields.keys() == {"unit", "decimal"} and fields["decimal"] in (".,", ".", ","):
        return Amount(str(fields["unit"]), fields["decimal"])
    if fields.keys() == {"levels", "missing"} and isinstance(fields["missing"], bool):
        levels = fields["levels"]
        if isinstance(levels, list) and all(isinstance(level, str) for level in levels) and repeated(levels) is None:
            return Category(tuple(levels), fields["missing"])
    raise ValueError(f"{str(value)[:40]!r} is no kind of column")


def frame_of(features: Features, feature_names: Sequence[str] | None, encoding: TableEncoding | None) -> object:
    """Return features, (n_documents, n_features), as a pandas.DataFrame of the columns of their table.

    A category is one column again, of the type category; values that are none of its levels are missing. Dates are
    their ages in days.

    Raises
    ------
    DataError
        If the features have no names.
    ParameterError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ParameterError("a solver that chooses columns by name needs pandas: pip install pandas.") from None
    if feature_names is None:
        raise DataError(
            "the solver chooses columns by name, and the features have none: give a table, whose columns have names."
        )
    where = {name: k for k, name in enumerate(feature_names)}
    X, columns = dense(features), {}
    encoding = encoding or TableEncoding()
    for name, column in encoding.sources(feature_names).items():
        kind = encoding.columns.get(column)
        if not isinstance(kind, Category):
            columns[column] = X[:, where[name]]
        elif column not in columns:
            codes = np.full(len(X), -1)
            for code, feature in enumerate(kind.names(column)[: len(kind.levels)]):
                if feature in where:
                    codes[X[:, where[feature]] == 1.0] = code
            columns[column] = pd.Categorical.from_codes(codes, kind.levels)
    return pd.DataFrame(columns)
