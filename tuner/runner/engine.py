"""A study from beginning to end: run the missing trials, select, refit, test, save."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from optuna.trial import TrialState
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.compiled import remark_on_cache
from ranktune.solvers.core.errors import listed, or_left_out
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.runner.decisions import first_look, scored_once
from ranktune.tuner.runner.joining import Declaration, share
from ranktune.tuner.runner.look import Look, look, worth_a_look
from ranktune.tuner.runner.loop import Objective, TrialLoop
from ranktune.tuner.runner.ownership import Ownership
from ranktune.tuner.runner.progress import Progress, Silent
from ranktune.tuner.runner.repair import repair
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.baseline import baseline_row, gain_over
from ranktune.tuner.selection.baseline_values import BaselineValues, baseline_values
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.candidates import Candidate, best_by_solver
from ranktune.tuner.selection.explaining import save_explanations, time_for
from ranktune.tuner.selection.finals import Choice, Entry, blended_candidates, keep_within, refit_all, save_entries
from ranktune.tuner.selection.finished_trials import best_candidates, failures
from ranktune.tuner.selection.leaderboard import (
    alternatives,
    estimate,
    expected_on_test,
    leaderboard,
    mean_expected,
    mean_interval,
    mean_metrics,
)
from ranktune.tuner.selection.rescoring import rescored
from ranktune.tuner.selection.results import DISTILLED, Failure, Gain, Result, Row, SplitResult
from ranktune.tuner.selection.serving import Served, restriction, served, warn_if_unserved
from ranktune.tuner.selection.time_reserve import fit_seconds, reserve
from ranktune.tuner.selection.tuning_gain import DefaultModel, best_default, default_model, tuning_gain
from ranktune.tuner.splits.archive import is_first_use, note_use
from ranktune.tuner.splits.split import WHOLE
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.membership import this_host
from ranktune.tuner.storage.record import DamagedArrays, Record, number_of
from ranktune.tuner.storage.space_migration import migrate_space
from ranktune.tuner.study.compatibility import claim
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events, lost_trials
from ranktune.tuner.study.home import StudyFolder, writing
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import Executor

UNUSED = 0.1
"""Share of the given time that may be left without an explanation."""


@dataclass(frozen=True, eq=False)
class StudyRun:
    """A run of a study from its problems to its result.

    Attributes
    ----------
    locations : Locations
        Where the record is.
    owner : Ownership or None
        The hold on a study whose record is in a database.
    """

    study: Study
    folder: StudyFolder
    executor: Executor
    progress: Progress = field(default_factory=Silent)
    objective: Objective = evaluate
    locations: Locations = field(default_factory=Locations)
    events: Events = field(default_factory=lambda: Events(None))
    owner: Ownership | None = None

    def run(self, problems: Sequence[Problem], deadline: Deadline | None = None) -> Result:
        """Run the missing trials of every problem, and return the result, which is saved in the folder too.

        The deadline is that of the whole run, by default the study's timeout from now. Each problem gets an equal share
        of the time that is left.
        """
        deadline = deadline or Deadline.after(self.study.timeout)
        begun = time.monotonic()
        self.events.write(
            Event.STUDY_STARTED, splits=len(problems), trials=self.study.n_trials, jobs=self.executor.jobs
        )
        if is_first_use(this_version()):
            self.progress.stage("compiling, once: the first study on a machine takes about half a minute longer")
        if line := remark_on_cache():
            self.progress.stage(line)
        # One thread for the sampler's small matrices too: several would compete with the workers for the cores.
        with threadpool_limits(limits=1):
            parts = [
                _run_split(self, problem, deadline.share(len(problems) - place))
                for place, problem in enumerate(problems)
            ]
        result = replace(_concluded(self, parts), seconds=round(time.monotonic() - begun, 3))
        with writing(self.folder.path):
            result.save(self.folder.result)
        self.folder.remove_data()
        note_use(this_version())
        self.events.write(Event.STUDY_FINISHED, solver=result.best.solver, seconds=result.seconds)
        return result

    def stage(self, name: str, text: str) -> None:
        """Log that a stage of the study begins, and show the text."""
        self.events.write(Event.STAGE, name=name)
        if text:
            self.progress.stage(text)

    def check(self) -> None:
        """Raise StudyError if another process has taken the study over."""
        if self.owner is not None:
            self.owner.check()

    def on_storage_event(self, event: str, message: str) -> None:
        """Log that the database is away or back."""
        self.events.write(Event(event), reason=message)

    def record(self, problem: Problem) -> Record:
        """Open the record of a split, with what workers need to join it."""
        own = self.folder.split(problem.name)
        with writing(own):
            own.mkdir(exist_ok=True)
        name = record_name(self.folder.path.name, problem.name)
        record = Record(
            own,
            name,
            self.study.metric,
            self.locations.storage,
            self.locations.artifacts,
            on_event=self.on_storage_event,
            weights=problem.judged_weights,
        )
        if self.owner is not None:
            record.leases.held = self.owner.held
        try:
            digest = self.folder.digests()[problem.name]
            record.retried(lambda: claim(record.study, self.study, digest, weighted=record.weights is not None))
            record.retried(lambda: migrate_space(record.storage, record.study.study_name, self.study.union_space()))
            record.retried(lambda: self._declaration(problem).write(record.study))
            if self.locations.artifacts is not None:
                share(problem.folder, Artifacts(self.locations.artifacts))
        except BaseException:
            record.close()
            raise
        return record

    def _declaration(self, problem: Problem) -> Declaration:
        place = str(problem.folder.resolve())
        return Declaration(self.study.as_dict(), this_version(), this_host(), place, self.locations.artifacts)


@dataclass(frozen=True, eq=False)
class _Part:
    """The findings on one problem, before they become rows."""

    name: str
    entries: list[Entry]
    served: Served
    default: DefaultModel | None
    estimate: Interval
    expected: Interval | None
    trials: int
    failures: list[Failure]
    model: Path
    stopped: int
    ended_early: str
    baseline: BaselineValues | None = None


def _run_split(run: StudyRun, problem: Problem, deadline: Deadline) -> _Part:
    given, begun = deadline.left, time.monotonic()
    study, own = run.study, run.folder.split(problem.name)
    space = study.union_space()
    label = f"{problem.name}: " if problem.name else ""
    record = run.record(problem)
    tasks = Tasks(study, problem.folder)
    try:
        if lost := lost_trials(run.folder.path, problem.name, map(number_of, record.trials())):
            run.stage("repairing", label + lost)
        begun = bool(record.trials())
        if scored_once(own, problem, study, deadline.left * run.executor.jobs, begun=begun):
            problem = problem.by_one_part()
        looked = first_look(own, lambda: _look(run, problem, tasks, deadline), begun=begun)
        if looked is not None and looked.parts == 1:
            problem = problem.by_one_part()
        record.weights = problem.judged_weights
        run.stage("search", "")
        begin = partial(
            TrialLoop,
            study,
            problem.name,
            record,
            tasks,
            run.executor,
            run.progress,
            run.objective,
            deadline,
            partial(reserve, problem),
            looked=looked,
            one_part=problem.given_split,
            fit_seconds=fit_seconds(problem),
            per_solver=problem.development.n_queries < FEW_QUERIES,
            events=run.events,
            check=run.check,
        )
        try:
            loop = begin()
        except DamagedArrays:
            repair(record, space, tasks, run.executor, run.objective, run.progress.stage)
            loop = begin()
        loop.run()
        run.check()
        again = problem.fresh and deadline.left < float("inf")
        run.stage("rescoring", label + "scoring the best candidates again, on fresh folds" if again else "")
        found = best_candidates(record, space, study.limits, believed=looked is None)
        found = rescored(study, problem, found, run.executor, deadline)
        best = best_by_solver(found)
        choice = Choice(best, best[0])
        if sum(candidate.scores is not None for candidate in found) > 1:
            run.stage("blending", label + "blending them")
            found, choice = run.executor.call(blended_candidates, study, problem, found)
        run.stage("refitting", label + "refitting the best of each solver")
        entries, unfit = refit_all(study, problem, choice.ordered, run.executor, deadline)
        entries = keep_within(study, entries)
        end = Served(entries, choice.unrestricted.solver)
        if study.serve:
            run.stage("serving", label + f"fitting the choice to {listed(study.serve)}")
            end = run.executor.call(served, study, problem, entries, choice.unrestricted, deadline)
            entries = end.entries
            warn_if_unserved(study, entries)
            found += [entry.candidate for entry in entries if entry.candidate.solver == DISTILLED]
        default = default_model(study, problem, best_default(record, space), entries[0], run.executor, deadline)
        run.stage("reporting", "")
        baseline = None if study.baseline is None else run.executor.call(baseline_values, study, problem)
        run.executor.call(save_entries, entries, problem, own, baseline)
        seconds = time_for(time.monotonic() - begun, deadline.left)
        explain = partial(run.executor.call, save_explanations, entries, problem, study.metric, own, seconds)
        or_left_out("the explanation of the models", explain, None)
        expected = _estimate(study, entries[0].candidate, [*choice.ordered, *found], found, record)
        return _Part(
            problem.name,
            entries,
            end,
            default,
            expected,
            expected_on_test(expected, entries[0], study.metric),
            len(record.trials()),
            failures(record, space, problem.name) + unfit,
            (own / "model.json").resolve(),
            sum(trial.state == TrialState.PRUNED for trial in record.trials()),
            _unused(given, deadline.left, loop.ended),
            baseline,
        )
    finally:
        record.close()


def _unused(given: float, left: float, why: str) -> str:
    """Return why much of the given time was not used, in words; empty where most of it was."""
    if given == float("inf") or left <= UNUSED * given:
        return ""
    return f"{left:.0f} of {given:.0f} seconds were not used: {why}."


def _look(run: StudyRun, problem: Problem, tasks: Tasks, deadline: Deadline) -> Look | None:
    """Return the first look at the solvers, None where full trials are cheap enough to compare them."""
    study = run.study
    if study.full or study.strict or not worth_a_look(problem, study.solvers, deadline.left):
        return None
    run.stage("look", "a first look at every solver, on samples of the queries")
    return look(problem, study.union_space(), tasks, run.executor, deadline.left)


def _estimate(
    study: Study, final: Candidate, best: Sequence[Candidate], found: Sequence[Candidate], record: Record
) -> Interval:
    """Return the estimate of the selected candidate, whose final model may be a bag of seeds."""
    selected = next(one for one in best if (one.solver, one.number) == (final.solver, final.number))
    complete = [trial for trial in record.trials() if trial.state == TrialState.COMPLETE]
    trials = {number_of(trial): record.per_query(trial)[study.metric] for trial in complete}
    solvers = {number_of(trial): str(trial.params[SOLVER]) for trial in complete}
    return estimate(selected, found, trials, solvers, np.random.default_rng([study.seed, 6]))


def _concluded(run: StudyRun, parts: Sequence[_Part]) -> Result:
    """Return the result over all parts, without the time it took."""
    study, folder = run.study, run.folder
    generator = np.random.default_rng([study.seed, 2])  # for intervals and tests: the same for a resumed run
    nested = study.plan == "nested"
    judged = [part for part in parts if not (nested and part.name == WHOLE)]
    rows = _board(study, judged, generator)
    own = [rows if len(parts) == 1 else _board(study, [part], generator) for part in parts]
    splits = tuple(_split_result(study, part, rows) for part, rows in zip(parts, own, strict=True))
    return Result(
        study=folder.path.name,
        data=study.data,
        metric=study.metric,
        best=rows[0],
        estimate=mean_interval([part.estimate for part in judged]),
        expected_on_test=mean_expected([part.expected for part in judged], [part.estimate for part in judged]),
        alternatives=alternatives(rows),
        leaderboard=tuple(rows),
        test_metrics=mean_metrics([part.entries[0] for part in judged], study.metrics),
        trials=sum(part.trials for part in parts),
        failures=tuple(failure for part in parts for failure in part.failures),
        stopped=sum(part.stopped for part in parts),
        seconds=0.0,
        model=(splits[-1] if nested else max(splits, key=lambda split: split.estimate.mean)).model,
        folder=str(folder.path.resolve()),
        ended_early=" ".join(dict.fromkeys(part.ended_early for part in parts if part.ended_early)),
        folds=splits,
        monotone=dict(judged[-1].entries[0].model.monotone),
        restriction=restriction(study, [part.served for part in judged], generator),
        tuning=tuning_gain(
            [part.default for part in judged],
            [part.entries[0].test[study.metric] for part in judged if part.entries[0].test],
            np.random.default_rng([study.seed, 7]),
            [part.entries[0].test_weights for part in judged],
        ),
        gain=_gain(study, judged),
    )


def _board(study: Study, parts: Sequence[_Part], generator: np.random.Generator) -> list[Row]:
    """Return the leaderboard of some parts, with the baseline as its last row."""
    rows = leaderboard([part.entries for part in parts], study.metric, generator, study.serve)
    known = [part.baseline for part in parts if part.baseline is not None]
    if len(known) < len(parts):
        return rows
    return [*rows, baseline_row(known, [part.entries[0] for part in parts], study.metric, _generator_of_gain(study))]


def _gain(study: Study, parts: Sequence[_Part]) -> Gain | None:
    known = [part.baseline for part in parts if part.baseline is not None]
    if study.baseline is None or len(known) < len(parts):
        return None
    chosen, estimates = [part.entries[0] for part in parts], [part.estimate for part in parts]
    return gain_over(study.baseline, known, chosen, estimates, study.metric, _generator_of_gain(study))


def _generator_of_gain(study: Study) -> np.random.Generator:
    """Return a generator of its own: a baseline changes no other number of a study."""
    return np.random.default_rng([study.seed, 9])


def _split_result(study: Study, part: _Part, rows: Sequence[Row]) -> SplitResult:
    return SplitResult(
        name=part.name,
        best=rows[0],
        estimate=part.estimate,
        expected_on_test=part.expected,
        alternatives=alternatives(rows),
        leaderboard=tuple(rows),
        test_metrics=mean_metrics(part.entries[:1], study.metrics),
        trials=part.trials,
        failures=tuple(part.failures),
        stopped=part.stopped,
        model=str(part.model),
    )
