"""The stages of a study from the trials in its record to its answer: the chosen model and an honest estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from optuna.trial import TrialState

from ranktune.solvers.core.errors import StudyError, listed
from ranktune.tuner.retuning.portfolio import save_fitted, save_portfolio
from ranktune.tuner.runner.refitting import Refits, Refitted, refit_one
from ranktune.tuner.runner.search_stages import SCORING, SEARCH, answered, keep_answered, search_of
from ranktune.tuner.runner.stage import Instead, SplitState, Stage
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.estimate import estimate
from ranktune.tuner.selection.finals import (
    Candidate,
    FinalChoice,
    ScoredRanking,
    baseline_scores,
    best_by_solver,
    blended_candidates,
)
from ranktune.tuner.selection.finished_trials import best_candidates, best_default
from ranktune.tuner.selection.rescoring import RESCORED, read_rescored, rescored, write_rescored
from ranktune.tuner.selection.rows import DISTILLED
from ranktune.tuner.selection.saving import save_chosen
from ranktune.tuner.selection.serving import Served, served, unmeasured, warn_if_unserved
from ranktune.tuner.splits.plans import training_overlap
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.storage.record import number_of
from ranktune.tuner.study.deadline import Deadline


def nothing(state: SplitState) -> None:
    """Return None: what stands for a result that is left out, and the text of a stage that says nothing."""


def folder_of(state: SplitState) -> Path:
    """Return the folder of the split of a state."""
    return state.session.folder.split(state.problem.name)


def _candidates(state: SplitState) -> list[Candidate]:
    space, limits, policy = state.study.union_space(), state.study.limits, state.problem.policy
    return best_candidates(state.record, space, limits, policy=policy)


CANDIDATES = Stage("candidates", _candidates, (SCORING, SEARCH), nothing)


def _rescored(state: SplitState) -> list[Candidate]:
    problem, file = state[SCORING], folder_of(state) / RESCORED
    again = read_rescored(file, state[CANDIDATES], problem)
    if again is None:
        # After an answer the scores are those that it was given by, which took no time that is left now.
        deadline = Deadline() if answered(folder_of(state), state.record, state.study) else state.deadline
        again = rescored(state.study, problem, [*state[CANDIDATES]], state.session.executor, deadline)
        write_rescored(file, again)
    return again


RESCORE = Stage(
    "rescoring",
    _rescored,
    (SCORING, SEARCH, CANDIDATES),
    lambda state: (
        "scoring the best candidates again, on fresh folds"
        if state[SCORING].fresh and state.deadline.left < math.inf
        else ""
    ),
    instead=Instead(
        "scoring on fresh folds", lambda state: state[CANDIDATES], "Trials are compared as they were scored."
    ),
)


def _are_blended(state: SplitState) -> bool:
    return sum(candidate.scores is not None for candidate in state[RESCORE]) > 1


def _blended(state: SplitState) -> FinalChoice:
    if not _are_blended(state):
        return _unblended(state)
    return state.session.executor.call(blended_candidates, state.study, state[SCORING], state[RESCORE])


def _unblended(state: SplitState) -> FinalChoice:
    candidates = [replace(candidate, scores=None) for candidate in state[RESCORE]]
    best = best_by_solver(candidates)
    return FinalChoice(best, best[0], candidates)


BLEND = Stage(
    "blending",
    _blended,
    (SCORING, RESCORE),
    lambda state: "blending them" if _are_blended(state) else None,
    instead=Instead("blending", _unblended, "A single model is chosen."),
)


def _first(state: SplitState) -> Candidate | None:
    return best_default(state.record, state.study.union_space(), state.study.limits)


FIRST = Stage("best default", _first, (SEARCH,), nothing, instead=Instead("which default is the best", nothing))
"""The best of the solvers' defaults, which tuning is compared with."""


def _refitted(state: SplitState) -> Refitted:
    found = Refits(state.study, state[SCORING], state[BLEND], state.session.executor, state.deadline).choose()
    state.left_out.extend(found.left_out)
    return found


def _as_tried(state: SplitState) -> Refitted:
    ordered = sorted(state[BLEND].candidates, key=lambda candidate: candidate.merit, reverse=True)
    plain = [candidate for candidate in ordered if not candidate.members]
    return refit_one(state.study, state[SCORING], plain, state.session.executor)


REFIT = Stage(
    "refitting",
    _refitted,
    (SCORING, BLEND),
    lambda state: "refitting the chosen model",
    instead=Instead("refitting", _as_tried, "The model of the best trial that can be fitted is chosen."),
)
"""The models of the choice; those of the other rows are fitted after the answer."""


def _served(state: SplitState) -> Served:
    study, chosen, entries = state.study, state[BLEND].unrestricted, state[REFIT].entries
    if not study.serve:
        return Served(entries, chosen.solver)
    end = state.session.executor.call(served, study, state[SCORING], entries, chosen, state.deadline)
    state.left_out.extend(end.left_out)
    warn_if_unserved(study, end.entries)
    return end


SERVE = Stage(
    "serving",
    _served,
    (SCORING, BLEND, REFIT),
    lambda state: f"fitting the choice to {listed(state.study.serve)}" if state.study.serve else None,
    instead=Instead(
        "the choice of a model that systems can load",
        lambda state: unmeasured(state[REFIT].entries, state[BLEND].unrestricted.solver),
        "The best model is chosen, whether they can or not.",
    ),
)


def _saved(state: SplitState) -> Served:
    """Save the models of the choice, and return what was saved: the first is the chosen one, by which all follows.

    Where none can be saved, candidates after them are fitted.
    """
    end, refits = state[SERVE], state[REFIT].refits
    entries = end.entries
    while True:
        saved, left_out = state.session.executor.call(save_chosen, entries, folder_of(state))
        state.left_out.extend(left_out)
        if saved:
            break
        if refits is None or not refits.others:
            raise StudyError(f"no model can be saved: {left_out[0].error}")
        entries = refits.choose().entries
    save_portfolio(state[BLEND].ordered, saved[0], folder_of(state))
    state.session.executor.call(save_fitted, state[SCORING], folder_of(state))
    return end if saved[0] is end.entries[0] else unmeasured(saved, end.best)


SAVE = Stage("saving", _saved, (SCORING, BLEND, REFIT, SERVE))
"""The models of the choice, without which a study has no result."""


def _baseline(state: SplitState) -> ScoredRanking | None:
    if state.study.baseline is None:
        return None
    rescored = state[SAVE].entries[0].candidate.rescored is not None
    return state.session.executor.call(baseline_scores, state.study, state[SCORING], rescored)


BASELINE = Stage(
    "baseline",
    _baseline,
    (SCORING, SAVE),
    lambda state: "" if state.study.baseline else None,
    instead=Instead("the values of the baseline", nothing),
)


def _estimate(state: SplitState) -> Interval:
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
    problem, generator = state[SCORING], np.random.default_rng([state.study.seed, 6])
    shared = training_overlap(problem.plan if selected.rescored is None else problem.fresh)
    return estimate(selected, compared, trials, solvers, generator, nested, shared)


ESTIMATE = Stage(
    "estimate",
    _estimate,
    (SCORING, BLEND, SAVE),
    nothing,
    instead=Instead("the estimate", lambda state: Interval(math.nan, math.nan, math.nan)),
)


def _answer(state: SplitState) -> None:
    keep_answered(folder_of(state), search_of(state.record, state.study, state[SEARCH]))
    state.answer(state)


ANSWER = Stage(
    "answer",
    _answer,
    (SEARCH, SAVE, BASELINE, ESTIMATE),
    instead=Instead("the answer before the table", nothing),
)
"""The conclusion, as soon as it stands."""
