"""The estimated duration of the final stage of a study, and which parts of it fit into the remaining time.

In its full form the candidates that may still win are rescored on fresh folds, which takes as long as their trials did,
and refitted on all queries, trees with several seeds. In its cheapest form, that of expensive trials, the models and
the scores that the trials left are used as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import numpy as np

from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.models import has_model
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.candidates import MAX_FINALISTS, PER_SOLVER, Candidate, task_of
from ranktune.tuner.statistics.intervals import SIGNIFICANT_Z, z_score
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem

BAG, UNTIMED_BAG = 5, 3
"""Seeds over which refitted tree models are averaged, where queries are few: with a time limit, and without."""
MAX_BAG = 10
"""The most seeds, which time that nothing else has used pays for."""
MARGIN = 1.1
"""Safety factor of estimated seconds."""
FIXED, A_QUERY, A_DOCUMENT = 0.5, 0.0007, 6e-6
"""Seconds of blending and reports, in any case, for each query and for each document."""
FIT_SECONDS_A_CELL = 2.5e-6
"""Rough seconds of boosting until it stops, for each feature of each document: the median of LambdaMART's defaults on
sixteen generated tasks."""
END_SHARE = 0.4
"""The largest share of the time of a study that is reserved for its final stage."""


def fit_in_time(
    places: list[int], candidates: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline
) -> list[int]:
    """Return those of places that can be rescored and refitted in the remaining time, in their order.

    They are the best of each solver, and others while there is time, cheap ones first. None if the best of some solver
    does not fit: a blend would miss it, and gains more from another solver than from fresh folds. Bags of seeds get the
    time that then remains.
    """
    solvers = [candidates[k].solver for k in places]
    another = {k: solver in solvers[:place] for place, (k, solver) in enumerate(zip(places, solvers, strict=True))}
    left = (deadline.left - reporting(problem)) * jobs
    kept = []
    for k in sorted(places, key=lambda k: (another[k], candidates[k].seconds)):
        cost = MARGIN * candidates[k].seconds * (rescore_ratio(problem) + refit_ratio(problem))
        if cost <= left:
            left -= cost
            kept.append(k)
        elif not another[k]:
            return []
    return sorted(kept, key=places.index)


def reserve(problem: Problem, total: float, seconds: Mapping[str, float], growing: bool = False) -> float:
    """Return the duration of the final stage, in seconds of one worker, by the seconds of each solver's best trial.

    The solvers are in their order, the best first; total is the seconds of the study with all its workers. growing is
    whether first configurations of boosting are still to come, which gain more than bags of seeds. The result is the
    duration of the fullest form that takes at most a share of the total: all solvers rescored and refitted, with bags
    of seeds while the share lasts; with few queries all solvers refitted, else the best alone rescored and refitted, or
    refitted; or the models of the trials as they are.
    """
    took = list(seconds.values())
    if not took:
        return reporting(problem)
    rescore, refit = rescore_ratio(problem), refit_ratio(problem)
    if total == float("inf"):  # without a time limit nothing is rescored
        rescore = 0.0
    others = max(min(MAX_FINALISTS - len(took), (PER_SOLVER - 1) * len(took)), 0)
    bags = sum(each * (BAG if is_bagged(solver, problem) and not growing else 1) for solver, each in seconds.items())
    best, limit = took[0], max(END_SHARE * total / MARGIN, 0.0)  # reading may have taken all of the time
    if growing and refit * fit_seconds(problem) > limit:
        return reporting(problem)  # models of the trials will be used as they are: the longer these grow, the better
    full = (sum(took) + others * float(np.median(took))) * rescore + bags * refit
    if sum(took) * (rescore + refit) <= limit:
        return reporting(problem) + MARGIN * min(full, limit)
    if problem.development.n_queries < FEW_QUERIES:
        return reporting(problem) + MARGIN * min(bags * refit, limit)
    forms = (best * (2.0 * rescore + refit), best * refit, 0.0)
    return reporting(problem) + MARGIN * next(form for form in forms if form <= limit)


def fit_seconds(problem: Problem) -> float:
    """Return the rough seconds of a boosted fit until it stops."""
    return cells(problem) * FIT_SECONDS_A_CELL


def cells(problem: Problem) -> int:
    """Return the stored features of the development documents."""
    features = problem.development.features
    return int(features.size if isinstance(features, np.ndarray) else features.nnz)


def reporting(problem: Problem) -> float:
    """Return the seconds of what follows the refit."""
    documents = problem.development.n_documents + (0 if problem.test is None else problem.test.n_documents)
    return FIXED + A_QUERY * problem.development.n_queries + A_DOCUMENT * documents


def rescore_ratio(problem: Problem) -> float:
    """Return the duration of rescoring relative to a trial; 0 where there is no fresh plan."""
    if not problem.fresh:
        return 0.0
    if isinstance(problem.plan, tuple) and isinstance(problem.fresh, tuple):
        return len(problem.fresh) / len(problem.plan)
    return 1.0


def refit_ratio(problem: Problem) -> float:
    """Return the duration of a refit on all queries with one seed, relative to a trial."""
    folds = len(problem.plan) if isinstance(problem.plan, tuple) else len(problem.plan.orders)
    return 1.25 / folds


def fit_for_use(
    plain: Sequence[Candidate], needed: int, study: Study, problem: Problem, jobs: int, deadline: Deadline
) -> tuple[list[Candidate], list[Candidate], int]:
    """Return the candidates to refit, those whose trials' models are used as they are, and the seeds of a bag.

    The first `needed` of plain are the parts of the chosen candidate. They are refitted in their order while there is
    time, and the others after them, unless they are significantly worse. A part whose trial left no model is refitted
    in any case.
    """
    left = (deadline.left - reporting(problem)) * jobs
    refitted, as_left = [], []
    for place, candidate in enumerate(plain):
        part, cost = place < needed, MARGIN * candidate.seconds * refit_ratio(problem)
        has_fit = has_model(task_of(study, problem, candidate, study.seed))
        behind = not part and has_fit and z_score(plain[0].vali, candidate.vali, candidate.vali_weights) > SIGNIFICANT_Z
        if cost * jobs <= left and not behind:  # a fit cannot be divided among the jobs
            left -= cost
            refitted.append(candidate)
        elif has_fit:
            as_left.append(candidate)
        elif part:
            refitted.append(candidate)
    return refitted, as_left, bag_size(refitted, problem, jobs, deadline)


def bag_size(plain: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline) -> int:
    """Return the number of seeds of a bag with which all of plain can be refitted in the remaining time.

    Without a deadline, models of one solver that are blended anyway share the seeds of a bag.
    """
    bags = [candidate for candidate in plain if is_bagged(candidate.solver, problem)]
    if deadline.left == float("inf"):
        most = max((sum(bag.solver == other.solver for bag in bags) for other in bags), default=1)
        return max(UNTIMED_BAG // most, 1)
    seconds = MARGIN * refit_ratio(problem) * sum(candidate.seconds for candidate in bags)
    others = MARGIN * refit_ratio(problem) * sum(candidate.seconds for candidate in plain if candidate not in bags)
    left = (deadline.left - reporting(problem)) * jobs - others
    return int(np.clip(left / seconds, 1, MAX_BAG)) if seconds > 0.0 else BAG


def is_bagged(solver: str, problem: Problem) -> bool:
    """Return whether a solver is refitted with a bag of seeds."""
    few = problem.development.n_queries < FEW_QUERIES
    return few and has_seeds(solver)


def has_seeds(solver: str) -> bool:
    """Return whether a solver can average several seeds."""
    return "seeds" in inspect.signature(solver_class(solver)).parameters
