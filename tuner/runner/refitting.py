"""The final models of a split: those of the choice are fitted first, then those of the other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import LeftOut, RankTuneError, StudyError, or_left_out
from ranktune.solvers.models.blend import needs_of
from ranktune.tuner.evaluation.evaluate import LimitReached, evaluate
from ranktune.tuner.evaluation.models import has_model
from ranktune.tuner.evaluation.plans import Final, FinalOutcome
from ranktune.tuner.selection.finals import (
    Candidate,
    FinalChoice,
    Finalist,
    build_model,
    entry_of,
    is_within,
    keep_within,
    parts_of,
    task_of,
)
from ranktune.tuner.selection.rows import Failure
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import SplitProblem

if TYPE_CHECKING:
    from ranktune.tuner.workers.executor import Executor


@dataclass
class Refitted:
    """Candidates with their final models, those whose fit failed, what else failed, and what fits others."""

    entries: list[Finalist] = field(default_factory=list)
    unfit: list[Failure] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    refits: Refits | None = None


class Refits:
    """The final fits of a split, each of which is made once, whatever rows have its model.

    What is refitted, and with how many seeds, is decided for all rows at once. Where time is too short to refit a
    candidate, the model that its trial left is used; without one it has no entry, unless it is part of the first.
    Refits end at the deadline, boosting with the rounds that it has.

    Attributes
    ----------
    tried : list of Candidate
        Those of which the choice was made.
    """

    def __init__(
        self, study: Study, problem: SplitProblem, choice: FinalChoice, executor: Executor, deadline: Deadline
    ) -> None:
        self._study, self._problem, self._choice, self._executor = study, problem, choice, executor
        self._deadline, self._failed, self.tried = deadline, set[Candidate](), list[Candidate]()
        plain, first = parts_of(choice.ordered), choice.ordered[0]
        self._left = {member: task_of(study, problem, member) for member in plain}
        fits, needed = [has_model(self._left[member]) for member in plain], len(first.members or (first,))
        bag = problem.durations.after_blending(plain, needed, fits, executor.jobs, deadline.left)
        self._refitted, self._as_left = ([plain[place] for place in places] for places in (bag.places, bag.as_left))
        self._used = {member: member for member in plain}
        for place, seeds in bag.seeds.items() if study.refit else ():
            member = plain[place]
            if "seeds" not in member.params:  # unless its seeds were tuned
                self._used[member] = replace(member, params={**member.params, "seeds": seeds})
        self._until = deadline.before(problem.durations.reporting(len(plain)))
        self._jobs: dict[Candidate, Future[FinalOutcome]] = {}

    def choose(self) -> Refitted:
        """Fit candidates in their order until one has a model that keeps the limits and that the systems can load.

        Raises RankTuneError where none has a model. Called again, it goes on with the others.
        """
        ordered, found = self._choice.ordered, Refitted()
        group = [each for each in ordered if each in (ordered[0], self._choice.unrestricted)]
        while waiting := [each for each in ordered if each not in self.tried]:
            late = self._until.left <= 0.0
            ready = [each for each in waiting if all(self._is_done(member) for member in parts_of([each]))]
            if self.tried:
                group = ((late and ready) or waiting)[:1]
            if late and found.entries and not ready:
                break
            self.begin(group)
            self.tried += group
            more = self.ended(group)
            found.entries += more.entries
            found.unfit += more.unfit
            found.left_out += more.left_out
            study = self._study
            if any(is_within(study, e) and can_load(study.serve, needs_of(e.model)) for e in more.entries):
                break
        if not found.entries:
            causes = [failure.error for failure in found.unfit] + [missing.error for missing in found.left_out]
            raise RankTuneError(f"no candidate could be refitted: {'; '.join(dict.fromkeys(causes))}")
        return replace(found, entries=keep_within(self._study, found.entries), refits=self)

    def begin(self, candidates: Sequence[Candidate]) -> None:
        """Begin the fits of candidates that have not begun, as many as there is time for."""
        study, executor, durations = self._study, self._executor, self._problem.durations
        parts = [member for member in parts_of(candidates) if member not in self._jobs]
        refitted, threads = [member for member in parts if member in self._refitted], 1
        limits = dict(zip(refitted, durations.refit_limits(refitted, executor.jobs, self._deadline.left), strict=True))
        if self._deadline.left < float("inf"):
            threads = max(1, executor.jobs // max(len(refitted), 1))
        else:  # the longest fits first, so that the last ones end together
            refitted.sort(key=lambda member: -member.fit_seconds)
        for member in (*refitted, *(member for member in parts if member in self._as_left)):
            limit = min(limits.get(member, float("inf")), self._until.left)  # in this process one follows the other
            task = task_of(study, self._problem, self._used[member])
            plan = Final(on_everything=False)
            if member in limits:
                plan = Final(study.refit or not self._problem.given_split, instead=self._left[member])
            self._jobs[member] = executor.submit(evaluate, plan, replace(task, limit=limit, threads=threads))

    def ended(self, candidates: Sequence[Candidate]) -> Refitted:
        """Return the candidates with their models, once the fits that have begun have ended, or at the deadline."""
        parts = [member for member in parts_of(candidates) if member in self._jobs]
        in_time = self._until.end([self._jobs[member] for member in parts], self._executor.stop, self._suffices)
        failed = {member: error for member in parts if (error := self._jobs[member].exception()) is not None}
        unfit = [
            _failure(self._problem, member, error if in_time else LimitReached())
            for member, error in failed.items()
            if member not in self._failed
        ]
        self._failed |= failed.keys()
        arguments = (self._study, self._problem, candidates, self._used, self.models(parts))
        entries, left_out = self._executor.call(_entries, *arguments)
        return Refitted(entries, unfit, left_out)

    def models(self, parts: Sequence[Candidate] | None = None) -> dict[Candidate, FinalOutcome]:
        """Return the models of parts, by default of those of the choice, once their fits have ended.

        That of a model that a trial left took as long as its trial.
        """
        wanted = parts_of(self.tried) if parts is None else parts
        jobs = {member: self._jobs[member] for member in wanted if member in self._jobs}
        return {
            member: replace(job.result(), seconds=member.seconds) if member in self._as_left else job.result()
            for member, job in jobs.items()
            if job.exception() is None
        }

    @property
    def parts(self) -> list[Candidate]:
        """The candidates whose fits have begun."""
        return list(self._jobs)

    @property
    def others(self) -> list[Candidate]:
        """The candidates that are rows beside those of which the choice was made."""
        return [each for each in self._choice.ordered if each not in self.tried]

    def _is_done(self, member: Candidate) -> bool:
        return member in self._jobs and self._jobs[member].done() and self._jobs[member].exception() is None

    def _suffices(self) -> bool:
        """Return whether what has ended makes a row."""
        return any(all(map(self._is_done, parts_of([each]))) for each in self._choice.ordered)


def refit_one(study: Study, problem: SplitProblem, candidates: Sequence[Candidate], executor: Executor) -> Refitted:
    """Return the first candidate that can be fitted as its trial was, on the queries of its first fold, and failures.

    Raises StudyError if none can.
    """
    unfit: list[Failure] = []
    for candidate in candidates:
        job = executor.submit(_entry_as_tried, study, problem, candidate)
        if (error := job.exception()) is None:
            return Refitted([job.result()], unfit)
        unfit.append(_failure(problem, candidate, error))
    raise StudyError(f"no candidate could be refitted: {'; '.join(failure.error for failure in unfit)}")


def _entry_as_tried(study: Study, problem: SplitProblem, candidate: Candidate) -> Finalist:
    plan = Final(on_everything=not isinstance(problem.plan, tuple))
    return entry_of(study, problem, candidate, evaluate(plan, task_of(study, problem, candidate)))


def _failure(problem: SplitProblem, candidate: Candidate, error: BaseException) -> Failure:
    return Failure(problem.name, None, candidate.solver, f"{type(error).__name__}: {error}")


def _entries(
    study: Study,
    problem: SplitProblem,
    chosen: Sequence[Candidate],
    used: Mapping[Candidate, Candidate],
    models: Mapping[Candidate, FinalOutcome],
) -> tuple[list[Finalist], list[LeftOut]]:
    """Return the entries of the candidates whose refit succeeded, with test scores, and what failed."""
    left_out: list[LeftOut] = []

    def made(candidate: Candidate) -> Finalist | None:
        refitted = build_model(candidate, models, problem)
        return None if refitted is None else entry_of(study, problem, used.get(candidate, candidate), refitted)

    entries = [or_left_out(f"the model of {c.solver}", partial(made, c), None, into=left_out) for c in chosen]
    return [entry for entry in entries if entry is not None], left_out
