"""The estimated duration of the final stage of a study, and which parts of it fit into the remaining time.

The finalists are rescored on fresh folds, which takes as long as their trials did, and refitted on all queries, trees
with several seeds where queries are few.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import numpy as np

from ranktune.solvers.registry import solver_class
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.candidates import MAX_FINALISTS, PER_SOLVER, Candidate
from ranktune.tuner.statistics.intervals import SIGNIFICANT_Z, z_score
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.problem import Problem

BAG = 5
"""Seeds over which refitted tree models are averaged, where queries are few and one seed is noisy."""
MARGIN = 1.1
"""Safety factor of estimated seconds."""
FIXED, A_QUERY = 1.0, 0.002
"""Seconds of blending and reports, in any case and for each query."""


def fit_in_time(
    places: list[int], found: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline
) -> list[int]:
    """Return those of places that can be rescored and refitted in the remaining time, in their order.

    The best of all comes first, significantly worse ones last; else the best of each solver before its others, and
    cheap before expensive ones, since blends gain from more solvers. Bags of seeds get the time that then remains.
    """
    solvers = [found[k].solver for k in places]
    another = {k: solver in solvers[:place] for place, (k, solver) in enumerate(zip(places, solvers, strict=True))}
    left = (deadline.left - _reporting(problem)) * jobs
    kept = []
    worse = {k: z_score(found[0].vali, found[k].vali) > SIGNIFICANT_Z for k in places}
    for k in sorted(places, key=lambda k: (k != 0, worse[k], another[k], found[k].seconds)):
        cost = MARGIN * found[k].seconds * (_rescore_ratio(problem) + _refit_ratio(problem))
        if cost <= left:
            left -= cost
            kept.append(k)
        elif k == 0:
            return []
    return sorted(kept, key=places.index)


def reserve(problem: Problem, seconds: Mapping[str, float]) -> float:
    """Return the duration of the final stage, in seconds of one worker, estimated from each solver's best trial.

    All of them are rescored, with others that are about as good, and refitted.
    """
    usual = float(np.median(list(seconds.values())))
    others = max(min(MAX_FINALISTS - len(seconds), (PER_SOLVER - 1) * len(seconds)), 0)
    again = (sum(seconds.values()) + others * usual) * _rescore_ratio(problem)
    use = sum(took * (BAG if is_bagged(solver, problem) else 1) for solver, took in seconds.items())
    return _reporting(problem) + MARGIN * (again + use * _refit_ratio(problem))


def _reporting(problem: Problem) -> float:
    return FIXED + A_QUERY * problem.development.n_queries


def _rescore_ratio(problem: Problem) -> float:
    """Return the duration of rescoring relative to a trial."""
    if isinstance(problem.plan, tuple) and isinstance(problem.fresh, tuple):
        return len(problem.fresh) / len(problem.plan)
    return 1.0


def _refit_ratio(problem: Problem) -> float:
    """Return the duration of a refit on all queries with one seed, relative to a trial."""
    folds = len(problem.plan) if isinstance(problem.plan, tuple) else len(problem.plan.orders)
    return 1.25 / folds


def bag_size(plain: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline) -> int:
    """Return the number of seeds of a bag with which all of plain can be refitted in the remaining time."""
    if deadline.left == float("inf"):
        return BAG
    one = {True: 0.0, False: 0.0}
    for candidate in plain:
        one[is_bagged(candidate.solver, problem)] += MARGIN * candidate.seconds * _refit_ratio(problem)
    left = (deadline.left - _reporting(problem)) * jobs - one[False]
    return int(np.clip(left / one[True], 1, BAG)) if one[True] > 0.0 else BAG


def is_bagged(solver: str, problem: Problem) -> bool:
    """Return whether a solver is refitted with a bag of seeds."""
    few = problem.development.n_queries < FEW_QUERIES
    return few and "seeds" in inspect.signature(solver_class(solver)).parameters
