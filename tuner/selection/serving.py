"""The end of a study whose model named systems must load: a copy of the best model, and what the restriction costs.

The best of all may be a blend that a system cannot load. Then a copy of it in one model is made
(`ranktune.tuner.deployment.engines`), and chosen if its loss is not significantly above MAX_LOSS, and the best model
that can be loaded is not better by validation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ranktune.solvers.abilities import IN_WORDS
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, LeftOut, listed, or_left_out, warn
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.models.blend import needs_of
from ranktune.solvers.registry import standard
from ranktune.tuner.deployment.engines import copy_loss, copy_of, is_significant
from ranktune.tuner.evaluation.plans import FinalOutcome
from ranktune.tuner.selection.finals import Candidate, Finalist, entry_of
from ranktune.tuner.selection.rows import DISTILLED, Restriction
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.study.abilities import can_load, is_served
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import SplitProblem

COPY_PASSES = 6
"""Times that all development documents are scored to make a copy and measure its loss: four, and room for its fits."""


@dataclass(frozen=True, eq=False)
class Served:
    """The entries of a split, the chosen one first, and what is needed to say what the restriction costs.

    best  the name of the entry that would be chosen without the restriction
    cost  (n_queries,) what the chosen one scored by validation less what best scored; None if it is the same
    loss  (n_queries,) the metric of best less that of its copy; None if no copy was made
    cost_weights, loss_weights  weights of these queries, None where each counts once
    left_out  what failed
    """

    entries: list[Finalist]
    best: str
    cost: Floats | None = None
    loss: Floats | None = None
    cost_weights: Floats | None = None
    loss_weights: Floats | None = None
    left_out: Sequence[LeftOut] = ()


def unmeasured(entries: list[Finalist], best: str) -> Served:
    """Return the entries of a split of which it is not known what the restriction costs."""
    return Served(entries, best, None if entries[0].candidate.solver == best else np.full(1, np.nan))


def served(
    study: Study, problem: SplitProblem, entries: list[Finalist], unrestricted: Candidate, deadline: Deadline
) -> Served:
    """Return the entries with one that all systems can load first."""
    able = [entry for entry in entries if can_load(study.serve, needs_of(entry.model))]
    others = [entry for entry in entries if entry not in able]
    ordered = [*able, *others]
    best = next((entry for entry in others if entry.candidate.solver == unrestricted.solver), None)
    loss, left_out = None, list[LeftOut]()
    passes, left = COPY_PASSES * problem.development.n_documents, deadline.left
    if best is not None and 1e-6 * passes * best.microseconds < problem.durations.free(left, 1):
        what = f"the copy for {listed(study.serve)}"
        copied = partial(_loss_and_copy, study, problem, best)
        loss, copy = or_left_out(what, copied, (None, None), into=left_out)
        if copy is not None and (not able or copy.candidate.merit >= able[0].candidate.merit):
            ordered = [copy, *ordered]
    first = ordered[0].candidate
    cost = None if first.solver == unrestricted.solver else _difference(first, unrestricted)
    weights = first.weights if cost is not None and len(cost) == len(first.values) else None
    return Served(ordered, unrestricted.solver, cost, loss, weights, problem.development.query_weights, left_out)


def _difference(first: Candidate, second: Candidate) -> Floats:
    """Return what one scored by validation less what other scored, by query; NaN where they were not scored alike."""
    a, b = first.values, second.values
    return a - b if len(a) == len(b) else np.full(max(len(a), 1), np.nan)


def _loss_and_copy(study: Study, problem: SplitProblem, best: Finalist) -> tuple[Floats | None, Finalist | None]:
    """Return the loss of a copy of the model of best by development query, and its entry.

    No loss where there is nothing to copy; no entry where the copy is significantly worse, or cannot be loaded.
    """
    old, development = best.candidate, problem.development
    if development.n_queries < 2:
        return None, None
    try:
        loss = copy_loss(best.model, development, study.serve, study.metric, study.seed)
    except DataError:
        return None, None
    if is_significant(loss, development.query_weights):
        return loss, None
    model = replace(copy_of(best.model, development, study.serve), solver=DISTILLED)
    if not can_load(study.serve, needs_of(model)):
        return loss, None
    # where times are known, no copy scores the earliest queries: they count with the mean loss
    lost = np.where(np.isnan(loss), mean_or_zero(loss, development.query_weights), loss)
    vali = old.vali - lost[problem.validation] if len(old.vali) == len(problem.validation) else old.vali
    rescored = None if old.rescored is None else old.rescored - lost
    candidate = replace(old, solver=DISTILLED, vali=vali, rescored=rescored, value=mean_or_zero(vali, old.vali_weights))
    return loss, entry_of(study, problem, candidate, FinalOutcome(model=model, seconds=best.seconds))


def warn_if_unserved(study: Study, entries: Sequence[Finalist]) -> None:
    """Warn if no system can load the chosen model: only what is known of missing values can be the cause."""
    model = entries[0].model
    for name in study.serve:
        if not can_load([name], needs_of(model)):
            needed = listed(IN_WORDS[need] for need in sorted(needs_of(model)))
            warn(
                f"{name} cannot load {model.solver}, a model of {needed}, nor any other model of this study. Fill "
                "missing values before, or read them by missing='zero'."
            )


def restriction(study: Study, parts: Sequence[Served], generator: np.random.Generator) -> Restriction | None:
    """Return what the systems of a study cost over its splits; None without systems."""
    if not study.serve:
        return None
    costs = [np.zeros(1) if split.cost is None else split.cost for split in parts]
    by_cost, by_loss = [split.cost_weights for split in parts], [split.loss_weights for split in parts]
    losses = [split.loss for split in parts if split.loss is not None]
    measured = all(split.loss is not None for split in parts)
    free = all(split.cost is None for split in parts)
    ((best, _),) = Counter(split.best for split in parts).most_common(1)
    return Restriction(
        systems=tuple(study.serve),
        best=best,
        cost=None if free else stratified_interval(costs, generator, weights=by_cost),
        untried=tuple(name for name in standard() if not is_served(study.serve, name)),
        distilled=all(split.entries[0].candidate.solver == DISTILLED for split in parts),
        loss=stratified_interval(losses, generator, weights=by_loss) if measured else None,
    )
