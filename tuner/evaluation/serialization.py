"""Outcomes as bytes, from a worker that joined to the coordinator: JSON and arrays, no pickles.

An npz file with the member outcome.json, an array q<k>.npy for the k-th metric, s<k>.npy for the k-th sample, and
scores.npy if there are scores.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Json
from ranktune.tuner.evaluation.task import Outcome
from ranktune.tuner.splits.proof import UNREADABLE

LONGEST = 10_000
"""Characters kept of an error or a warning, and how many warnings are kept."""
RESULT_CAP = 64 * 2**20
"""Bytes that the outcome of one trial may take."""

Number = TypeVar("Number", np.float32, np.float64)
_MEMBER = "outcome.json"


_NUMBERS = ("nonzeros", "bytes", "microseconds", "cost")
_ARRAYS = ("per_query", "scores")
_FIELDS = tuple(field.name for field in fields(Outcome) if field.name not in _ARRAYS)


def pack(outcome: Outcome) -> bytes:
    """Return an outcome as bytes; an outcome above RESULT_CAP becomes a failure."""
    size = sum(np.asarray(a).nbytes for a in outcome.per_query.values())
    size += 0 if outcome.scores is None else outcome.scores.nbytes
    packed = _packed(outcome) if size <= RESULT_CAP else b""
    if size > RESULT_CAP or len(packed) > RESULT_CAP:
        error = f"its result takes {max(size, len(packed)) / 2**20:.0f} MB, more than {RESULT_CAP // 2**20}"
        return _packed(Outcome(error=error, begun=outcome.begun, ended=outcome.ended, worker=outcome.worker))
    return packed


def unpack(packed: bytes) -> Outcome:
    """Return the outcome that was packed; damaged or too many bytes become a failure."""
    try:
        return _unpacked(packed)
    except UNREADABLE as error:
        return Outcome(error=f"its result came back damaged ({type(error).__name__}: {error})")


def _packed(outcome: Outcome) -> bytes:
    about = {name: getattr(outcome, name) for name in _FIELDS} | {"metrics": list(outcome.per_query)}
    arrays = {f"q{k}": np.asarray(values, dtype=np.float64) for k, values in enumerate(outcome.per_query.values())}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MEMBER, json.dumps(about))
        write_arrays(archive, arrays)
        if outcome.scores is not None:
            write_arrays(archive, {"scores": np.asarray(outcome.scores, dtype=np.float32)})
    return buffer.getvalue()


def _unpacked(packed: bytes) -> Outcome:
    if len(packed) > RESULT_CAP:
        raise ValueError(f"{len(packed)} bytes")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        if sum(member.file_size for member in archive.infolist()) > 2 * RESULT_CAP:
            raise ValueError("too large when unpacked")
        about = json.loads(archive.read(_MEMBER))
        names = set(archive.namelist())
        per_query = {str(name): _array(archive, f"q{k}.npy", np.float64) for k, name in enumerate(about["metrics"])}
        outcome = Outcome(
            per_query=per_query,
            scores=_array(archive, "scores.npy", np.float32) if "scores.npy" in names else None,
            **{name: about[name] for name in _FIELDS if name in about},
        )
        return typed(outcome)


def typed(outcome: Outcome) -> Outcome:
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


def write_arrays(archive: zipfile.ZipFile, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays into an npz file, the same bytes for the same arrays.

    np.savez takes no names that are not Python identifiers.
    """
    for name, values in arrays.items():
        member = io.BytesIO()
        np.lib.format.write_array(member, values, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), archive.compression)


def _array(archive: zipfile.ZipFile, name: str, kind: type[Number]) -> NDArray[Number]:
    """Return the array of a member, whose stated size is checked against its bytes first."""
    stored = archive.read(name)
    file = io.BytesIO(stored)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"array format {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype != np.dtype(kind) or len(shape) != 1 or shape[0] * dtype.itemsize != len(stored) - file.tell():
        raise ValueError(f"array of {dtype} {shape}")
    return np.frombuffer(stored, dtype=kind, offset=file.tell()).copy()
