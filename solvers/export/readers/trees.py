"""Trees that a reader has parsed, and their values for many documents at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Json, Mask
from ranktune.solvers.core.errors import DataError

Singles: TypeAlias = NDArray[np.float32]
Columns: TypeAlias = Mapping[str, Floats]
"""Feature -> its values, (n,), NaN where a document does not have it."""
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", re.A)
Score: TypeAlias = Callable[[Columns, int], Floats]
"""The scores of n documents."""


class Leaf(NamedTuple):
    """A value in single precision."""

    value: np.float32


class Split(NamedTuple):
    """What goes left: a function of the values of a feature, (n,), NaN for absent."""

    feature: str
    goes_left: Callable[[Singles], Mask]
    left: Leaf | Split
    right: Leaf | Split


def sum_of(trees: list[tuple[np.float32, Leaf | Split]], columns: Columns, n: int) -> Floats:
    """Return the weighted sum of trees, (n,), added in their order in single precision."""
    singles = {name: as_singles(values) for name, values in columns.items()}
    total = np.zeros(n, dtype=np.float32)
    for weight, root in trees:
        values, waiting = np.zeros(n, dtype=np.float32), [(root, np.arange(n))]
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, Leaf):
                values[rows] = node.value
            elif len(rows):
                left = node.goes_left(singles[node.feature][rows])
                waiting += [(node.left, rows[left]), (node.right, rows[~left])]
        total += weight * values
    return total.astype(np.float64)


def weighted(weights: Mapping[str, np.float32], columns: Columns, n: int) -> Floats:
    """Return the sum of weighted features, (n,), added in their order in single precision; absent ones are 0."""
    total = np.zeros(n, dtype=np.float32)
    for name, weight in weights.items():
        total += weight * np.nan_to_num(as_singles(columns[name]), posinf=np.inf, neginf=-np.inf)
    return total.astype(np.float64)


def as_singles(values: Floats) -> Singles:
    """Return numbers in single precision; those beyond it are infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def single(number: object, kind: type[str] | type[float] = float) -> np.float32:
    """Return a number of a file in single precision. Raises DataError where an engine expects another kind of value."""
    given = isinstance(number, kind) or (kind is float and type(number) is int)
    check_that(given and _NUMBER.fullmatch(str(number)) is not None, "the engine", f"{number!r} is no number of it")
    with np.errstate(over="ignore"):
        return np.float32(float(str(number)))


def json_of(text: str) -> Json:
    """Return the value of a text in JSON by the rules of engines: without NaN, and with no key twice."""

    def distinct(pairs: list[tuple[str, Json]]) -> Json:
        value = dict(pairs)
        check_that(len(value) == len(pairs), "the engine", "an object has a key twice")
        return value

    value: Json = json.loads(text, object_pairs_hook=distinct, parse_constant=single)
    return value


def check_that(holds: bool, format: str, rule: str) -> None:
    """Raise DataError where a file breaks a rule that its system checks when it loads a model."""
    if not holds:
        raise DataError(f"{format} does not load the model: {rule}. Export it again.")
