"""Where the time of a study went, by stage and by solver, read from its log of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.events import Event

READING = "reading"
"""The stage before the first event of a stage."""
STAGE = "stage"
"""The event at the begin of a stage; its field "name" names the stage."""


def seconds_by_stage(events: Sequence[JsonView], begun: float, ended: float) -> dict[str, float]:
    """Return the seconds of each stage of a study that ran from begun to ended (seconds since 1970), in order.

    A stage lasts until the next one begins; stages of one name are added.
    """
    begins = [(min(max(_at(event), begun), ended), str(event["name"])) for event in events if event["event"] == STAGE]
    stages: dict[str, float] = {}
    for (start, name), (end, _) in pairwise([(begun, READING), *begins, (ended, "")]):
        stages[name] = stages.get(name, 0.0) + end - start
    return stages


def time_by_solver(events: Sequence[JsonView]) -> dict[str, Json]:
    """Return what the trials of each solver took, in the order in which the solvers were first tried.

    trials counts those that have ended, pruned and failed ones among them; seconds is the sum of their times from begin
    to end, over all workers; best the highest validation value of a trial in full, None without one.
    """
    solver_of: dict[tuple[object, object], str] = {}
    begun: dict[tuple[object, object], float] = {}
    times: dict[str, Json] = {}
    for event in events:
        kind, trial = event["event"], (event.get("split"), event.get("trial"))
        if kind == Event.ASKED:
            solver_of[trial] = event["params"][SOLVER]
            times.setdefault(solver_of[trial], {"trials": 0, "pruned": 0, "failed": 0, "seconds": 0.0, "best": None})
        elif kind == Event.STARTED:
            begun[trial] = _at(event)
        elif kind in (Event.FINISHED, Event.PRUNED, Event.FAILED) and trial in solver_of:
            time = times[solver_of[trial]]
            time["trials"] += 1
            time["pruned"] += kind == Event.PRUNED
            time["failed"] += kind == Event.FAILED
            time["seconds"] += max(_at(event) - begun.pop(trial, _at(event)), 0.0)
            if kind == Event.FINISHED and event.get("value") is not None:
                time["best"] = event["value"] if time["best"] is None else max(time["best"], event["value"])
    return times


def _at(event: JsonView) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()
