"""The gain of tuning: the delivered model against the best of the solvers' defaults, on the test queries.

Defaults are all that a study tries first, the portfolios. The best of them is that by validation, fitted to the same
queries as the delivered model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.refit import refit, score_on
from ranktune.tuner.selection.candidates import Candidate, task_of
from ranktune.tuner.selection.finals import Entry
from ranktune.tuner.selection.results import TuningGain
from ranktune.tuner.selection.time_reserve import MARGIN, refit_ratio, reporting
from ranktune.tuner.statistics.comparisons import compare_splits
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.workers.executor import Executor


@dataclass(frozen=True, eq=False)
class DefaultModel:
    """The best of the defaults of a split: its solver, its values by test query, and whether it is delivered."""

    solver: str
    test: Floats
    is_delivered: bool


def default_model(
    study: Study, problem: Problem, default: Candidate | None, chosen: Entry, executor: Executor, deadline: Deadline
) -> DefaultModel | None:
    """Return the best default with its values on the test queries; None without them, or without time to fit it."""
    if default is None or problem.test is None:
        return None
    if chosen.candidate.solver == default.solver and _without_bag(chosen.candidate, default) == dict(default.params):
        return DefaultModel(default.solver, chosen.test[study.metric], is_delivered=True)
    if MARGIN * default.seconds * refit_ratio(problem) > deadline.left - reporting(problem):
        return None
    scored = executor.submit(_scored, study, problem, default)
    if scored.exception() is not None:  # the study does not fail by a model that it does not deliver
        return None
    return DefaultModel(default.solver, scored.result(), is_delivered=False)


def tuning_gain(
    defaults: Sequence[DefaultModel | None],
    chosen: Sequence[Floats],
    generator: np.random.Generator,
    weights: Sequence[Floats | None] | None = None,
) -> TuningGain | None:
    """Return what the chosen models gain over the best defaults; None where some split has none.

    chosen holds the values of the chosen model by test query, one array a split, and weights those of these queries.
    """
    known = [own for own in defaults if own is not None]
    if not known or len(known) < len(defaults):
        return None
    (name, _), *_ = Counter(own.solver for own in known).most_common(1)
    if all(own.is_delivered for own in known):
        return TuningGain(name, None, None)
    found = compare_splits(chosen, [own.test for own in known], generator, weights=weights)
    return TuningGain(name, Interval(found.difference, found.low, found.high), found.p_randomisation)


def _without_bag(chosen: Candidate, default: Candidate) -> dict[str, Value]:
    """Return the parameters of the chosen candidate without the seeds of a bag, unless seeds are tuned."""
    return {name: value for name, value in chosen.params.items() if name != "seeds" or name in default.params}


def _scored(study: Study, problem: Problem, default: Candidate) -> Floats:
    """Fit a default to the queries that the delivered model is fitted to, and return its values by test query."""
    on_everything = study.refit or not problem.given_split
    made = refit(task_of(study, problem, default, study.seed), on_everything=on_everything)
    assert problem.test is not None
    return score_on(made.model, problem.test, (study.metric,))[study.metric]
