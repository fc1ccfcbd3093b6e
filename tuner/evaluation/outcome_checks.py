"""Checks of the value of an objective: the result is always an outcome that can be recorded and compared.

An invalid value makes a failed trial with the reason; none of its values reaches the record or the sampler.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.serialization import LONGEST, typed
from ranktune.tuner.evaluation.task import TaskOutcome

ROUNDING = 1e-9
"""By how much a value may be outside of the range of its metric."""


def checked_outcome(returned: object) -> TaskOutcome:
    """Return what an objective returned with values as float64 arrays, or a failure with the reason."""
    if not isinstance(returned, TaskOutcome):
        return TaskOutcome(error=f"the objective returned {_shown(returned)}, not a TaskOutcome")
    outcome = TaskOutcome()
    try:
        outcome = typed(returned)
        if outcome.error is not None or outcome.given_up:
            return replace(outcome, per_query={}, scores=None)
        values = {str(name): _values(str(name), each) for name, each in returned.per_query.items()}
        return replace(outcome, per_query=values)
    except _InvalidOutcome as fault:
        return failed_outcome(outcome, str(fault))
    except Exception as error:  # reading the fields of an unknown object may raise anything
        return TaskOutcome(error=f"the objective's outcome cannot be read: {type(error).__name__}: {error}"[:LONGEST])


def comparable_outcome(
    outcome: TaskOutcome, metric: str, counted: NDArray[np.bool_] | None, weights: Floats | None = None
) -> TaskOutcome:
    """Return a checked outcome, or a failure if its values cannot be compared to those of other trials.

    `counted`, (n_queries,), is which validation queries the metric does not skip, by the first finished trial; None
    before that. `weights`, (n_queries,), are those of the validation queries, None if they have none.
    """
    if outcome.error is not None or outcome.given_up:
        return outcome
    if metric not in outcome.per_query:
        names = ", ".join(sorted(map(str, outcome.per_query))) or "nothing"
        return failed_outcome(outcome, f"{metric} is not among what the objective returned: {names}")
    present = ~np.isnan(outcome.per_query[metric])
    if not present.any():
        return failed_outcome(outcome, f"{metric} is not a finite number on the validation queries")
    lengths = {len(values) for values in (*outcome.per_query.values(), counted) if values is not None}
    if len(lengths) > 1:
        what = " or ".join(map(str, sorted(lengths - {len(present)}))) or len(present)
        return failed_outcome(outcome, f"{metric} has {len(present)} values, where other metrics or trials have {what}")
    if weights is not None and len(present) != len(weights):
        return failed_outcome(outcome, f"{metric} has {len(present)} values for {len(weights)} validation queries")
    if counted is not None and outcome.stopped and not (present & ~counted).any():
        return outcome
    if counted is not None and (present != counted).any():
        return failed_outcome(
            outcome,
            f"{metric} is no number on {int((counted & ~present).sum())} queries that it judges in other trials, "
            f"and one on {int((present & ~counted).sum())} that it skips there",
        )
    return outcome


def failed_outcome(outcome: TaskOutcome, error: str) -> TaskOutcome:
    """Return an outcome as that of a failed trial."""
    return replace(outcome, per_query={}, scores=None, error=error)


class _InvalidOutcome(Exception):
    """A result that is no outcome."""


def _values(name: str, returned: object) -> Floats:
    """Return the values of a metric, (n_queries,). Raises _InvalidOutcome if they are not real numbers."""
    values = np.asarray(returned)
    if values.dtype.kind not in "fiub":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "O": "objects"}
        raise _InvalidOutcome(
            f"{name} must be a number for each query, and is {kinds.get(values.dtype.kind, values.dtype)}"
        )
    if values.ndim != 1:
        raise _InvalidOutcome(f"{name} must be one number for each query, and has the shape {values.shape}")
    numbers: Floats = values.astype(np.float64)
    if np.isinf(numbers).any():
        raise _InvalidOutcome(f"{name} is infinite on {int(np.isinf(numbers).sum())} of {len(numbers)} queries")
    with suppress(ParameterError):  # a name that an objective made up
        low, high = parse_metric(name).range
        outside = numbers[(numbers < low - ROUNDING) | (numbers > high + ROUNDING)]
        if len(outside):
            raise _InvalidOutcome(
                f"{name} is {outside[0]:g} on a query, and {len(outside)} of {len(numbers)} are outside of its range, "
                f"{low:g} to {high:g}"
            )
    return numbers


def _shown(value: object) -> str:
    """Return a short description of a value."""
    if value is None:
        return "nothing"
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return f"a {type(value).__name__}, {text if len(text) <= 60 else text[:57] + '...'}"
