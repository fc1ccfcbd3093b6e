"""The stages of a study after its search: from the trials in the record to models, files and an honest estimate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from optuna.trial import TrialState

from ranktune.solvers.core.errors import listed, or_left_out
from ranktune.tuner.policy.reserve import explaining
from ranktune.tuner.runner.search_stages import LOOK, SEARCH
from ranktune.tuner.runner.stage import Stage, State
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
)
from ranktune.tuner.selection.finished_trials import best_candidates, best_default, failures
from ranktune.tuner.selection.leaderboard import DefaultModel, default_model
from ranktune.tuner.selection.rescoring import RESCORED, read_rescored, rescored, write_rescored
from ranktune.tuner.selection.results import DISTILLED, Failure
from ranktune.tuner.selection.saving import save_entries
from ranktune.tuner.selection.serving import Served, served, warn_if_unserved
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.storage.record import number_of


def _candidates(state: State) -> list[Candidate]:
    space, limits, policy = state.study.union_space(), state.study.limits, state.problem.policy
    return best_candidates(state.record, space, limits, believed=state[LOOK].looked is None, policy=policy)


CANDIDATES = Stage("candidates", _candidates, (LOOK, SEARCH), text=lambda state: None)


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
)


def _are_blended(state: State) -> bool:
    return sum(candidate.scores is not None for candidate in state[RESCORE]) > 1


def _blended(state: State) -> Choice:
    candidates = state[RESCORE]
    if not _are_blended(state):
        best = best_by_solver(candidates)
        return Choice(best, best[0], candidates)
    return state.session.executor.call(blended_candidates, state.study, state[LOOK].problem, candidates)


BLEND = Stage("blending", _blended, (LOOK, RESCORE), lambda state: "blending them" if _are_blended(state) else None)


def _refitted(state: State) -> tuple[list[Entry], list[Failure]]:
    problem, executor = state[LOOK].problem, state.session.executor
    entries, unfit = refit_all(state.study, problem, state[BLEND].ordered, executor, state.deadline)
    return keep_within(state.study, entries), unfit


REFIT = Stage("refitting", _refitted, (LOOK, BLEND), lambda state: "refitting the best of each solver")


def _served(state: State) -> Served:
    study, chosen, (entries, _) = state.study, state[BLEND].unrestricted, state[REFIT]
    if not study.serve:
        return Served(entries, chosen.solver)
    end = state.session.executor.call(served, study, state[LOOK].problem, entries, chosen, state.deadline)
    warn_if_unserved(study, end.entries)
    return end


SERVE = Stage(
    "serving",
    _served,
    (LOOK, BLEND, REFIT),
    lambda state: f"fitting the choice to {listed(state.study.serve)}" if state.study.serve else None,
)


def _default(state: State) -> DefaultModel | None:
    known, chosen = best_default(state.record, state.study.union_space()), state[SERVE].entries[0]
    return default_model(state.study, state[LOOK].problem, known, chosen, state.session.executor, state.deadline)


DEFAULT = Stage("default", _default, (LOOK, SERVE), lambda state: None)
"""The best of the solvers' defaults, which tuning is compared with."""


def _baseline(state: State) -> Scored | None:
    if state.study.baseline is None:
        return None
    rescored = state[SERVE].entries[0].candidate.rescored is not None
    return state.session.executor.call(baseline_scores, state.study, state[LOOK].problem, rescored)


BASELINE = Stage("baseline", _baseline, (LOOK, SERVE), lambda state: "" if state.study.baseline else None)


def _saved(state: State) -> Path:
    """Save the models and what they scored, and return the path of the chosen one."""
    problem, folder = state[LOOK].problem, _folder(state)
    state.session.executor.call(save_entries, state[SERVE].entries, problem, folder, state[BASELINE])
    return (folder / "model.json").resolve()


SAVE = Stage("saving", _saved, (LOOK, SERVE, BASELINE))


def _explain(state: State) -> None:
    seconds = explaining(time.monotonic() - state.begun, state.deadline.left, state.problem.policy)
    given = (state[SERVE].entries, state[LOOK].problem, state.study.metric, _folder(state), seconds)
    explain = partial(state.session.executor.call, save_explanations, *given)
    or_left_out("the explanation of the models", explain, None)


EXPLAIN = Stage("explaining", _explain, (LOOK, SERVE, SAVE))


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What the end of a split came to beside its models; the fields are those of a Result."""

    estimate: Interval
    trials: int
    stopped: int
    failures: tuple[Failure, ...]
    ended_early: str


def _concluded(state: State) -> Conclusion:
    trials, study = state.record.trials(), state.study
    failed = failures(state.record, study.union_space(), state.problem.name)
    left, early = state.deadline.left, ""
    if state.given < float("inf") and left > state.problem.policy.time.unused * state.given:
        early = f"{left:.0f} of {state.given:.0f} seconds were not used: {state[SEARCH]}."
    return Conclusion(
        _estimate(state),
        len(trials),
        sum(trial.state == TrialState.PRUNED for trial in trials),
        (*failed, *state[REFIT][1]),
        early,
    )


def _estimate(state: State) -> Interval:
    """Return the estimate of the selected candidate, whose final model may be a bag of seeds."""
    record, entries, metric = state.record, state[SERVE].entries, state.study.metric
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
    return estimate(selected, compared, trials, solvers, np.random.default_rng([state.study.seed, 6]))


CONCLUDE = Stage("conclusion", _concluded, (SEARCH, BLEND, REFIT, SERVE), lambda state: None)


def _folder(state: State) -> Path:
    return state.session.folder.split(state.problem.name)


STAGES: tuple[Stage[Any], ...]
STAGES = (LOOK, SEARCH, CANDIDATES, RESCORE, BLEND, REFIT, SERVE, DEFAULT, BASELINE, SAVE, EXPLAIN, CONCLUDE)
"""What a study does on each split."""
REPORTED = (SERVE, DEFAULT, BASELINE, SAVE, CONCLUDE)
"""The stages whose results, of all splits, the result of the study is made of."""
