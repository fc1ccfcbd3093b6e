"""Outcomes as bytes, from a worker that joined to the coordinator: JSON and arrays, no pickles.

An archive with a header, an array q<k> for the k-th metric, and scores if there are scores.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.archives import UNREADABLE, read_headed, write_archive
from ranktune.tuner.evaluation.task import TaskOutcome

LONGEST = 10_000
"""Characters kept of an error or a warning, and how many warnings are kept."""


RESULT_CAP = 64 * 2**20
"""Bytes that the outcome of one trial may take."""


_NUMBERS = ("nonzeros", "bytes", "microseconds", "cost")


_ARRAYS = ("per_query", "scores")


_FIELDS = tuple(field.name for field in fields(TaskOutcome) if field.name not in _ARRAYS)


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
