"""What a study decides before its trials, and keeps beside its record: a resumed study goes on by the same.

Where trials are scored: on all folds, or once, on the validation queries as given, or on the first fold. Folds choose
better where fits are cheap; where they would leave time for few fits, a single split leaves time to grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.search.look import Look
from ranktune.tuner.selection.time_reserve import fit_seconds
from ranktune.tuner.splits.proof import Damaged
from ranktune.tuner.splits.sealing import check_sealed, write_sealed
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import Problem

T = TypeVar("T")

LOOKED, SCORED = "look.json", "scored.json"
"""Files beside the record of a split: the first look at the solvers, and whether trials are scored once."""
MIN_FITS, MIN_FITS_DEALT = 10, 3
"""Boosted fits on all folds that the time of a study must have room for: with given validation queries, and without,
where one fold is few queries to choose on."""


def scored_once(path: Path, problem: Problem, study: Study, seconds: float, *, begun: bool) -> bool:
    """Return whether trials are scored once; seconds are those of all workers together.

    Studies that have begun without the decision go on with their folds.
    """
    known = _kept(path / SCORED, lambda text: {"once": True, "folds": False}[text], begun=begun)
    if known is not None:
        return known
    chosen = study.folds is not None or study.repeats > 1 or study.plan != "auto" or study.full
    if begun or chosen or not isinstance(problem.plan, tuple) or not math.isfinite(seconds):
        return False
    parts = 1 if problem.given_split else len(problem.plan)
    needed = MIN_FITS if problem.has_given_queries else MIN_FITS_DEALT
    once = needed * parts * fit_seconds(problem) > seconds
    _keep(path / SCORED, "once" if once else "folds")
    return once


def first_look(path: Path, take: Callable[[], Look | None], *, begun: bool) -> Look | None:
    """Return the first look at the solvers, None without one: that of an earlier run, else what take returns."""
    known = _kept(path / LOOKED, Look.parse, begun=begun)
    if known is not None or begun:
        return known
    found = take()
    if found is not None:
        _keep(path / LOOKED, found.text())
    return found


def _kept(path: Path, parse: Callable[[str], T], *, begun: bool) -> T | None:
    """Return what a file says, None where there is none.

    Raises StudyError where it cannot be read and trials have begun, which were chosen and scored by it.
    """
    try:
        check_sealed(path)
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (Damaged, OSError, ValueError, KeyError, TypeError) as error:
        if begun:
            raise StudyError(
                f"{path}, by which trials were chosen and scored, cannot be read: {error}. Restore it from a backup, "
                "or begin a study of another name."
            ) from error
        return None


def _keep(path: Path, text: str) -> None:
    with writing(path.parent):
        write_sealed(path, text)
