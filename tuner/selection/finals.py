"""The final stage of a split: candidates are rescored on fresh folds, blended, refitted and tested."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ranktune.solvers.abilities import LINEAR, LIST, TREES
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import LeftOut, RankTuneError, RankTuneWarning, StudyError, or_left_out
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.models.blend import blended
from ranktune.solvers.names import ONE_COLUMN
from ranktune.tuner.evaluation.evaluate import evaluate
from ranktune.tuner.evaluation.models import has_model, microseconds_a_document
from ranktune.tuner.evaluation.plans import Delivered, Final
from ranktune.tuner.evaluation.run import LimitReached
from ranktune.tuner.policy.blends import (
    Blend,
    Blends,
    first_elsewhere,
    first_unless_better,
    nested_choice,
    scale,
    without_luck,
)
from ranktune.tuner.selection.candidates import Candidate, best_by_solver, task_of
from ranktune.tuner.selection.results import BASELINE, BLEND, LINEAR_BLEND, TREE_BLEND, Failure
from ranktune.tuner.splits.forward import blocks
from ranktune.tuner.splits.gaps import gap_of
from ranktune.tuner.splits.plans import Fold, query_folds
from ranktune.tuner.statistics.pareto import Option, best_within
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.baseline import covers
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem

if TYPE_CHECKING:
    from ranktune.solvers.models.base import Model
    from ranktune.tuner.workers.executor import Executor


@dataclass(frozen=True, eq=False)
class Scored:
    """What a ranking scored by query on one split: by validation, and on test.

    test is metric -> (n,), empty without test queries; test_weights, (n,), are those of these queries, None where each
    counts once.
    """

    candidate: Candidate
    test: Mapping[str, Floats]
    test_weights: Floats | None


@dataclass(frozen=True, eq=False)
class Entry(Scored):
    """A refitted candidate with its model; cost is what the features of the model cost, None without costs."""

    model: Model
    microseconds: float
    seconds: float
    cost: float | None = None


@dataclass(frozen=True, eq=False)
class Choice:
    """One candidate a solver, and blends, the chosen one first, then by merit.

    unrestricted is the one that would be chosen if no system had to load it; candidates are all that were compared.
    nested is what the choice made without a query's fold scored on it, (n_queries,); None where nothing was blended.
    """

    ordered: Sequence[Candidate]
    unrestricted: Candidate
    candidates: Sequence[Candidate]
    nested: Floats | None = None


def with_blends(study: Study, problem: Problem, candidates: Sequence[Candidate]) -> Choice:
    """Return the choice among the candidates and their blends.

    The blend of all, whose members differ most, is chosen unless cross-validation prefers the blend of a family or a
    single candidate, with few queries by `Blending.other`.
    """
    best, count = best_by_solver(candidates), problem.policy.blend.folds
    scored = [candidate for candidate in candidates if candidate.scores is not None]
    fresh = any(candidate.rescored is not None for candidate in scored)
    queries = problem.development if fresh else problem.validation_queries
    if len(scored) < 2 or queries.n_queries < problem.policy.blend.a_fold * count:
        return Choice(best, best[0], candidates)
    if queries.times is None:
        folds = query_folds(queries, count, study.seed, stream=5)
    else:
        folds = blocks(queries, count, gap_of(study.gap, queries))
    mixed = _blends(study, problem, scored, queries, folds)
    if not mixed:
        return Choice(best, best[0], candidates)
    weights, needed = queries.query_weights, problem.policy.blend.other
    alone = nested_choice(np.stack([candidate.values for candidate in scored]), folds, weights)

    def first_of(blends: Sequence[Candidate]) -> Candidate:
        taken = first_unless_better([*(blend.values for blend in blends), alone], weights, problem.policy, needed)
        return blends[taken] if taken < len(blends) and len(blends[taken].members) > 1 else best[0]

    able = [blend for blend in mixed if can_load(study.serve, blend.parts)]
    nested = first_elsewhere([*(blend.values for blend in able), alone], folds, weights, problem.policy, needed)
    first = first_of(able)
    unrestricted = first_of(mixed) if study.serve else first
    ordered = sorted([*best, *mixed], key=lambda candidate: candidate.merit, reverse=True)
    leading = list(dict.fromkeys((first, unrestricted)))
    return Choice([*leading, *(c for c in ordered if c not in leading)], unrestricted, candidates, nested)


def blended_candidates(study: Study, problem: Problem, candidates: Sequence[Candidate]) -> Choice:
    """Return the result of with_blends, blends among the candidates, all without scores to save memory."""
    choice = with_blends(study, problem, candidates)
    light = {candidate: replace(candidate, scores=None) for candidate in candidates}
    blends = [candidate for candidate in choice.ordered if candidate.members]
    light |= {blend: replace(blend, members=tuple(light[member] for member in blend.members)) for blend in blends}
    ordered = [light[candidate] for candidate in choice.ordered]
    return Choice(ordered, light[choice.unrestricted], list(light.values()), choice.nested)


def _blends(
    study: Study, problem: Problem, scored: Sequence[Candidate], queries: Queries, folds: Sequence[Fold]
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
    linear, trees = ([k for k, c in enumerate(able) if c.parts == {part}] for part in (LINEAR, TREES))
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
    taken = [k for k in np.argsort(-blend.shares, kind="stable") if blend.shares[k] > 0.0]
    members = tuple(able[k] for k in taken)
    shares = dict(zip(_names(members), (float(round(blend.shares[k], 6)) for k in taken), strict=True))
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
    return list(dict.fromkeys(part for candidate in chosen for part in candidate.members or (candidate,)))


def refit_all(
    study: Study, problem: Problem, chosen: Sequence[Candidate], executor: Executor, deadline: Deadline
) -> tuple[list[Entry], list[Failure], list[LeftOut], dict[Candidate, Delivered]]:
    """Return the candidates with their final models, those whose fit fails, and those whose model does not score.

    Members shared by blends are refitted once, and their models are returned too. Where time is too short to refit one,
    the model that its trial left is used; without one it has no entry, unless it is part of the first. Refits end at
    the deadline, boosting with the rounds that it has, but there is always one entry. Raises RankTuneError where no
    refit succeeds.
    """
    plain = parts_of(chosen)
    needed = chosen[0].members or chosen[:1]
    left, durations = {part: task_of(study, problem, part, study.seed) for part in plain}, problem.durations
    fits = [has_model(left[part]) for part in plain]
    bag = durations.after_blending(plain, len(needed), fits, executor.jobs, deadline.left)
    refitted, as_left = ([plain[place] for place in places] for places in (bag.places, bag.kept))
    used = {part: part for part in plain}
    for place, seeds in bag.seeds.items() if study.refit else ():
        part = plain[place]
        if "seeds" not in part.params:  # unless its seeds were tuned
            used[part] = replace(part, params={**part.params, "seeds": seeds})
    on_everything = study.refit or not problem.given_split
    limits = dict(zip(refitted, durations.refit_limits(refitted, executor.jobs, deadline.left), strict=True))
    until, threads = deadline.before(durations.reporting(len(plain))), 1
    if deadline.left < float("inf"):
        threads = max(1, executor.jobs // max(len(refitted), 1))
    else:  # the longest fits first, so that the last ones end together
        refitted.sort(key=lambda part: -part.fit_seconds)
    jobs: dict[Candidate, Future[Delivered]] = {}
    for part in (*refitted, *as_left):
        limit = min(limits.get(part, float("inf")), until.left)  # in this process one follows the other
        task = replace(task_of(study, problem, used[part], study.seed), limit=limit, threads=threads)
        plan = Final(on_everything, instead=left[part]) if part in refitted else Final(on_everything=False)
        jobs[part] = executor.submit(evaluate, plan, task)

    def suffices() -> bool:
        known = {part for part, job in jobs.items() if job.done() and job.exception() is None}
        return any(known.issuperset(parts_of([each])) for each in chosen)

    in_time = until.end(jobs.values(), executor.stop, suffices)
    models: dict[Candidate, Delivered] = {}
    unfit = []
    for candidate in (part for part in plain if part in jobs):
        job = jobs[candidate]
        error = job.exception()
        if error is None:
            took = candidate.seconds if candidate in as_left else job.result().seconds
            models[candidate] = replace(job.result(), seconds=took)
        else:
            unfit.append(_failure(problem, candidate, error if in_time else LimitReached()))
    entries, left_out = executor.call(_entries, study, problem, chosen, used, models)
    if not entries:
        causes = [failure.error for failure in unfit] + [missing.error for missing in left_out]
        raise RankTuneError(f"no candidate could be refitted: {'; '.join(causes)}")
    return entries, unfit, left_out, models


def refit_one(
    study: Study, problem: Problem, candidates: Sequence[Candidate], executor: Executor
) -> tuple[list[Entry], list[Failure]]:
    """Return the first candidate that can be fitted as its trial was, on the queries of its first fold, and failures.

    Raises StudyError if none can.
    """
    unfit: list[Failure] = []
    for candidate in candidates:
        job = executor.submit(_entry_as_tried, study, problem, candidate)
        if (error := job.exception()) is None:
            return [job.result()], unfit
        unfit.append(_failure(problem, candidate, error))
    raise StudyError(f"no candidate could be refitted: {'; '.join(failure.error for failure in unfit)}")


def _entry_as_tried(study: Study, problem: Problem, candidate: Candidate) -> Entry:
    plan = Final(on_everything=not isinstance(problem.plan, tuple))
    return entry_of(study, problem, candidate, evaluate(plan, task_of(study, problem, candidate, study.seed)))


def _failure(problem: Problem, candidate: Candidate, error: BaseException) -> Failure:
    return Failure(problem.name, None, candidate.solver, f"{type(error).__name__}: {error}")


def _entries(
    study: Study,
    problem: Problem,
    chosen: Sequence[Candidate],
    used: Mapping[Candidate, Candidate],
    models: Mapping[Candidate, Delivered],
) -> tuple[list[Entry], list[LeftOut]]:
    """Return the entries of the candidates whose refit succeeded, with test scores, and what failed."""
    left_out: list[LeftOut] = []

    def made(candidate: Candidate) -> Entry | None:
        refitted = _build_model(candidate, models, problem)
        return None if refitted is None else entry_of(study, problem, used.get(candidate, candidate), refitted)

    entries = [or_left_out(f"the model of {c.solver}", partial(made, c), None, into=left_out) for c in chosen]
    return [entry for entry in entries if entry is not None], left_out


def is_within(study: Study, entry: Entry) -> bool:
    """Return whether the model of an entry keeps the limits of a study."""
    (_, value), model = entry.candidate.merit, entry.model
    solver, timed = entry.candidate.solver, entry.microseconds
    option = Option(solver, value, model.nonzeros, model.bytes, timed, entry.seconds, entry.cost)
    return best_within([option], study.limits) is not None


def keep_within(study: Study, entries: list[Entry]) -> list[Entry]:
    """Return the entries whose refitted models keep the limits; all, with a warning, if none does."""
    kept = [entry for entry in entries if is_within(study, entry)]
    if not kept:
        warnings.warn(
            "refitted on more queries, no model keeps within the limits, which all of them kept in their trials. "
            "Lower the limits a little.",
            RankTuneWarning,
            stacklevel=2,
        )
    return kept or entries


def _build_model(candidate: Candidate, models: Mapping[Candidate, Delivered], problem: Problem) -> Delivered | None:
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
    return Delivered(model=model, seconds=seconds, on_everything=all(made.on_everything for made in refitted))


def _spread(made: Delivered, problem: Problem) -> float:
    """Return the spread of a model's scores, on the validation queries where it was not fitted to them."""
    queries = problem.development if made.on_everything else problem.validation_queries
    return scale(made.model.predict(replace(queries, rows=None)), queries)


def entry_of(study: Study, problem: Problem, candidate: Candidate, made: Delivered) -> Entry:
    """Return a candidate with its model, which is scored on the test queries and timed."""
    scored = evaluate(Final(model=made.model, test=problem.test), task_of(study, problem, candidate, study.seed))
    timed = microseconds_a_document(made.model, problem.test or problem.development)
    cost = scored.cost if study.costs else None
    return Entry(candidate, scored.per_query, problem.test_weights, made.model, timed, made.seconds, cost)


def baseline_scores(study: Study, problem: Problem, rescored: bool) -> Scored:
    """Return what the baseline scored: on fresh folds only where the chosen model was rescored on them."""

    def values(queries: Queries | None, name: str) -> Floats | None:
        if queries is None or queries.baseline is None or not covers(queries.baseline):
            return None
        return parse_metric(name).per_query(queries.baseline, queries)

    queries, development = problem.validation_queries, problem.development
    vali, fresh = values(queries, study.metric), values(development, study.metric) if rescored else None
    tested = {name: scores for name in study.metrics if (scores := values(problem.test, name)) is not None}
    candidate = Candidate(
        BASELINE, {}, float("nan"), np.empty(0) if vali is None else vali, 0, rescored=fresh,
        vali_weights=queries.query_weights, rescored_weights=development.query_weights,
    )  # fmt: skip
    return Scored(candidate, tested, problem.test_weights)
