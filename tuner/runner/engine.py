"""A study from beginning to end: prepare the data, run what is missing, choose, learn again, test, save."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from optuna.trial import TrialState
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.models.base import this_version
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.split import WHOLE
from ranktune.tuner.runner.joining import Declaration, share
from ranktune.tuner.runner.loop import Objective, TrialLoop
from ranktune.tuner.runner.ownership import Ownership
from ranktune.tuner.runner.progress import Progress, Silent
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.candidates import Candidate, best_by_solver, best_candidates, failures
from ranktune.tuner.selection.finals import Entry, blended_candidates, refit_all, rescore, save_entries, within
from ranktune.tuner.selection.leaderboard import alternatives, estimate, expected_on_test, leaderboard, mean_metrics
from ranktune.tuner.selection.results import Failure, Result, Row, SplitResult
from ranktune.tuner.selection.time_reserve import reserve
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.membership import this_host
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.storage.space_migration import migrate_space
from ranktune.tuner.study.compatibility import claim
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.home import StudyFolder, writing
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import Executor


def run_study(
    study: Study,
    problems: Sequence[Problem],
    folder: StudyFolder,
    executor: Executor,
    *,
    progress: Progress | None = None,
    objective: Objective = evaluate,
    deadline: Deadline | None = None,
    places: Locations | None = None,
    events: Events | None = None,
    owner: Ownership | None = None,
) -> Result:
    """Run the trials that are missing on every problem and return the conclusion, which is also saved in folder.

    The deadline is for all of it, the study's timeout from now where none is given. Each problem gets its part of the
    time that is left; what it does not use goes to the others. places is where the record is kept, in folder where it
    is None; owner holds the study there.
    """
    deadline = deadline or Deadline.after(study.timeout)
    begun = time.monotonic()
    run = _Run(
        study, folder, executor, progress or Silent(), objective, places or Locations(), events or Events(None), owner
    )
    run.events.write(Event.STUDY_STARTED, splits=len(problems), trials=study.n_trials, jobs=executor.jobs)
    # One thread for the sampler's small matrices too: more of them wait for each other while workers fill the cores.
    with threadpool_limits(limits=1):
        parts = [
            _run_split(run, problem, deadline.share(len(problems) - place)) for place, problem in enumerate(problems)
        ]
    result = replace(_concluded(study, parts, folder), seconds=round(time.monotonic() - begun, 3))
    with writing(folder.path):
        result.save(folder.result)
    folder.remove_data()
    run.events.write(Event.STUDY_FINISHED, solver=result.best.solver, seconds=result.seconds)
    return result


@dataclass(frozen=True, eq=False)
class _Run:
    """What all parts of a run share."""

    study: Study
    folder: StudyFolder
    executor: Executor
    progress: Progress
    objective: Objective
    places: Locations
    events: Events
    owner: Ownership | None

    def check(self) -> None:
        """Raise StudyError where another process has taken the study over."""
        if self.owner is not None:
            self.owner.check()

    def on_storage_event(self, event: str, message: str) -> None:
        """Log that the database is away or back."""
        self.events.write(Event(event), reason=message)

    def record(self, problem: Problem) -> Record:
        """Open the record of a split; workers that join find there what they have to know."""
        own = self.folder.split(problem.name)
        with writing(own):
            own.mkdir(exist_ok=True)
        name = record_name(self.folder.path.name, problem.name)
        record = Record(
            own, name, self.study.metric, self.places.storage, self.places.artifacts, on_event=self.on_storage_event
        )
        if self.owner is not None:
            record.leases.held = self.owner.held
        try:
            record.retried(lambda: claim(record.study, self.study, self.folder.digests()[problem.name]))
            record.retried(lambda: migrate_space(record.storage, record.study.study_name, self.study.union_space()))
            record.retried(lambda: self._declaration(problem).write(record.study))
            if self.places.artifacts is not None:
                share(problem.folder, Artifacts(self.places.artifacts))
        except BaseException:
            record.close()
            raise
        return record

    def _declaration(self, problem: Problem) -> Declaration:
        place = str(problem.folder.resolve())
        return Declaration(self.study.as_dict(), this_version(), this_host(), place, self.places.artifacts)


@dataclass(frozen=True, eq=False)
class _Part:
    """What was found on one problem, before it is put into rows."""

    name: str
    entries: list[Entry]
    estimate: Interval
    expected: Interval | None
    trials: int
    failures: list[Failure]
    model: Path
    stopped: int


def _run_split(run: _Run, problem: Problem, deadline: Deadline) -> _Part:
    study, executor, progress = run.study, run.executor, run.progress
    own = run.folder.split(problem.name)
    record = run.record(problem)
    try:
        TrialLoop(
            study,
            problem.name,
            record,
            Tasks(study, problem.folder),
            executor,
            progress,
            run.objective,
            deadline,
            partial(reserve, problem),
            per_solver=problem.development.n_queries < FEW_QUERIES,
            events=run.events,
            check=run.check,
        ).run()
        run.check()
        space = study.union_space()
        rivals, chosen = _chosen(
            study, problem, best_candidates(record, space, study.limits), executor, progress, deadline
        )
        progress.stage(_label(problem) + "learning the best of each solver for use")
        entries, unfit = refit_all(study, problem, chosen, executor, deadline)
        entries = within(entries, study.limits)
        executor.call(save_entries, entries, problem, own)
        promised = _estimate(study, entries[0].candidate, chosen, rivals, record)
        return _Part(
            problem.name,
            entries,
            promised,
            expected_on_test(promised, entries[0], study.metric),
            len(record.trials()),
            failures(record, space, problem.name) + unfit,
            (own / "model.json").resolve(),
            sum(trial.state == TrialState.PRUNED for trial in record.trials()),
        )
    finally:
        record.close()


def _chosen(
    study: Study,
    problem: Problem,
    found: list[Candidate],
    executor: Executor,
    progress: Progress,
    deadline: Deadline,
) -> tuple[list[Candidate], list[Candidate]]:
    """Return all candidates, blends among them, and of those one a solver and the blends, the chosen first."""
    if problem.fresh:
        progress.stage(_label(problem) + "scoring the best candidates again, on fresh folds")
    found = rescore(study, problem, found, executor, deadline)
    if sum(candidate.scores is not None for candidate in found) > 1:
        progress.stage(_label(problem) + "blending them")
        return executor.call(blended_candidates, study, problem, found)
    return found, best_by_solver(found)


def _estimate(
    study: Study, chosen: Candidate, settled_ones: Sequence[Candidate], rivals: Sequence[Candidate], record: Record
) -> Interval:
    """Return what validation promises of the chosen, which as it was used may have a bag of seeds."""
    first = next(one for one in settled_ones if (one.solver, one.number) == (chosen.solver, chosen.number))
    trials: dict[int, Floats] = {
        number_of(trial): record.per_query(trial)[study.metric]
        for trial in record.trials()
        if trial.state == TrialState.COMPLETE
    }
    return estimate(first, rivals, trials, np.random.default_rng([study.seed, 6]))


def _label(problem: Problem) -> str:
    return f"{problem.name}: " if problem.name else ""


def _concluded(study: Study, parts: Sequence[_Part], folder: StudyFolder) -> Result:
    """Return the conclusion over all parts, without the time it took."""
    generator = np.random.default_rng([study.seed, 2])  # of intervals and tests: the same however the run was cut
    nested = study.plan == "nested"
    judged = [part for part in parts if not (nested and part.name == WHOLE)]
    rows = leaderboard([part.entries for part in judged], study.metric, generator)
    own = [rows if len(parts) == 1 else leaderboard([part.entries], study.metric, generator) for part in parts]
    splits = tuple(_split_result(study, part, rows) for part, rows in zip(parts, own, strict=True))
    return Result(
        study=folder.path.name,
        data=study.data,
        metric=study.metric,
        best=rows[0],
        estimate=_mean_interval([part.estimate for part in judged]),
        expected_on_test=_expected(judged),
        alternatives=alternatives(rows),
        leaderboard=tuple(rows),
        test_metrics=mean_metrics([part.entries[0] for part in judged], study.metrics),
        trials=sum(part.trials for part in parts),
        failures=tuple(failure for part in parts for failure in part.failures),
        stopped=sum(part.stopped for part in parts),
        seconds=0.0,
        model=(splits[-1] if nested else max(splits, key=lambda split: split.estimate.mean)).model,
        folder=str(folder.path.resolve()),
        folds=splits,
    )


def _mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of several estimates. Their queries overlap, so that its limits are means too, not narrower."""
    return Interval(*(float(np.mean([getattr(own, end) for own in intervals])) for end in ("mean", "low", "high")))


def _expected(parts: Sequence[_Part]) -> Interval | None:
    """Return what the mean over the test sets should be, whose queries differ: their noise is averaged out."""
    known = [part.expected for part in parts if part.expected is not None]
    if len(known) < len(parts):
        return None
    whole = _mean_interval([part.estimate for part in parts])
    noise = [
        (own.high - own.mean) ** 2 - (part.estimate.high - part.estimate.mean) ** 2
        for own, part in zip(known, parts, strict=True)
    ]
    spread = float(np.sqrt(max(sum(noise), 0.0))) / len(parts)
    low, high = (float(np.hypot(end - whole.mean, spread)) for end in (whole.low, whole.high))
    return Interval(whole.mean, whole.mean - low, whole.mean + high)


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
