"""The trees of a file of another library, and the columns that its splits need beside the features.

Trees compare numbers. A split by categories becomes a split of a column that is 1 for the documents that go right,
which is computed from the feature. Nothing in a file is handed to the code of its library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Array, Features, Floats, Ints, JsonView, Matrix, dense
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.columns.grammar import text_of
from ranktune.solvers.models.trees import Trees

MAX_BYTES = 2**28
MOST_FEATURES = 2**30
CELLS = 2**22
"""Numbers of a block of documents with the columns that are computed."""

T = TypeVar("T")


class Computed(NamedTuple):
    """A column that is computed from a feature, and from categories where a split has some, as bytes of an array."""

    feature: int
    values: Callable[[Matrix, bytes], Floats]
    categories: bytes = b""


@dataclass
class SplitColumns:
    """The columns that splits compare: n_features as they are, and those computed, which are numbered after them."""

    n_features: int
    computed: dict[Computed, int] = field(default_factory=dict)

    def number_of(self, column: Computed) -> int:
        """Return the number of a computed column, which splits that compare the same share."""
        return self.computed.setdefault(column, self.n_features + len(self.computed))


@dataclass(frozen=True, eq=False)
class LibraryModel:
    """A sum of trees: base plus their values.

    names, (n_features,), are those of the features, None where they have numbers only. library is what users call it.
    levels are the values of features that are categories, by place, which the library numbers in this order.
    """

    trees: Trees
    columns: SplitColumns
    names: tuple[str, ...] | None
    library: str
    base: float = 0.0
    levels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def used_features(self) -> Ints:
        """The features that splits compare, as they are or in computed columns, ascending."""
        compared = self.trees.features
        computed = [column.feature for column in self.columns.computed]
        return np.unique([*compared[compared < self.n_features].tolist(), *computed]).astype(np.int64)

    @property
    def n_features(self) -> int:
        """Number of features that scores expects."""
        return self.columns.n_features

    def scores(self, X: Features) -> Floats:
        """Return the score of each row of X, (n_rows,)."""
        computed = self.columns.computed
        if not computed:
            return self.base + self.trees.scores(X)
        rows = max(1, CELLS // (self.n_features + len(computed)))
        scores = np.empty(X.shape[0])
        for first in range(0, len(scores), rows):
            block = dense(X[first : first + rows])
            more = [column.values(block[:, column.feature], column.categories) for column in computed]
            scores[first : first + rows] = self.trees.scores(np.column_stack([block, *more]))
        return self.base + scores


def read_whole(path: Path, library: str, parse: Callable[[bytes], T]) -> T:
    """Return what parse makes of a file.

    Raises ModelFormatError where the file is too large, or parse meets anything that it does not expect.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnsupportedModelError(f"is larger than {MAX_BYTES >> 20} MB")
        return parse(path.read_bytes())
    except OSError as error:
        raise ModelFormatError(f"cannot read {path}: {error.strerror}.") from None
    except UnsupportedModelError as error:
        message = f"{path} {error}: such models are not read. Score the documents with {library}, and give the scores."
        raise ModelFormatError(message) from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        message = f"{path} is no whole model of {library}: {error}. Save the model again with {library}."
        raise ModelFormatError(message) from None


class UnsupportedModelError(DataError):
    """A model that is whole, of a kind that is not read; the message follows its path."""


def item_of(fields: object, name: str, kind: type[T]) -> T:
    """Return a field. Raises DataError where it is absent or of another kind."""
    value = fields.get(name) if isinstance(fields, Mapping) else None
    if not isinstance(value, kind):
        raise DataError(f"it lacks {name}" if value is None else f"{name} is a {type(value).__name__}")
    return value


def vector(fields: JsonView, name: str, count: int, kinds: str) -> Array:
    """Return an array of numbers of these kinds of dtypes. Raises DataError where it is none, or of another length."""
    values_given = fields.get(name)
    values = np.asarray(values_given)
    types = set(map(type, values_given)) if isinstance(values_given, list) else set()
    fits = values.dtype.kind in kinds and (bool not in types or len(types) == 1)  # NumPy takes true among numbers for 1
    demand(values.shape == (count,), f"{name} has {values.size} numbers in place of {count}")
    demand(count == 0 or fits, f"{name} holds what is no number of its kind")
    return values


def levels_of(values: Sequence[object]) -> tuple[str, ...]:
    """Return the values of a category as the columns of tables give them. Raises DataError where two are alike."""
    levels = tuple(text_of(value) or "" for value in values)
    demand("" not in levels and len(set(levels)) == len(levels), "two of its categories are alike, or one is empty")
    return levels


def plain(text: str) -> str:
    """Return the text of numbers. Raises DataError for digits of other scripts and underscores, which Python reads."""
    demand(text.isascii() and "_" not in text, f"{text[:20]!r} is no number")
    return text


def demand(holds: object, defect: str) -> None:
    """Raise DataError, which says the defect, unless a condition holds."""
    if not holds:
        raise DataError(defect)
