"""What queries have besides features, grades and ids: a column for each, by its name in `Queries.columns`.

Whatever reads, checks, selects, joins, stores, digests, weighs or shows queries goes over COLUMNS. The module loads the
standard library alone, because `ranktune --help` reads it: a `Column` is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.table import named

if TYPE_CHECKING:
    from ranktune.solvers.data.query_columns import Column

T = TypeVar("T", bound=type)


@dataclass(frozen=True)
class ColumnEntry:
    """What a column of a table can be besides a feature, and for most what becomes of it.

    option  the option that names the column; empty where none does
    what    what a value is, in messages
    place   the module of its `Column`, below ranktune.solvers.data, and its name there
    needs   what a solver must be able to do where data have it: a name of ranktune.solvers.abilities
    help    what it is, for --help and docstrings
    """

    option: str = ""
    what: str = ""
    place: str = ""
    needs: str = ""
    help: str = ""

    @cached_property
    def column(self) -> Column:
        """The column itself."""
        return cast("Column", named(f"ranktune.solvers.data.{self.place}"))


COLUMNS: Mapping[str, ColumnEntry] = {
    "query_weights": ColumnEntry(
        "weight",
        "query weight",
        place="query_columns:QUERY_WEIGHTS",
        help="Column of query weights: how often each query counts, in fitting and in means.",
        needs="query_weights",
    ),
    "document_weights": ColumnEntry(
        "document_weight",
        "document weight",
        place="query_columns:DOCUMENT_WEIGHTS",
        help="Column of document weights: how often each document counts in fitting. Solvers that cannot weigh "
        "documents are left out.",
        needs="document_weights",
    ),
    "positions": ColumnEntry(
        "position",
        "position",
        place="query_columns:POSITIONS",
        help="Column of positions at which clicked documents were shown. LambdaMART corrects for them; other solvers "
        "do not use them.",
        needs="positions",
    ),
    "times": ColumnEntry(
        "time",
        "time",
        place="query_columns:TIMES",
        help="Column of times: dates, ISO 8601 text or numbers. Folds go forward in time, the latest fifth is the "
        "test, and a progressive plan goes in their order.",
    ),
    "baseline": ColumnEntry(place="query_columns:BASELINE"),
    "clicks": ColumnEntry(place="query_columns:CLICKS"),
    "contents": ColumnEntry(place="query_columns:CONTENTS"),
    "monotone": ColumnEntry(place="query_columns:MONOTONE", needs="monotone"),
}
"""By name, in the order in which they are digested."""

OPTIONS: Mapping[str, str] = {entry.option: name for name, entry in COLUMNS.items() if entry.option}
"""The options that name columns of tables, and the columns of queries that they become."""


def with_options(kind: Callable[[ColumnEntry], object]) -> Callable[[T], T]:
    """Return a decorator of a class below @dataclass: it gets a field, None by default, for each of OPTIONS."""

    def decorate(declaration: T) -> T:
        kinds = {option: kind(COLUMNS[name]) for option, name in OPTIONS.items()}
        declaration.__annotations__ = {**declaration.__annotations__, **kinds}
        for option in kinds:
            setattr(declaration, option, None)
        return declaration

    return decorate


def column_of(name: str) -> Column:
    """Return the column of that name. Raises ParameterError where there is none."""
    if name not in COLUMNS:
        raise ParameterError(f"'{name[:40]}' is not a column of queries. {nearest(name, COLUMNS)}")
    return COLUMNS[name].column
