"""The stages of a study after its answer: the other rows, the best default, evidence and explanations."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import TrialState

from ranktune.solvers.models.blend import needs_of
from ranktune.tuner.drift.reference import write_reference
from ranktune.tuner.evaluation.plans import FinalOutcome
from ranktune.tuner.policy.next_trial import IN_VAIN
from ranktune.tuner.policy.reserve import explaining
from ranktune.tuner.runner.choice_stages import (
    ANSWER,
    BASELINE,
    BLEND,
    CANDIDATES,
    ESTIMATE,
    FIRST,
    REFIT,
    RESCORE,
    SAVE,
    SERVE,
    folder_of,
    nothing,
)
from ranktune.tuner.runner.refitting import Refitted
from ranktune.tuner.runner.search_stages import SCORING, SEARCH
from ranktune.tuner.runner.stage import Instead, SplitState, Stage
from ranktune.tuner.samplers.first import grows
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.search.loop import CTRL_C
from ranktune.tuner.selection.evidence import Explanations
from ranktune.tuner.selection.explaining import explained, save_explanations
from ranktune.tuner.selection.finals import Candidate, is_within
from ranktune.tuner.selection.finished_trials import failures
from ranktune.tuner.selection.leaderboard import DefaultModel, default_model, is_default
from ranktune.tuner.selection.rows import Failure
from ranktune.tuner.selection.saving import save_evidence, save_models
from ranktune.tuner.storage.record import seconds_of
from ranktune.tuner.study.abilities import can_load

FURTHER = 20
"""Trials after those in vain of which the report says what they would take (docs/explanation/tasks.md)."""
UNUSED = 0.03
"""Share of the given time that may be left without a reason in the report."""


def _begun(state: SplitState) -> None:
    if (refits := state[REFIT].refits) is not None:
        refits.begin(refits.others)


BEGIN = Stage(
    "beginning",
    _begun,
    (REFIT, ANSWER),
    lambda state: "fitting the other models and the best default, explaining",
    instead=Instead("the fits of the other models", nothing),
)


def _default(state: SplitState) -> DefaultModel | None:
    first, refits, problem = state[FIRST], state[REFIT].refits, state[SCORING]
    chosen, models = state[SAVE].entries[0], dict[Candidate, FinalOutcome]()
    if first is not None and refits is not None and problem.test is not None:
        models = refits.models() | refits.models([part for part in refits.parts if is_default(part, first)])
    return default_model(state.study, problem, first, chosen, models, state.session.executor, state.deadline)


DEFAULT = Stage(
    "default",
    _default,
    (SCORING, FIRST, REFIT, SAVE, BEGIN),
    nothing,
    instead=Instead("the best default", nothing),
    beside=True,
)
"""The best default by the side of the chosen model."""


def _refer(state: SplitState) -> None:
    state.session.executor.call(write_reference, state[SAVE].entries[0].model, state[SCORING], folder_of(state))


REFER = Stage(
    "reference",
    _refer,
    (SCORING, SAVE, BEGIN),
    nothing,
    instead=Instead("what new data are compared with", nothing),
    beside=True,
)


def _seconds(state: SplitState) -> float:
    return explaining(time.monotonic() - state.begun, state.deadline.left)


def _explain(state: SplitState) -> Explanations:
    arguments = (state[SAVE].entries[0], state[SCORING], state.study.metric, _seconds(state))
    explanations, left_out = state.session.executor.call(explained, *arguments)
    state.left_out.extend(left_out)
    return explanations


EXPLAIN = Stage(
    "explaining",
    _explain,
    (SCORING, SAVE, BEGIN),
    nothing,
    instead=Instead("the explanation of the chosen model", nothing),
    beside=True,
)


def _others(state: SplitState) -> Refitted:
    refits, chosen = state[REFIT].refits, state[SAVE].entries
    if refits is None:
        return Refitted([*chosen])
    found = refits.ended(refits.others)
    within = [entry for entry in found.entries if is_within(state.study, entry)]
    saved, left_out = state.session.executor.call(save_models, within, folder_of(state))
    state.left_out.extend([*found.left_out, *left_out])
    rows = sorted([*chosen, *saved], key=lambda entry: not can_load(state.study.serve, needs_of(entry.model)))
    return replace(found, entries=rows)


ROWS = Stage(
    "rows",
    _others,
    (REFIT, SAVE, BEGIN),
    nothing,
    instead=Instead("the other models", lambda state: Refitted([*state[SAVE].entries])),
)
"""All rows of the leaderboard, the chosen one first."""


def _prove(state: SplitState) -> None:
    problem, entries = state[SCORING], state[ROWS].entries
    state.session.executor.call(save_evidence, entries, problem, folder_of(state), state[BASELINE])


PROVE = Stage(
    "evidence",
    _prove,
    (SCORING, ROWS, BASELINE),
    nothing,
    instead=Instead("what each model scores by query", nothing),
    beside=True,
)


def _spread(state: SplitState) -> None:
    if (explanations := state[EXPLAIN]) is not None:
        arguments = (explanations, state[ROWS].entries, state[SCORING], folder_of(state), _seconds(state))
        state.left_out.extend(state.session.executor.call(save_explanations, *arguments))


SPREAD = Stage(
    "contributions",
    _spread,
    (SCORING, EXPLAIN, ROWS),
    nothing,
    instead=Instead("the explanation of the models", nothing),
    beside=True,
)


@dataclass(frozen=True, eq=False)
class Ending:
    """What the end of a split came to beside its models; the fields are those of a Result."""

    trials: int
    stopped: int = 0
    failures: tuple[Failure, ...] = ()
    ended_early: str = ""


def counted(state: SplitState) -> Ending:
    """Return what became of the trials of a split."""
    trials = state.record.trials()
    failed = failures(state.record, state.study.union_space(), state.problem.name)
    return Ending(len(trials), sum(trial.state == TrialState.PRUNED for trial in trials), tuple(failed))


def _concluded(state: SplitState) -> Ending:
    trials, study, found = state.record.trials(), state.study, counted(state)
    left, early = state.deadline.left, list[str]()
    if state[SEARCH] == CTRL_C:
        whole = f" of {study.n_trials}" if study.ends_by_count else ""
        early.append(f"{CTRL_C} after {found.trials}{whole} trials; `ranktune resume` runs more of them.")
    elif state[SEARCH] == IN_VAIN:
        early.append(f"{IN_VAIN}.")
        if boosted := [trial for trial in trials if grows(str(trial.params[SOLVER]))]:
            more = FURTHER
            took = more * sum(map(seconds_of, boosted)) / len(boosted) / state.session.executor.jobs
            early.append(f"{more} more would take about {took:.0f} s; on other data they gained nothing.")
    elif left > UNUSED * state.allotted:
        early.append(f"{left:.0f} of {state.allotted:.0f} seconds were not used: {state[SEARCH]}.")
    tried = {str(trial.params[SOLVER]) for trial in trials}
    if untried := [solver for solver in study.solvers if solver not in tried]:
        early.append(f"Not tried with {len(trials)} trial{'s' * (len(trials) > 1)}: {', '.join(untried)}.")
    if left < float("inf") and state.problem.test is not None and state[FIRST] and state[DEFAULT] is None:
        early.append("What tuning gained was not measured: the best default could not be fitted in time.")
    unfit = (*state[REFIT].unfit, *state[ROWS].unfit)
    return replace(found, failures=(*found.failures, *unfit), ended_early=" ".join(early))


CONCLUDE = Stage(
    "conclusion",
    _concluded,
    (SCORING, SEARCH, FIRST, REFIT, DEFAULT, ROWS),
    nothing,
    instead=Instead("the list of failed trials", lambda state: Ending(len(state.record.trials()))),
)


STAGES: tuple[Stage[Any], ...]
STAGES = (
    *(SCORING, SEARCH, CANDIDATES, FIRST, RESCORE, BLEND, REFIT, SERVE, SAVE, BASELINE, ESTIMATE, ANSWER),
    *(BEGIN, DEFAULT, REFER, EXPLAIN, ROWS, PROVE, SPREAD, CONCLUDE),
)
"""What a study does on each split."""
REPORTED = (SAVE, ROWS, DEFAULT, BASELINE, ESTIMATE, CONCLUDE)
"""The stages whose results, of all splits, the result of the study is made of."""
