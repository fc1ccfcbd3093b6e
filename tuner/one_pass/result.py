"""The result of a pass: the model, its estimate, all configurations and the looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.space import Value
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.one_pass.configurations import Configuration

Z = 1.959964
"""Standard errors of an interval of 95 percent."""


@dataclass
class Entry:
    """A configuration of a pass.

    Attributes
    ----------
    number : int
        Its number, from 0 in the order of joining; a pass that goes on from another one counts on.
    solver, parameters : str and dict
        The solver and its parameters.
    joined : int
        Queries before it joined.
    queries : int
        Queries that it scored and then learned from.
    earlier : int
        Queries that it learned from in earlier passes.
    counted : int
        Those of them that the metric counts.
    mean, low, high : float
        The mean of the metric over these, each before it was learned from, and its 95 percent interval.
    end : str
        Why it ended: "worse", "places", "diverged", or "" if it remained to the end.
    difference, error : float
        At its last look, the mean difference to the best one, paired by query, and its standard error.
    """

    number: int
    solver: str
    parameters: Mapping[str, Value]
    joined: int
    queries: int = 0
    end: str = ""
    difference: float = float("nan")
    error: float = float("nan")
    counted: int = 0
    total: float = field(default=0.0, repr=False)
    squares: float = field(default=0.0, repr=False)
    earlier: int = 0

    @property
    def configuration(self) -> Configuration:
        """The solver with its parameters."""
        return Configuration(self.solver, self.parameters)

    def carried_on(self) -> Self:
        """Return it as it begins in the next pass: its values are those of that pass alone."""
        return type(self)(self.number, self.solver, self.parameters, 0, earlier=self.earlier + self.queries)

    def add(self, values: Floats) -> None:
        """Add its values on further queries, (n,)."""
        known = values[~np.isnan(values)]
        self.queries += len(values)
        self.counted += len(known)
        self.total += float(known.sum())
        self.squares += float((known * known).sum())

    @property
    def mean(self) -> float:
        """The mean of the metric over its queries."""
        return self.total / self.counted if self.counted else float("nan")

    @property
    def _half(self) -> float:
        if self.counted < 2:
            return float("nan")
        spread = max(self.squares - self.total * self.mean, 0.0) / (self.counted - 1)
        return Z * float(np.sqrt(spread / self.counted))

    @property
    def low(self) -> float:
        """The lower limit of the interval."""
        return self.mean - self._half

    @property
    def high(self) -> float:
        """The upper limit of the interval."""
        return self.mean + self._half

    def as_json(self) -> Json:
        """Return everything that restores it."""
        return {**vars(self), "parameters": dict(self.parameters)}


@dataclass(frozen=True, repr=False)
class OnePassResult:
    """The result of `one_pass`.

    Attributes
    ----------
    best_model : LinearModel
        The model of the best configuration, after all training queries.
    best : Entry
        That configuration.
    entries : list of Entry
        All configurations, best first: those that remained to the end, then the others by how far they came.
    looks : list of dict
        The looks: after which query, how many remained, which were dropped and why, which joined.
    metric : str
        The metric.
    test : dict or None
        The metric of best_model on the test queries: mean, low, high (95 percent, over queries), queries; None without
        test queries.
    queries, documents : int
        Training queries and documents.
    """

    best_model: LinearModel
    best: Entry
    entries: list[Entry]
    looks: list[Json]
    metric: str
    test: Json | None
    queries: int
    documents: int

    def __repr__(self) -> str:
        """Return the best configuration and its estimate."""
        test = "" if self.test is None else f", test {self.test['mean']:.4f}"
        return (
            f"OnePassResult({self.best.solver}, best of {len(self.entries)} configurations on {self.queries} queries, "
            f"{self.metric} before learning {self.best.mean:.4f}{test})"
        )

    def as_dict(self) -> Json:
        """Return everything but the model as JSON values, numbers that are not known as None."""
        return {
            "metric": self.metric,
            "queries": self.queries,
            "documents": self.documents,
            "test": self.test,
            "best": self.best.number,
            "configurations": [_plain(entry) for entry in self.entries],
            "looks": self.looks,
        }


def _plain(entry: Entry) -> Json:
    named = "number", "solver", "parameters", "joined", "queries", "earlier", "end"
    about = {name: getattr(entry, name) for name in named}
    numbers = {name: getattr(entry, name) for name in ("mean", "low", "high", "difference", "error")}
    return about | {name: value if np.isfinite(value) else None for name, value in numbers.items()}
