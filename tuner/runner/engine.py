"""A study from beginning to end: every split goes through the stages, and the result is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.errors import LeftOut, or_left_out
from ranktune.solvers.core.files.private import cache_folder, private_folder
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.core.machine_code.folders import is_built
from ranktune.tuner.runner.choice_stages import BASELINE, ESTIMATE, SAVE
from ranktune.tuner.runner.final_stages import CONCLUDE, DEFAULT, REPORTED, ROWS, STAGES, counted
from ranktune.tuner.runner.refitting import Refitted
from ranktune.tuner.runner.retuning_stage import DECIDE
from ranktune.tuner.runner.search_stages import ANSWERED
from ranktune.tuner.runner.stage import SplitState, Stage, StageSession, run_stages
from ranktune.tuner.selection.estimate import expected_on_test, mean_expected, mean_interval
from ranktune.tuner.selection.finished_trials import best_composition, set_aside
from ranktune.tuner.selection.leaderboard import (
    baseline_row,
    gain_over,
    leaderboard,
    likely_baselines,
    mean_metrics,
    preference,
    tuning_gain,
    uncompared,
    with_beside,
)
from ranktune.tuner.selection.rescoring import RESCORED
from ranktune.tuner.selection.results import Result, SplitResult
from ranktune.tuner.selection.rows import LeaderboardRow
from ranktune.tuner.selection.serving import restriction
from ranktune.tuner.splits.seals import remove_sealed
from ranktune.tuner.splits.split import WHOLE
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem


@dataclass(frozen=True, eq=False)
class StudyRun(StageSession):
    """A run of a study from its problems to its result."""

    stages: tuple[Stage[Any], ...] = STAGES

    def run(self, problems: Sequence[SplitProblem], deadline: Deadline | None = None) -> Result:
        """Run the missing trials of every problem, and return the result, which is saved in the folder too.

        The deadline is that of the whole run, by default the study's timeout from now. Each problem gets an equal share
        of the time that is left.
        """
        deadline = deadline or Deadline.after(self.study.timeout)
        begun = time.monotonic()
        self.events.write(Event.STUDY_STARTED, splits=len(problems), trials=self.study.trials, jobs=self.executor.jobs)
        if not is_built() and _is_first_use(this_version()):
            self.progress.stage("compiling, once: the first study on a machine takes about half a minute longer")
        # One thread for the sampler's small matrices too: several would compete with the workers for the cores.
        states = list[SplitState]()

        def answer(state: SplitState) -> None:
            """Show what nothing that follows changes, and save it, once each split has a choice."""
            if len(states) == len(problems) - 1 and not self.study.after:
                found = report(self, [*states, state], time.monotonic() - begun, is_complete=False)
                with writing(self.folder.path):
                    found.save(self.folder.result)
                self.progress.answer(found)

        with threadpool_limits(limits=1):
            for place, problem in enumerate(problems):
                states.append(self._run_split(problem, deadline.share(len(problems) - place), answer))
        result = report(self, states, time.monotonic() - begun)
        for state in states:
            state.record.close()  # which was read again
        with writing(self.folder.path):
            result.save(self.folder.result)
            for problem in problems:
                for name in (RESCORED, ANSWERED):
                    remove_sealed(self.folder.split(problem.name) / name)
        self.folder.remove_data()
        _note_use(this_version())
        self.events.write(Event.STUDY_FINISHED, solver=result.best.solver, seconds=result.seconds)
        return result

    def _run_split(self, problem: SplitProblem, deadline: Deadline, answer: Callable[[SplitState], None]) -> SplitState:
        record = self.record(problem)
        try:
            configured = replace(problem, policy=self.policy)
            state = SplitState(self, configured, record, deadline, time.monotonic(), deadline.left, answer=answer)
            stages = (*self.stages, DECIDE) if self.study.after else self.stages
            return run_stages(stages, state, keep=REPORTED)
        finally:
            record.close()


def _is_first_use(version: str) -> bool:
    """Return whether no study of this version has ended on this machine, so that its solvers are still compiled."""
    return not (cache_folder() / "used" / version).exists()


def _note_use(version: str) -> None:
    """Note that a study of this version has ended on this machine."""
    with suppress(OSError):
        (private_folder("used") / version).touch()


def report(session: StageSession, states: Sequence[SplitState], seconds: float, *, is_complete: bool = True) -> Result:
    """Return the result of a study that took so many seconds; what of it fails is left out.

    One that is not complete has the chosen models alone: its numbers are those of the complete one.
    """
    study, folder = session.study, session.folder.path
    if not is_complete:
        states = [_without_others(state) for state in states]
    generator = np.random.default_rng([study.seed, 2])  # for intervals and tests: the same for a resumed run
    nested = study.plan == "nested"
    compared = [state for state in states if not (nested and state.problem.name == WHOLE)]
    left_out: list[LeftOut] = []

    def board(states: Sequence[SplitState]) -> list[LeaderboardRow]:
        rows = or_left_out("the comparison of models", lambda: _board(study, states, generator), None, into=left_out)
        return uncompared([state[ROWS].entries for state in states]) if rows is None else rows

    rows = board(compared)
    boards = [rows if len(states) == 1 else board([state]) for state in states]
    folds = tuple(
        _of_split(study, state, scored, left_out, is_complete=is_complete)
        for state, scored in zip(states, boards, strict=True)
    )
    counted = [fold for fold, state in zip(folds, states, strict=True) if state in compared]
    entries = [state[SAVE].entries[0] for state in compared]
    estimates = [fold.estimate for fold in counted]
    baselines = [scored for state in compared if (scored := state[BASELINE]) is not None]
    gain = None
    if study.baseline is not None and len(baselines) == len(entries):
        arguments = (study.baseline, baselines, entries, estimates, study.metric, _generator_of_gain(study))
        gain = or_left_out("the gain over the baseline", partial(gain_over, *arguments), None, into=left_out)
    clicked = None
    if study.clicks and is_complete:
        preferred = partial(preference, study, [state[ROWS].entries for state in compared], folder)
        clicked = or_left_out("where clicks and judgments disagree", preferred, None, into=left_out)
    tests, weights = [entry.test[study.metric] for entry in entries if entry.test], [e.test_weights for e in entries]
    defaults, seed = [state[DEFAULT] for state in compared], np.random.default_rng([study.seed, 7])
    gained = partial(tuning_gain, defaults, tests, seed, weights)
    restricted = partial(restriction, study, [state[SAVE] for state in compared], generator)
    tuning = or_left_out("the gain of tuning", gained, None, into=left_out)
    cost = or_left_out("what the systems cost", restricted, None, into=left_out)
    for missing in left_out if is_complete else ():
        session.log(missing)
    early = (state[CONCLUDE].ended_early for state in states)
    return Result(
        study=folder.name,
        data=study.data,
        metric=study.metric,
        leaderboard=tuple(rows),
        estimate=mean_interval(estimates),
        expected_on_test=mean_expected([fold.expected_on_test for fold in counted], estimates),
        test_metrics=mean_metrics(entries, study.metrics),
        trials=sum(fold.trials for fold in folds),
        failures=tuple(failure for fold in folds for failure in fold.failures),
        stopped=sum(fold.stopped for fold in folds),
        set_aside=folds[0].set_aside if len(folds) == 1 else "",
        composition=folds[0].composition if len(folds) == 1 else None,
        seconds=round(seconds, 3),
        model=(folds[-1] if nested else max(folds, key=lambda fold: fold.estimate.mean)).model,
        folder=str(folder.resolve()),
        ended_early=" ".join(dict.fromkeys(line for line in early if line)),
        queries=sum(state.problem.development.n_queries for state in compared),
        test_queries=sum(0 if state.problem.test is None else state.problem.test.n_queries for state in compared),
        baselines=() if study.baseline else likely_baselines(states[-1].problem.development),
        folds=folds if len(folds) > 1 else (),
        monotone=dict(entries[-1].model.monotone),
        restriction=cost,
        tuning=tuning,
        gain=gain,
        clicks=clicked,
        left_out=(*(missing for state in states for missing in state.left_out), *left_out),
        stages={name: round(sum(state.seconds[name] for state in states), 3) for name in states[-1].seconds},
        is_complete=is_complete,
    )


def _board(study: Study, states: Sequence[SplitState], generator: np.random.Generator) -> list[LeaderboardRow]:
    """Return the leaderboard of some splits, with the baseline as its last row."""
    splits = [state[ROWS].entries for state in states]
    rows = leaderboard(splits, study.metric, generator, study.serve)
    baselines = [scored for state in states if (scored := state[BASELINE]) is not None]
    if len(baselines) == len(states):
        chosen = [scored[0] for scored in splits]
        rows = [*rows, baseline_row(baselines, chosen, study.metric, _generator_of_gain(study))]
    return with_beside(rows, splits, baselines, study) if study.clicks else rows


def _generator_of_gain(study: Study) -> np.random.Generator:
    """Return a generator that nothing else uses: a baseline changes no other number of a study."""
    return np.random.default_rng([study.seed, 9])


def _without_others(state: SplitState) -> SplitState:
    """Return a state as if the chosen model were the only one."""
    of_trials = state[CONCLUDE] if CONCLUDE.name in state.results else counted(state)
    return state.having(ROWS, Refitted(state[SAVE].entries[:1])).having(DEFAULT, None).having(CONCLUDE, of_trials)


def _of_split(
    study: Study, state: SplitState, rows: Sequence[LeaderboardRow], left_out: list[LeftOut], *, is_complete: bool
) -> SplitResult:
    chosen, conclusion, interval = state[SAVE].entries[0], state[CONCLUDE], state[ESTIMATE]
    expected = partial(expected_on_test, interval, chosen, study.metric)
    return SplitResult(
        name=state.problem.name,
        leaderboard=tuple(rows),
        estimate=interval,
        expected_on_test=or_left_out("the interval expected on test queries", expected, None, into=left_out),
        test_metrics=mean_metrics([chosen], study.metrics),
        trials=conclusion.trials,
        failures=conclusion.failures,
        stopped=conclusion.stopped,
        set_aside=set_aside(
            state.record, study.union_space(), study.limits, [entry.candidate for entry in state[ROWS].entries]
        )
        if is_complete
        else "",
        composition=best_composition(state.record, study.limits) if is_complete else None,
        model=str((state.session.folder.split(state.problem.name) / "model.json").resolve()),
    )
