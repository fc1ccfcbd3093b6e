"""The stages of a study after its search: from the trials in the record to models, files and an honest estimate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from optuna.trial import TrialState

from ranktune.solvers.core.errors import listed
from ranktune.tuner.drift.reference import write_reference
from ranktune.tuner.evaluation.plans import Delivered
from ranktune.tuner.policy.reserve import explaining
from ranktune.tuner.retuning.portfolio import save_fitted, save_portfolio
from ranktune.tuner.runner.search_stages import LOOK, SEARCH
from ranktune.tuner.runner.stage import Instead, Stage, State
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.candidates import Candidate, best_by_solver
from ranktune.tuner.selection.estimate import estimate
from ranktune.tuner.selection.explaining import save_explanations
from ranktune.tuner.selection.finals import (
    Choice,
    Entry,
    Scored,
    baseline_scores,
    blended_candidates,
    keep_within,
    refit_all,
    refit_one,
)
from ranktune.tuner.selection.finished_trials import best_candidates, best_default, failures
from ranktune.tuner.selection.leaderboard import DefaultModel, default_model
from ranktune.tuner.selection.rescoring import RESCORED, read_rescored, rescored, write_rescored
from ranktune.tuner.selection.results import DISTILLED, Failure
from ranktune.tuner.selection.saving import save_evidence, save_models
from ranktune.tuner.selection.serving import Served, served, unmeasured, warn_if_unserved
from ranktune.tuner.splits.plans import training_overlap
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.storage.record import number_of


def _nothing(state: State) -> None:
    """Return None: what stands for a result that is left out, and the text of a stage that says nothing."""


def _candidates(state: State) -> list[Candidate]:
    space, limits, policy = state.study.union_space(), state.study.limits, state.problem.policy
    return best_candidates(state.record, space, limits, believed=state[LOOK].looked is None, policy=policy)


CANDIDATES = Stage("candidates", _candidates, (LOOK, SEARCH), _nothing)


def _is_rescored(state: State) -> bool:
    return bool(state[LOOK].problem.fresh) and state.deadline.left < float("inf")


def _rescored(state: State) -> list[Candidate]:
    return rescored(state.study, state[LOOK].problem, [*state[CANDIDATES]], state.session.executor, state.deadline)


RESCORE = Stage(
    "rescoring",
    _rescored,
    (LOOK, CANDIDATES),
    lambda state: "scoring the best candidates again, on fresh folds" if _is_rescored(state) else "",
    restored=lambda state: read_rescored(_folder(state) / RESCORED, state[CANDIDATES], state[LOOK].problem),
    kept=lambda state, candidates: write_rescored(_folder(state) / RESCORED, candidates),
    instead=Instead(
        "scoring on fresh folds", lambda state: state[CANDIDATES], "Trials are compared as they were scored."
    ),
)


def _are_blended(state: State) -> bool:
    return sum(candidate.scores is not None for candidate in state[RESCORE]) > 1


def _blended(state: State) -> Choice:
    if not _are_blended(state):
        return _unblended(state)
    return state.session.executor.call(blended_candidates, state.study, state[LOOK].problem, state[RESCORE])


def _unblended(state: State) -> Choice:
    candidates = [replace(candidate, scores=None) for candidate in state[RESCORE]]
    best = best_by_solver(candidates)
    return Choice(best, best[0], candidates)


BLEND = Stage(
    "blending",
    _blended,
    (LOOK, RESCORE),
    lambda state: "blending them" if _are_blended(state) else None,
    instead=Instead("blending", _unblended, "A single model is chosen."),
)


def _first(state: State) -> Candidate | None:
    return best_default(state.record, state.study.union_space(), state.study.limits)


FIRST = Stage("best default", _first, (SEARCH,), _nothing, instead=Instead("which default is the best", _nothing))
"""The best of the solvers' defaults, which tuning is compared with."""


def _refitted(state: State) -> tuple[list[Entry], list[Failure], Mapping[Candidate, Delivered]]:
    problem, executor = state[LOOK].problem, state.session.executor
    entries, unfit, left_out, models = refit_all(state.study, problem, state[BLEND].ordered, executor, state.deadline)
    state.left_out.extend(left_out)
    return keep_within(state.study, entries), unfit, models


def _as_tried(state: State) -> tuple[list[Entry], list[Failure], Mapping[Candidate, Delivered]]:
    ordered = sorted(state[BLEND].candidates, key=lambda candidate: candidate.merit, reverse=True)
    plain = [candidate for candidate in ordered if not candidate.members]
    return *refit_one(state.study, state[LOOK].problem, plain, state.session.executor), {}


REFIT = Stage(
    "refitting",
    _refitted,
    (LOOK, BLEND),
    lambda state: "refitting the best of each solver",
    instead=Instead("refitting", _as_tried, "The model of the best trial that can be fitted is chosen."),
)


def _served(state: State) -> Served:
    study, chosen, (entries, *_) = state.study, state[BLEND].unrestricted, state[REFIT]
    if not study.serve:
        return Served(entries, chosen.solver)
    end = state.session.executor.call(served, study, state[LOOK].problem, entries, chosen, state.deadline)
    state.left_out.extend(end.left_out)
    warn_if_unserved(study, end.entries)
    return end


def _unserved(state: State) -> Served:
    entries, *_ = state[REFIT]
    return unmeasured(entries, state[BLEND].unrestricted.solver)


SERVE = Stage(
    "serving",
    _served,
    (LOOK, BLEND, REFIT),
    lambda state: f"fitting the choice to {listed(state.study.serve)}" if state.study.serve else None,
    instead=Instead(
        "the choice of a model that systems can load",
        _unserved,
        "The best model is chosen, whether they can or not.",
    ),
)


def _saved(state: State) -> Served:
    """Save the models, and return what was saved: the chosen one, by which all that follows goes, is the first."""
    end = state[SERVE]
    saved, left_out = state.session.executor.call(save_models, end.entries, _folder(state))
    state.left_out.extend(left_out)
    save_portfolio(state[BLEND].ordered, saved[0], _folder(state))
    state.session.executor.call(save_fitted, state[LOOK].problem, _folder(state))
    return end if saved[0] is end.entries[0] else unmeasured(saved, end.best)


SAVE = Stage("saving", _saved, (LOOK, BLEND, SERVE))
"""The models, without which a study has no result."""


def _default(state: State) -> DefaultModel | None:
    known, chosen, models = state[FIRST], state[SAVE].entries[0], state[REFIT][2]
    return default_model(
        state.study, state[LOOK].problem, known, chosen, models, state.session.executor, state.deadline
    )


DEFAULT = Stage(
    "default",
    _default,
    (LOOK, FIRST, REFIT, SAVE),
    _nothing,
    instead=Instead("the best default", _nothing),
    beside=True,
)
"""The best default by the side of the chosen model."""


def _baseline(state: State) -> Scored | None:
    if state.study.baseline is None:
        return None
    rescored = state[SAVE].entries[0].candidate.rescored is not None
    return state.session.executor.call(baseline_scores, state.study, state[LOOK].problem, rescored)


BASELINE = Stage(
    "baseline",
    _baseline,
    (LOOK, SAVE),
    lambda state: "" if state.study.baseline else None,
    instead=Instead("the values of the baseline", _nothing),
)


def _prove(state: State) -> None:
    problem, entries = state[LOOK].problem, state[SAVE].entries
    state.session.executor.call(save_evidence, entries, problem, _folder(state), state[BASELINE])


PROVE = Stage(
    "evidence",
    _prove,
    (LOOK, SAVE, BASELINE),
    _nothing,
    instead=Instead("what each model scores by query", _nothing),
    beside=True,
)


def _refer(state: State) -> None:
    state.session.executor.call(write_reference, state[SAVE].entries[0].model, state[LOOK].problem, _folder(state))


REFER = Stage(
    "reference",
    _refer,
    (LOOK, SAVE),
    _nothing,
    instead=Instead("what new data are compared with", _nothing),
    beside=True,
)


def _explain(state: State) -> None:
    seconds = explaining(time.monotonic() - state.begun, state.deadline.left, state.problem.policy)
    given = (state[SAVE].entries, state[LOOK].problem, state.study.metric, _folder(state), seconds)
    state.left_out.extend(state.session.executor.call(save_explanations, *given))


EXPLAIN = Stage(
    "explaining", _explain, (LOOK, SAVE), instead=Instead("the explanation of the models", _nothing), beside=True
)


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What the end of a split came to beside its models; the fields are those of a Result."""

    trials: int
    stopped: int = 0
    failures: tuple[Failure, ...] = ()
    ended_early: str = ""


def _concluded(state: State) -> Conclusion:
    trials, study = state.record.trials(), state.study
    failed = failures(state.record, study.union_space(), state.problem.name)
    left, early = state.deadline.left, list[str]()
    if state.given < float("inf") and left > state.problem.policy.time.unused * state.given:
        early.append(f"{left:.0f} of {state.given:.0f} seconds were not used: {state[SEARCH]}.")
    tried = {str(trial.params[SOLVER]) for trial in trials}
    if untried := [solver for solver in study.solvers if solver not in tried and state[LOOK].looked is None]:
        early.append(f"Not tried with {len(trials)} trial{'s' * (len(trials) > 1)}: {', '.join(untried)}.")
    if left < float("inf") and state.problem.test is not None and state[FIRST] and state[DEFAULT] is None:
        early.append("What tuning gained was not measured: the best default could not be fitted in time.")
    return Conclusion(
        len(trials),
        sum(trial.state == TrialState.PRUNED for trial in trials),
        (*failed, *state[REFIT][1]),
        " ".join(early),
    )


def _estimate(state: State) -> Interval:
    """Return the estimate of the selected candidate, whose final model may be a bag of seeds."""
    record, entries, metric = state.record, state[SAVE].entries, state.study.metric
    compared = [*state[BLEND].candidates]
    compared += [entry.candidate for entry in entries if entry.candidate.solver == DISTILLED]
    final = entries[0].candidate
    selected = next(
        each
        for each in (*state[BLEND].ordered, *compared)
        if (each.solver, each.number) == (final.solver, final.number)
    )
    complete = [trial for trial in record.trials() if trial.state == TrialState.COMPLETE]
    trials = {number_of(trial): record.per_query(trial)[metric] for trial in complete}
    solvers = {number_of(trial): str(trial.params[SOLVER]) for trial in complete}
    nested = state[BLEND].nested if selected is state[BLEND].ordered[0] else None
    problem, generator = state[LOOK].problem, np.random.default_rng([state.study.seed, 6])
    shared = training_overlap(problem.plan if selected.rescored is None else problem.fresh)
    return estimate(selected, compared, trials, solvers, generator, nested, shared)


ESTIMATE = Stage(
    "estimate",
    _estimate,
    (LOOK, BLEND, SAVE),
    _nothing,
    instead=Instead("the estimate", lambda state: Interval(math.nan, math.nan, math.nan)),
)
CONCLUDE = Stage(
    "conclusion",
    _concluded,
    (LOOK, SEARCH, FIRST, REFIT, DEFAULT),
    _nothing,
    instead=Instead("the list of failed trials", lambda state: Conclusion(len(state.record.trials()))),
)


def _folder(state: State) -> Path:
    return state.session.folder.split(state.problem.name)


STAGES: tuple[Stage[Any], ...]
STAGES = (
    *(LOOK, SEARCH, CANDIDATES, FIRST, RESCORE, BLEND, REFIT, SERVE, SAVE),
    *(DEFAULT, BASELINE, PROVE, REFER, EXPLAIN, ESTIMATE, CONCLUDE),
)
"""What a study does on each split."""
REPORTED = (SAVE, DEFAULT, BASELINE, ESTIMATE, CONCLUDE)
"""The stages whose results, of all splits, the result of the study is made of."""
