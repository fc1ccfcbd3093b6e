"""How long the end of a study takes, and what of it there is time for: a guess from what the trials took.

The best are scored again on fresh folds, which takes as long as their trials did, and learnt for use on all queries,
trees with several seeds where queries are few.
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
"""Seeds of which the models of a tree solver are averaged for use, where queries are few.

With few queries one seed alone is noisy. With many it is not, and a bag would only be larger and slower.
"""
MARGIN = 1.1
"""What a guess of seconds is multiplied by before time is promised."""
FIXED, A_QUERY = 1.0, 0.002
"""Seconds that blending and reports take, in any case and for each query: their intervals draw queries anew."""


def fit_in_time(
    places: list[int], found: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline
) -> list[int]:
    """Return those of places that can be scored again and learnt for use in the time that is left, in their order.

    The best of all comes first, what is for sure worse last; else the best of each solver comes before its others, and
    of these what costs least: the more solvers take part, the better is a blend. A bag of seeds is left to what time
    there is then.
    """
    solvers = [found[k].solver for k in places]
    another = {k: solver in solvers[:place] for place, (k, solver) in enumerate(zip(places, solvers, strict=True))}
    left = (deadline.left - _reporting(problem)) * jobs
    kept = []
    behind = {k: z_score(found[0].vali, found[k].vali) > SIGNIFICANT_Z for k in places}
    for k in sorted(places, key=lambda k: (k != 0, behind[k], another[k], found[k].seconds)):
        cost = MARGIN * found[k].seconds * (_again_ratio(problem) + _use_ratio(problem))
        if cost <= left:
            left -= cost
            kept.append(k)
        elif k == 0:
            return []
    return sorted(kept, key=places.index)


def reserve(problem: Problem, seconds: Mapping[str, float]) -> float:
    """Return how long the end takes, in seconds of one worker: a guess from what each solver's best trial took.

    All of them are scored again, with others that are about as good, and learnt for use.
    """
    usual = float(np.median(list(seconds.values())))
    others = max(min(MAX_FINALISTS - len(seconds), (PER_SOLVER - 1) * len(seconds)), 0)
    again = (sum(seconds.values()) + others * usual) * _again_ratio(problem)
    use = sum(took * (BAG if is_bagged(solver, problem) else 1) for solver, took in seconds.items())
    return _reporting(problem) + MARGIN * (again + use * _use_ratio(problem))


def _reporting(problem: Problem) -> float:
    return FIXED + A_QUERY * problem.development.n_queries


def _again_ratio(problem: Problem) -> float:
    """Return how many times the time of a trial its scoring on fresh folds takes."""
    if isinstance(problem.plan, tuple) and isinstance(problem.fresh, tuple):
        return len(problem.fresh) / len(problem.plan)
    return 1.0


def _use_ratio(problem: Problem) -> float:
    """Return how many times the time of a trial learning for use takes, on all queries: of one seed."""
    folds = len(problem.plan) if isinstance(problem.plan, tuple) else len(problem.plan.orders)
    return 1.25 / folds


def bag_size(plain: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline) -> int:
    """Return of how many seeds a bag is, for all of plain to be learnt for use in the time that is left."""
    if deadline.left == float("inf"):
        return BAG
    one = {True: 0.0, False: 0.0}
    for candidate in plain:
        one[is_bagged(candidate.solver, problem)] += MARGIN * candidate.seconds * _use_ratio(problem)
    left = (deadline.left - _reporting(problem)) * jobs - one[False]
    return int(np.clip(left / one[True], 1, BAG)) if one[True] > 0.0 else BAG


def is_bagged(solver: str, problem: Problem) -> bool:
    """Return whether the models of a solver are learnt for use in a bag of seeds."""
    few = problem.development.n_queries < FEW_QUERIES
    return few and "seeds" in inspect.signature(solver_class(solver)).parameters
