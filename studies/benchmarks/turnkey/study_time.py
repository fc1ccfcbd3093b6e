"""Where the time of a study went, by stage and by solver, read from its log of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.events import Event

READING, SEARCH, ENDING, REPORTING = "reading", "search", "rescoring, blending, refitting", "reporting"
STAGE = "stage"
"""The event at the begin of a stage; its field "name" names the stage."""

_ENDS = (Event.FINISHED, Event.PRUNED, Event.FAILED)


@dataclass
class SolverTime:
    """What the trials of one solver took.

    trials   that have ended; pruned and failed are among them
    seconds  sum of their times from begin to end, over all workers
    best     highest validation value of a trial in full, None without one
    """

    trials: int = 0
    pruned: int = 0
    failed: int = 0
    seconds: float = 0.0
    best: float | None = None


def seconds_by_stage(events: Sequence[JsonView], begun: float, ended: float) -> dict[str, float]:
    """Return the seconds of each stage of a study that ran from begun to ended (seconds since 1970), in order.

    A stage lasts until the next one begins; stages of one name are added. A log without events of stages gives those
    that its other events tell apart.
    """
    begins = [(_at(event), str(event["name"])) for event in events if event["event"] == STAGE] or _derived(events)
    times = [begun, *(min(max(at, begun), ended) for at, _ in begins), ended]
    names = [READING, *(name for _, name in begins)]
    stages: dict[str, float] = {}
    for name, start, end in zip(names, times, times[1:], strict=False):
        stages[name] = stages.get(name, 0.0) + max(end - start, 0.0)
    return stages


def _derived(events: Sequence[JsonView]) -> list[tuple[float, str]]:
    """Return where the stages begin, by the events of the study and its trials."""
    begins = []
    trials_end = max((_at(event) for event in events if event["event"] in _ENDS), default=None)
    for event in events:
        if event["event"] == Event.STUDY_STARTED:
            begins.append((_at(event), SEARCH))
        if event["event"] == Event.STUDY_FINISHED:
            begins.append((_at(event), REPORTING))
    if trials_end is not None:
        begins.append((trials_end, ENDING))
    return sorted(begins)


def time_by_solver(events: Sequence[JsonView]) -> dict[str, SolverTime]:
    """Return what the trials of each solver took, in the order in which the solvers were first tried."""
    solver_of: dict[tuple[object, object], str] = {}
    begun: dict[tuple[object, object], float] = {}
    found: dict[str, SolverTime] = {}
    for event in events:
        trial = event.get("split"), event.get("trial")
        if event["event"] == Event.ASKED:
            solver_of[trial] = event["params"][SOLVER]
            found.setdefault(solver_of[trial], SolverTime())
        elif event["event"] == Event.STARTED:
            begun[trial] = _at(event)
        elif event["event"] in _ENDS and trial in solver_of:
            _add(found[solver_of[trial]], event, begun.pop(trial, _at(event)))
    return found


def _add(own: SolverTime, ended: JsonView, begun: float) -> None:
    own.trials += 1
    own.seconds += max(_at(ended) - begun, 0.0)
    own.pruned += ended["event"] == Event.PRUNED
    own.failed += ended["event"] == Event.FAILED
    value = ended.get("value")
    if ended["event"] == Event.FINISHED and value is not None and (own.best is None or value > own.best):
        own.best = value


def _at(event: JsonView) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()


def as_json(times: dict[str, SolverTime]) -> Json:
    """Return the times by solver as JSON values."""
    return {name: vars(own) for name, own in times.items()}
