"""The blends of a split, and its candidates with their final models, scored on test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.abilities import LINEAR, LIST, TREES
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import warn
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import linearised, mean_or_zero
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.names import ONE_COLUMN
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.evaluate import evaluate
from ranktune.tuner.evaluation.feature_costs import solver_parameters
from ranktune.tuner.evaluation.models import microseconds_a_document
from ranktune.tuner.evaluation.plans import Final, FinalOutcome
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.policy.blends import (
    Blend,
    Blends,
    first_elsewhere,
    first_unless_better,
    nested_choice,
    scale,
    without_luck,
)
from ranktune.tuner.selection.rows import BASELINE, BLEND, LINEAR_BLEND, TREE_BLEND
from ranktune.tuner.splits.forward import blocks
from ranktune.tuner.splits.gaps import gap_of
from ranktune.tuner.splits.plans import Fold, query_folds
from ranktune.tuner.statistics.pareto import Option, best_within
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import SplitProblem


@dataclass(frozen=True, eq=False)
class ScoredRanking:
    """What a ranking scored by query on one split: by validation, and on test.

    test is metric -> (n,), empty without test queries; test_weights, (n,), are those of these queries, None where each
    counts once.
    """

    candidate: Candidate
    test: Mapping[str, Floats]
    test_weights: Floats | None


@dataclass(frozen=True, eq=False)
class Finalist(ScoredRanking):
    """A refitted candidate with its model; cost is what the features of the model cost, None without costs."""

    model: Model
    microseconds: float
    seconds: float
    cost: float | None = None


@dataclass(frozen=True, eq=False)
class FinalChoice:
    """One candidate a solver, and blends, the chosen one first, then by merit.

    unrestricted is the one that would be chosen if no system had to load it; candidates are all that were compared.
    nested is what the choice made without a query's fold scored on it, (n_queries,); None where nothing was blended.
    """

    ordered: Sequence[Candidate]
    unrestricted: Candidate
    candidates: Sequence[Candidate]
    nested: Floats | None = None


def with_blends(study: Study, problem: SplitProblem, candidates: Sequence[Candidate]) -> FinalChoice:
    """Return the choice among the candidates and their blends.

    The blend of all, whose members differ most, is chosen unless cross-validation prefers the blend of a family or a
    single candidate, with few queries by `Blending.other`.
    """
    best, count = best_by_solver(candidates), problem.policy.scoring.folds
    scored = [candidate for candidate in candidates if candidate.scores is not None]
    fresh = any(candidate.rescored is not None for candidate in scored)
    queries = problem.development if fresh else problem.validation_queries
    if len(scored) < 2 or queries.n_queries < 2 * count:
        return FinalChoice(best, best[0], candidates)
    if queries.times is None:
        folds = query_folds(queries, count, study.seed, stream=5)
    else:
        folds = blocks(queries, count, gap_of(study.gap, queries))
    mixed = _blends(study, problem, scored, queries, folds)
    if not mixed:
        return FinalChoice(best, best[0], candidates)
    weights, needed = queries.query_weights, problem.policy.blend.other
    alone = nested_choice(np.stack([candidate.values for candidate in scored]), folds, weights)

    def first_of(blends: Sequence[Candidate]) -> Candidate:
        place = first_unless_better([*(blend.values for blend in blends), alone], weights, problem.policy, needed)
        return blends[place] if place < len(blends) and len(blends[place].members) > 1 else best[0]

    able = [blend for blend in mixed if can_load(study.serve, blend.parts)]
    nested = first_elsewhere([*(blend.values for blend in able), alone], folds, weights, problem.policy, needed)
    first = first_of(able)
    unrestricted = first_of(mixed) if study.serve else first
    ordered = sorted([*best, *mixed], key=lambda candidate: candidate.merit, reverse=True)
    leading = list(dict.fromkeys((first, unrestricted)))
    return FinalChoice([*leading, *(c for c in ordered if c not in leading)], unrestricted, candidates, nested)


def blended_candidates(study: Study, problem: SplitProblem, candidates: Sequence[Candidate]) -> FinalChoice:
    """Return the result of with_blends, blends among the candidates, all without scores to save memory."""
    choice = with_blends(study, problem, candidates)
    light = {candidate: replace(candidate, scores=None) for candidate in candidates}
    blends = [candidate for candidate in choice.ordered if candidate.members]
    light |= {blend: replace(blend, members=tuple(light[member] for member in blend.members)) for blend in blends}
    ordered = [light[candidate] for candidate in choice.ordered]
    return FinalChoice(ordered, light[choice.unrestricted], list(light.values()), choice.nested)


def _blends(
    study: Study, problem: SplitProblem, scored: Sequence[Candidate], queries: Queries, folds: Sequence[Fold]
) -> list[Candidate]:
    """Return blends of the candidates, of two at least: of all, of those of trees, and of the linear ones."""
    able = [c for c in scored if c.scores is not None and LIST not in c.parts and c.solver != ONE_COLUMN]
    # Scores that overflow single precision have no usable scale.
    able = [c for c in able if c.scores is not None and np.isfinite(c.scores).all()]
    able = [c for c in able if c.scores is not None and scale(c.scores, queries) > 0.0]
    if not able:
        return []
    scaled = np.stack([c.scores / np.float32(scale(c.scores, queries)) for c in able if c.scores is not None])
    groups = [(LINEAR if candidate.parts == {LINEAR} else TREES, candidate.solver) for candidate in able]
    first = {k: candidate.values for k, candidate in enumerate(able) if candidate.is_first}
    metric = parse_metric(study.metric)
    blends = Blends(scaled, groups, queries, metric, folds, problem.policy, first)
    linear, trees = ([k for k, c in enumerate(able) if c.parts == {kind}] for kind in (LINEAR, TREES))
    mixes = [(BLEND, list(range(len(able))))] if len(able) > len(linear) else []
    mixes += [(TREE_BLEND, trees), (LINEAR_BLEND, linear)]
    weights = queries.query_weights
    mixed = [
        _blend(label, able, blends.of(models), blends.alone, metric, weights)
        for label, models in mixes
        if len(models) > 1
    ]
    if mixed and mixed[0].solver == BLEND and mixed[0].parts == {TREES}:  # then it is that of the trees
        mixed = [blend for blend in mixed if blend.solver != TREE_BLEND]
    # A single model is not a blend; with several splits it stays, so that the row has a mean over them.
    # Weights of features that are scaled by query cannot be added to others'; blends were no worse without.
    return [blend for blend in mixed if len(blend.members) > 1 or problem.name]


def _blend(
    label: str, able: Sequence[Candidate], blend: Blend, alone: Floats, metric: Metric, weights: Floats | None
) -> Candidate:
    places = [k for k in np.argsort(-blend.shares, kind="stable") if blend.shares[k] > 0.0]
    members = tuple(able[k] for k in places)
    shares = dict(zip(_names(members), (float(round(blend.shares[k], 6)) for k in places), strict=True))
    lead = blend.shares @ (alone - np.stack([each.values for each in able]))
    values = without_luck(blend.per_query, lead, metric, weights)
    if able[0].rescored is not None:
        return Candidate(
            label, shares, float("nan"), np.empty(0), 0, rescored=values, members=members, rescored_weights=weights
        )
    value = mean_or_zero(values, weights)
    return Candidate(label, shares, value, values, 0, members=members, vali_weights=weights)


def _names(members: Sequence[Candidate]) -> list[str]:
    """Return a name for each member: its solver, and which of them where there are several."""
    solvers = [member.solver for member in members]
    counts = [solvers[: k + 1].count(solver) for k, solver in enumerate(solvers)]
    return [solver if count == 1 else f"{solver} {count}" for solver, count in zip(solvers, counts, strict=True)]


def parts_of(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that are fitted for those that are chosen, each once."""
    return list(dict.fromkeys(member for candidate in chosen for member in candidate.members or (candidate,)))


def is_within(study: Study, entry: Finalist) -> bool:
    """Return whether the model of an entry keeps the limits of a study."""
    (_, value), model = entry.candidate.merit, entry.model
    solver, timed = entry.candidate.solver, entry.microseconds
    option = Option(solver, value, model.nonzeros, model.bytes, timed, entry.seconds, entry.cost)
    return best_within([option], study.limits) is not None


def keep_within(study: Study, entries: list[Finalist]) -> list[Finalist]:
    """Return the entries whose refitted models keep the limits; all, with a warning, if none does."""
    within = [entry for entry in entries if is_within(study, entry)]
    if not within:
        warn(
            "refitted on more queries, no model keeps within the limits, which all of them kept in their trials. "
            "Lower the limits a little."
        )
    return within or entries


def build_model(
    candidate: Candidate, models: Mapping[Candidate, FinalOutcome], problem: SplitProblem
) -> FinalOutcome | None:
    """Return the model of a candidate, blended from its members; None if the refit of one failed."""
    if not candidate.members:
        return models.get(candidate)
    if not all(member in models for member in candidate.members):
        return None
    refitted = [models[member] for member in candidate.members]
    spreads = [_spread(made, problem) for made in refitted]
    shares = [float(share) for share in candidate.params.values()]  # type: ignore[arg-type]
    factors = [share / spread if spread > 0.0 else 0.0 for share, spread in zip(shares, spreads, strict=True)]
    model = blended([made.model for made in refitted], factors, candidate.solver, candidate.params)
    seconds = sum(made.seconds for made in refitted)
    return FinalOutcome(model=model, seconds=seconds, on_everything=all(made.on_everything for made in refitted))


def _spread(made: FinalOutcome, problem: SplitProblem) -> float:
    """Return the spread of a model's scores, on the validation queries where it was not fitted to them."""
    queries = problem.development if made.on_everything else problem.validation_queries
    return scale(made.model.predict(replace(queries, rows=None)), queries)


def entry_of(study: Study, problem: SplitProblem, candidate: Candidate, made: FinalOutcome) -> Finalist:
    """Return a candidate with its model, which is scored on the test queries and timed."""
    scored = evaluate(Final(model=made.model, test=problem.test), task_of(study, problem, candidate))
    timed = microseconds_a_document(made.model, problem.test or problem.development)
    cost = scored.cost if study.costs else None
    return Finalist(candidate, scored.per_query, problem.test_weights, made.model, timed, made.seconds, cost)


def baseline_scores(study: Study, problem: SplitProblem, rescored: bool) -> ScoredRanking:
    """Return what the baseline scored: on fresh folds only where the chosen model was rescored on them."""

    def values(queries: Queries | None, name: str) -> Floats | None:
        if queries is None or queries.baseline is None or not np.isfinite(queries.baseline).all():
            return None
        return parse_metric(name).per_query(queries.baseline, queries)

    queries, development = problem.validation_queries, problem.development
    vali, fresh = values(queries, study.metric), values(development, study.metric) if rescored else None
    tested = {name: scores for name in study.metrics if (scores := values(problem.test, name)) is not None}
    candidate = Candidate(
        BASELINE, {}, float("nan"), np.empty(0) if vali is None else vali, 0, rescored=fresh,
        vali_weights=queries.query_weights, rescored_weights=development.query_weights,
    )  # fmt: skip
    return ScoredRanking(candidate, tested, problem.test_weights)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that may be chosen on one split.

    number   of its trial; -1 for a blend, whose params are the shares of its members
    place    among the candidates of its solver, by their trials
    vali     (n validation queries,) what its trial scored, value is the mean; empty for a blend
    rescored (n development queries,) what it scored on fresh folds; None where it was not scored there
    vali_weights, rescored_weights  weights of these queries, None where each counts once
    scores   (n_documents,) float32, of the development documents on fresh folds; None likewise
    trials   how many trials of its solver succeeded; seconds: wall time of its own, and repeated the share of it that a
             fit repeats
    path     parameter and values that its trial went along, each fit from the one before; "" and () if it did not
    is_first whether a study tries it first of its solver, but for the value of its path
    members  of a blend, with their shares in the order of params
    """

    solver: str
    params: Mapping[str, Value]
    value: float
    vali: Floats
    trials: int
    rescored: Floats | None = None
    number: int = -1
    place: int = 0
    seconds: float = 0.0
    repeated: float = 1.0
    path: tuple[str, tuple[float, ...]] = ("", ())
    scores: NDArray[np.float32] | None = None
    members: tuple[Candidate, ...] = field(default=())
    vali_weights: Floats | None = None
    rescored_weights: Floats | None = None
    is_first: bool = False

    @property
    def parts(self) -> frozenset[str]:
        """The kinds of parts of its model (`ranktune.solvers.models.blend.parts_of`)."""
        if self.members:
            return frozenset[str]().union(*(member.parts for member in self.members))
        return solver_class(self.solver).model_parts(solver_parameters(self.params))

    @property
    def fit_seconds(self) -> float:
        """The seconds of its trial that a fit repeats."""
        return self.seconds * self.repeated

    @property
    def values(self) -> Floats:
        """The values by query that the choice is made by: on fresh folds, else those of the trial."""
        return self.vali if self.rescored is None else self.rescored

    @property
    def weights(self) -> Floats | None:
        """The weights of the queries of values."""
        return self.vali_weights if self.rescored is None else self.rescored_weights

    @property
    def merit(self) -> tuple[bool, float]:
        """Sort key: a score on fresh folds, where it has one, before that of the trial."""
        if self.rescored is None:
            return False, self.value
        return True, float(np.nanmean(linearised(self.rescored, self.rescored_weights)))


def task_of(study: Study, problem: SplitProblem, candidate: Candidate) -> Task:
    """Return the task of a candidate, which names what its trial left too."""
    return Task(str(problem.folder), study.metrics, candidate.solver, candidate.params, study.seed, budget=study.budget)


def best_by_solver(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the best candidate of each solver, best first: by fresh folds where rescored, else by their place."""

    def key(candidate: Candidate) -> tuple[bool, float]:
        is_rescored, value = candidate.merit
        return is_rescored, value if is_rescored else -candidate.place

    best: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=key, reverse=True):
        best.setdefault(candidate.solver, candidate)
    return sorted(best.values(), key=lambda candidate: candidate.merit, reverse=True)
