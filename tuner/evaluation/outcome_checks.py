"""Checks of the value of an objective, and outcomes as bytes from a worker that joined to the coordinator.

The result of a check is always an outcome that can be recorded and compared. An invalid value makes a failed trial with
the reason; none of its values reaches the record or the sampler.

The bytes are JSON and arrays, no pickles: an archive with a header, an array q<k> for the k-th metric, and scores if
there are scores.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import Damaged, ParameterError
from ranktune.solvers.core.files.archives import UNREADABLE, read_headed, write_archive
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.task import TaskOutcome

ROUNDING = 1e-9
"""By how much a value may be outside of the range of its metric."""
LONGEST = 10_000
"""Characters kept of an error or a warning, and how many warnings are kept."""
RESULT_CAP = 64 * 2**20
"""Bytes that the outcome of one trial may take."""
_NUMBERS = ("nonzeros", "bytes", "microseconds", "cost")
_ARRAYS = ("per_query", "scores")
_FIELDS = tuple(field.name for field in fields(TaskOutcome) if field.name not in _ARRAYS)


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


def pack(outcome: TaskOutcome) -> bytes:
    """Return an outcome as bytes; an outcome above RESULT_CAP becomes a failure."""
    size = sum(np.asarray(a).nbytes for a in outcome.per_query.values())
    size += 0 if outcome.scores is None else outcome.scores.nbytes
    packed = _packed(outcome) if size <= RESULT_CAP else b""
    if size > RESULT_CAP or len(packed) > RESULT_CAP:
        error = f"its result takes {max(size, len(packed)) / 2**20:.0f} MB, more than {RESULT_CAP // 2**20}"
        return _packed(TaskOutcome(error=error, begun=outcome.begun, ended=outcome.ended, worker=outcome.worker))
    return packed


def unpack(packed: bytes) -> TaskOutcome:
    """Return the outcome that was packed; damaged or too many bytes become a failure."""
    try:
        return _unpacked(packed)
    except (Damaged, *UNREADABLE) as error:
        return TaskOutcome(error=f"its result came back damaged ({type(error).__name__}: {error})")


def _packed(outcome: TaskOutcome) -> bytes:
    about = {name: getattr(outcome, name) for name in _FIELDS} | {"metrics": list(outcome.per_query)}
    arrays = {f"q{k}": np.asarray(values, dtype=np.float64) for k, values in enumerate(outcome.per_query.values())}
    if outcome.scores is not None:
        arrays["scores"] = np.asarray(outcome.scores, dtype=np.float32)
    return write_archive(arrays, about, small=True)


def _unpacked(packed: bytes) -> TaskOutcome:
    about, arrays = read_headed(packed, 2 * RESULT_CAP)
    if any(array.dtype.kind != "f" or array.ndim != 1 for array in arrays.values()):
        raise ValueError("it holds other arrays than scores")
    per_query = {str(name): arrays[f"q{k}"] for k, name in enumerate(about["metrics"])}
    numbers = {name: about[name] for name in _FIELDS if name in about}
    return typed(TaskOutcome(per_query, scores=arrays.get("scores"), **numbers))


def typed(outcome: TaskOutcome) -> TaskOutcome:
    """Return an outcome with all fields but its arrays converted to their types; what is no number is none."""
    about: Json = {name: _number(getattr(outcome, name), float("nan")) for name in _NUMBERS}
    about |= {name: _number(getattr(outcome, name), 0.0) for name in ("seconds", "bulk")}
    begun, ended = (_number(moment, 0.0) for moment in (outcome.begun, outcome.ended))
    about |= {"begun": begun, "ended": ended} if 0.0 <= begun <= ended < 1e11 else {"begun": 0.0, "ended": 0.0}
    about["error"] = None if outcome.error is None else str(outcome.error)[:LONGEST]
    about["warnings"] = tuple(str(warning)[:LONGEST] for warning in outcome.warnings[:LONGEST])
    about["steps"] = tuple((_number(at, 0.0), str(what), _number(v, float("nan"))) for at, what, v in outcome.steps)
    for name in ("path", "learning_curve"):
        points = getattr(outcome, name)
        about[name] = tuple((float(v), scored) for v, s in points if (scored := _number(s, math.nan)) == scored)
    about["chosen"] = None if outcome.chosen is None else float(outcome.chosen)
    about |= {name: str(getattr(outcome, name))[:LONGEST] for name in ("path_parameter", "stopped", "worker")}
    about |= {name: bool(getattr(outcome, name)) for name in ("given_up", "unfinished")}
    return replace(outcome, **about, restarts=0)


def _number(value: object, otherwise: float) -> float:
    """Return a finite number as a float, `otherwise` for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return number if math.isfinite(number) else otherwise
