"""Metrics that the user defines: a function of the grades of a query in ranking order.

A package offers metrics by the entry-point group ranktune.metrics: the function
under the name of the metric, with an attribute cutoff where it takes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.table import is_path, named, path_of
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.kernels import WHOLE, rank
from ranktune.solvers.metrics.presets import CUSTOM, MEASURES, read_name

TIES = ("pessimistic", "optimistic", "input", "reverse")
"""Orders of documents with equal scores, the default first."""
CUTOFFS = ("none", "optional", "required")


@dataclass(frozen=True)
class CustomMetric:
    """A metric of the user's: its name, function(grades) or function(grades, k), and whether it takes a cutoff.

    Raises ParameterError for a name that no spelling of a metric can have, or that has a meaning already.
    """

    name: str
    function: Callable[..., float]
    cutoff: str = "none"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"ties": TIES}
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        """Check every field and give the name its one spelling."""
        spelt = str(self.name).lower().replace("_", "-")
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", spelt):
            raise ParameterError(
                f"name={self.name!r}: the name of a metric must be letters and digits, with single hyphens between "
                "them, such as 'success' or 'click-gain'."
            )
        meaning = read_name(str(self.name).lower()).measure  # P_10 is another spelling of a measure
        if spelt in MEASURES or meaning != spelt:
            raise ParameterError(f"name={self.name!r}: that is the metric '{meaning}' already. Choose another name.")
        if not callable(self.function):
            raise ParameterError(f"the function of the metric '{spelt}' is {self.function!r}: it must be callable.")
        if self.cutoff not in CUTOFFS:
            raise ParameterError(f"cutoff={self.cutoff!r}: it must be one of {', '.join(CUTOFFS)}.")
        object.__setattr__(self, "name", spelt)

    def per_query(self, scores: Floats, judgements: Judgements, at: int | None, ties: str) -> Floats:
        """Return the value of each query, (n_queries,), NaN where the function returned it.

        Raises DataError where it returned no number, or infinity.
        """
        order = rank(scores, judgements.tiebreak(ties), judgements.starts, WHOLE)
        ranked = judgements.grades[order]
        ranked.setflags(write=False)
        more = () if self.cutoff == "none" else (at,)
        values = np.empty(len(judgements.lengths))
        for q, (first, stop) in enumerate(zip(judgements.starts[:-1], judgements.starts[1:], strict=True)):
            values[q] = self._checked(self.function(ranked[first:stop], *more))
        return values

    def _checked(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.inf
        if np.isinf(number):
            raise DataError(
                f"the metric '{self.name}' returned {str(value)[:40]!r} for a query: it must return a finite number, "
                "or NaN to skip the query."
            )
        return number


def metric_at(path: str) -> str | None:
    """Make a function at an import path, module:function, a metric, and return its name; None if there is none."""
    if not is_path(path):
        return None
    try:
        function = named(path)
    except ParameterError:  # such as a convention: ndgc:letor
        return None
    metric = custom_metric(path.rpartition(":")[2].rpartition(".")[2], function)
    CUSTOM[metric.name] = metric
    return metric.name


def custom_metric(name: str, function: Any) -> CustomMetric:
    """Return the metric of a function, whose attribute cutoff says whether it takes one."""
    return CustomMetric(name, function, getattr(function, "cutoff", "none"))


def described_metric(metric: CustomMetric) -> Json:
    """Return a metric as JSON; a function without an import path is empty there."""
    return {"function": path_of(metric.function), "cutoff": metric.cutoff}


def restore_metric(name: str, description: JsonView) -> None:
    """Make a described metric known again, unless it is. Raises ParameterError that says what is missing."""
    if name in CUSTOM:
        return
    path = str(description.get("function", ""))
    if not is_path(path):
        raise ParameterError(
            f"the metric '{name}' is not registered here, and its function has no import path, because it was defined "
            "in a script, a notebook or another function. Call register_metric in Python as before, and then "
            "ranktune.resume."
        )
    function = named(path)
    if name not in CUSTOM:  # importing its module may have registered it
        CUSTOM[name] = CustomMetric(name, function, str(description.get("cutoff", "none")))
