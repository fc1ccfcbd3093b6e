"""The last part of a split: candidates are scored again on fresh folds, blended, learnt again for use, and tested."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ranktune.solvers.arrays import Floats
from ranktune.solvers.blend_model import blended
from ranktune.solvers.errors import RankTuneWarning, StudyError
from ranktune.solvers.metrics import parse_metric
from ranktune.solvers.model import Model
from ranktune.solvers.ranker import LinearRanker
from ranktune.solvers.registry import solver_class
from ranktune.solvers.space import Value
from ranktune.tuner.blending import choose_blend, scale, value_of_choosing
from ranktune.tuner.deadline import Deadline
from ranktune.tuner.executor import Executor
from ranktune.tuner.objective import FRESH, Task, evaluate
from ranktune.tuner.pareto import Option, best_within
from ranktune.tuner.plans import Fold, query_folds
from ranktune.tuner.problem import Problem
from ranktune.tuner.refit import Refitted, microseconds_a_document, refit, score_on
from ranktune.tuner.results import BLEND, LINEAR_BLEND, Failure
from ranktune.tuner.selection import MOST, Candidate, contenders, settled
from ranktune.tuner.study import Study

BAG, BAG_BELOW = 5, 1000
"""Seeds of which the models of a tree solver are averaged for use, and the queries below which this is done.

With few queries one seed alone is noisy. With many it is not, and a bag would only be larger and slower.
"""
FOLDS = 5
MARGIN = 1.2
"""What a guess of seconds is multiplied by before time is promised."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A candidate learnt again: its model, and what it scored per test query, metric -> (n,); empty without test."""

    candidate: Candidate
    model: Model
    test: Mapping[str, Floats]
    microseconds: float
    seconds: float


def scored_again(
    study: Study, problem: Problem, found: list[Candidate], executor: Executor, deadline: Deadline
) -> list[Candidate]:
    """Return found with what those in doubt score on fresh folds, learnt with another seed; all as they are if strict.

    Where time is short only the first of them are scored, the best of all among them.
    """
    if not problem.fresh:
        return found
    places = contenders(found, np.random.default_rng([study.seed, 4]))
    places = _affordable(places, found, problem, executor.jobs, deadline)
    if len(places) < 2:
        return found
    jobs = [
        executor.submit(
            evaluate,
            Task(
                str(problem.folder),
                study.metrics,
                found[k].solver,
                found[k].params,
                study.seed + 1,
                plan=FRESH,
                keep_scores=isinstance(problem.fresh, tuple),
            ),
        )
        for k in places
    ]
    for k, job in zip(places, jobs, strict=True):
        if job.exception() is None and job.result().error is None:
            outcome = job.result()
            found[k] = replace(found[k], again=outcome.per_query[study.metric], scores=outcome.scores)
    return found


def _affordable(
    places: list[int], found: Sequence[Candidate], problem: Problem, jobs: int, deadline: Deadline
) -> list[int]:
    """Return the first of places that fit into the time that is left; the best candidate always."""
    left = (deadline.left - 1.0) * jobs
    kept = []
    for k in places:
        left -= MARGIN * found[k].seconds * (_again_ratio(problem) + _use_ratio(found[k].solver, problem))
        if left >= 0.0 or k == 0:
            kept.append(k)
    return kept


def reserve(problem: Problem, seconds: Mapping[str, float]) -> float:
    """Return how long the end takes, in seconds of one worker: a guess from what each solver's best trial took.

    All of them are scored again, with as many others that are about as good, and learnt for use.
    """
    usual = float(np.median(list(seconds.values())))
    again = (sum(seconds.values()) + max(MOST - len(seconds), 0) * usual) * _again_ratio(problem)
    use = sum(took * _use_ratio(solver, problem) for solver, took in seconds.items())
    return 1.0 + MARGIN * (again + use)


def _again_ratio(problem: Problem) -> float:
    """Return how many times the time of a trial its scoring on fresh folds takes."""
    if isinstance(problem.plan, tuple) and isinstance(problem.fresh, tuple):
        return len(problem.fresh) / len(problem.plan)
    return 1.0


def _use_ratio(solver: str, problem: Problem) -> float:
    """Return how many times the time of a trial learning for use takes: on more data, in bags of seeds."""
    folds = len(problem.plan) if isinstance(problem.plan, tuple) else len(problem.plan.orders)
    return 1.25 * (BAG if _bagged(solver, problem) else 1) / folds


def with_blends(study: Study, problem: Problem, found: Sequence[Candidate]) -> list[Candidate]:
    """Return one candidate a solver, and blends, the one to use first, then by merit.

    A single candidate is used where choosing one is worth more than every blend, as far as cross-validation tells.
    """
    singles, folds = _in_time(settled(found)), _blend_folds(study, problem)
    mixed = _blends(study, problem, found, folds)
    if not mixed:
        return singles
    best = max(mixed, key=lambda blend: blend.merit)
    again = np.stack([candidate.again for candidate in found if candidate.again is not None])
    ordered = sorted([*singles, *mixed], key=lambda candidate: candidate.merit, reverse=True)
    helps = len(best.members) > 1 and best.merit[1] >= value_of_choosing(again, folds)
    first = best if helps else singles[0]
    return [first, *(candidate for candidate in ordered if candidate is not first)]


def blended_candidates(
    study: Study, problem: Problem, found: Sequence[Candidate]
) -> tuple[list[Candidate], list[Candidate]]:
    """Return found and blends, and what with_blends returns of them: all without scores, which nobody needs after."""
    chosen = with_blends(study, problem, found)
    light = {candidate: replace(candidate, scores=None) for candidate in found}
    blends = [candidate for candidate in chosen if candidate.members]
    light |= {blend: replace(blend, members=tuple(light[member] for member in blend.members)) for blend in blends}
    return list(light.values()), [light[candidate] for candidate in chosen]


def _in_time(singles: list[Candidate]) -> list[Candidate]:
    """Return those that were scored again, for which the time was found; all where none was."""
    return [candidate for candidate in singles if candidate.again is not None] or singles


def _blends(study: Study, problem: Problem, found: Sequence[Candidate], folds: Sequence[Fold]) -> list[Candidate]:
    """Return blends of the candidates that were scored again: of the linear ones, which is a linear model, and of all.

    What they score on fresh folds is honest: the members were chosen without the queries that they score there. There
    are none where fewer than two candidates could take part.
    """
    able = [c for c in found if c.scores is not None and scale(c.scores, problem.development) > 0.0]
    linear = [c for c in able if issubclass(solver_class(c.solver), LinearRanker) and not _by_list(c)]
    mixes = [(LINEAR_BLEND, linear)] + ([(BLEND, able)] if len(able) > len(linear) else [])
    mixed = [_blend(study, problem, label, own, folds) for label, own in mixes if len(own) > 1]
    # One model alone is no blend; of several splits it stays, so that the others' rows have their mean.
    return [blend for blend in mixed if len(blend.members) > 1 or problem.name]


def _by_list(candidate: Candidate) -> bool:
    """Return whether a linear candidate scales features by query, so that its weights cannot be added to others'."""
    return candidate.params.get("scaling") == "list"


def _blend_folds(study: Study, problem: Problem) -> tuple[Fold, ...]:
    return query_folds(problem.development, FOLDS, study.seed, stream=5)


def _blend(study: Study, problem: Problem, label: str, able: Sequence[Candidate], folds: Sequence[Fold]) -> Candidate:
    development, metric = problem.development, parse_metric(study.metric)
    scaled = np.stack([c.scores / np.float32(scale(c.scores, development)) for c in able if c.scores is not None])
    solvers = [candidate.solver for candidate in able]
    first = np.array([solver not in solvers[:k] for k, solver in enumerate(solvers)])  # each solver's best
    blend = choose_blend(scaled, first / first.sum(), development, metric, folds)
    taken = [k for k in np.argsort(-blend.shares, kind="stable") if blend.shares[k] > 0.0]
    members = tuple(able[k] for k in taken)
    shares = dict(zip(_names(members), (float(round(blend.shares[k], 6)) for k in taken), strict=True))
    return Candidate(label, shares, float("nan"), np.empty(0), 0, again=blend.per_query, members=members)


def _names(members: Sequence[Candidate]) -> list[str]:
    """Return a name for each member: its solver, and which of them where there are several."""
    solvers = [member.solver for member in members]
    counts = [solvers[: k + 1].count(solver) for k, solver in enumerate(solvers)]
    return [solver if count == 1 else f"{solver} {count}" for solver, count in zip(solvers, counts, strict=True)]


def learnt_again(
    study: Study, problem: Problem, chosen: Sequence[Candidate], executor: Executor
) -> tuple[list[Entry], list[Failure]]:
    """Return the candidates learnt for use, and why some could not be. What several blends share is learnt once."""
    plain = list(dict.fromkeys(part for candidate in chosen for part in candidate.members or (candidate,)))
    used = {candidate: _for_use(candidate, problem) if study.refit else candidate for candidate in plain}
    on_everything = study.refit or not problem.given_split
    jobs = [
        executor.submit(
            partial(refit, on_everything=on_everything),
            Task(str(problem.folder), study.metrics, candidate.solver, candidate.params, study.seed),
        )
        for candidate in used.values()
    ]
    models: dict[Candidate, Refitted] = {}
    unfit = []
    for candidate, job in zip(plain, jobs, strict=True):
        error = job.exception()
        if error is None:
            models[candidate] = job.result()
        else:
            unfit.append(Failure(problem.name, None, candidate.solver, f"{type(error).__name__}: {error}"))
    entries = executor.call(_entries, study, problem, chosen, used, models)
    if not entries:
        raise StudyError(f"no solver could be learnt again: {'; '.join(failure.error for failure in unfit)}")
    return entries, unfit


def _entries(
    study: Study,
    problem: Problem,
    chosen: Sequence[Candidate],
    used: Mapping[Candidate, Candidate],
    models: Mapping[Candidate, Refitted],
) -> list[Entry]:
    """Return the candidates whose models were learnt, tested."""
    entries = []
    for candidate in chosen:
        made = _made(candidate, models, problem)
        if made is not None:
            entries.append(_tested(study, problem, used.get(candidate, candidate), made))
    return entries


def within(entries: list[Entry], limits: Mapping[str, float]) -> list[Entry]:
    """Return the entries whose models, as learnt for use, keep the limits; all, with a warning, where none does."""
    kept = [
        entry
        for entry in entries
        if best_within([option_of(entry.candidate.solver, entry.candidate.merit[1], entry)], limits) is not None
    ]
    if not kept:
        warnings.warn(
            "learnt again for use, on more queries, no model keeps within the limits: they are those that kept within "
            "them in their trials. Lower the limits a little.",
            RankTuneWarning,
            stacklevel=2,
        )
    return kept or entries


def option_of(label: str, quality: float, entry: Entry) -> Option:
    """Return an entry as what could be chosen: its quality and its costs."""
    model = entry.model
    return Option(label, quality, model.nonzeros, model.bytes, entry.microseconds, entry.seconds)


def _for_use(candidate: Candidate, problem: Problem) -> Candidate:
    """Return candidate as it is learnt for use: a tree solver with a bag of seeds, unless its seeds were tuned."""
    if "seeds" in candidate.params or not _bagged(candidate.solver, problem):
        return candidate
    params: dict[str, Value] = {**candidate.params, "seeds": BAG}
    return replace(candidate, params=params)


def _bagged(solver: str, problem: Problem) -> bool:
    few = problem.development.n_queries < BAG_BELOW
    return few and "seeds" in inspect.signature(solver_class(solver)).parameters


def _made(candidate: Candidate, models: Mapping[Candidate, Refitted], problem: Problem) -> Refitted | None:
    """Return the model of a candidate, of a blend put together; None where one of its members could not be learnt."""
    if not candidate.members:
        return models.get(candidate)
    if not all(member in models for member in candidate.members):
        return None
    own = [models[member] for member in candidate.members]
    spreads = [scale(made.model.predict(replace(problem.development, rows=None)), problem.development) for made in own]
    shares = [float(share) for share in candidate.params.values()]  # type: ignore[arg-type]
    factors = [share / spread if spread > 0.0 else 0.0 for share, spread in zip(shares, spreads, strict=True)]
    model = blended([made.model for made in own], factors, candidate.solver, candidate.params)
    return Refitted(model, sum(made.seconds for made in own))


def _tested(study: Study, problem: Problem, candidate: Candidate, made: Refitted) -> Entry:
    test = {} if problem.test is None else score_on(made.model, problem.test, study.metrics)
    timed = microseconds_a_document(made.model, problem.test or problem.development)
    return Entry(candidate, made.model, test, timed, made.seconds)
