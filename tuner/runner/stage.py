"""A study is a list of stages: each has a name, the stages whose results it needs, and a function of what is known.

A stage can be tested, timed, resumed and replaced alone. A new one is a Stage in the list. Its result is under the
stage itself, `state[STAGE]`: no other class has it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ranktune.solvers.core.errors import LeftOut, StudyError, or_left_out
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.runner.joining import Declaration, share
from ranktune.tuner.search.loop import Objective
from ranktune.tuner.search.progress import Progress, Silent
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.membership import Ownership, this_host
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.space_migration import migrate_space
from ranktune.tuner.study.compatibility import claim
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.home import StudyFolder, writing
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.workers.executor import Executor, InProcess


@dataclass(frozen=True, eq=False)
class StageSession:
    """A study while a process runs it.

    Attributes
    ----------
    locations : Locations
        Where the record is.
    owner : Ownership or None
        The hold on a study whose record is in a database.
    policy : Policy
        What decides on every split. Trials carry their part of it to workers that join.
    """

    study: Study
    folder: StudyFolder
    executor: Executor
    progress: Progress = field(default_factory=Silent)
    objective: Objective = attempt
    locations: Locations = field(default_factory=Locations)
    events: Events = field(default_factory=lambda: Events(None))
    owner: Ownership | None = None
    policy: Policy = POLICY

    def stage(self, name: str, text: str) -> None:
        """Log that a stage of the study begins, and show the text."""
        self.events.write(Event.STAGE, name=name)
        if text:
            self.progress.stage(text)

    def log(self, missing: LeftOut) -> None:
        """Log what failed and is left out, with its traceback."""
        what, why = missing.what, missing.error
        self.events.write(Event.LEFT_OUT, split=missing.split, name=what, reason=why, trace=missing.trace)

    def check(self) -> None:
        """Raise StudyError if another process has taken the study over."""
        if self.owner is not None:
            self.owner.check()

    def record(self, problem: SplitProblem) -> Record:
        """Open the record of a split, with what workers need to join it."""
        folder = self.folder.split(problem.name)
        with writing(folder):
            folder.mkdir(exist_ok=True)
        record = Record(
            folder,
            record_name(self.folder.path.name, problem.name),
            self.study.metric,
            self.locations.storage,
            self.locations.artifacts,
            on_event=lambda event, message: self.events.write(Event(event), reason=message),
            weights=problem.validation_weights,
        )
        if self.owner is not None:
            record.leases.ownership = self.owner.ownership
        place = str(problem.folder.resolve())
        declared = Declaration(self.study.as_dict(), this_version(), this_host(), place, self.locations.artifacts)
        try:
            digest = self.folder.digests()[problem.name]
            record.retried(lambda: claim(record.study, self.study, digest, weighted=record.weights is not None))
            record.retried(lambda: migrate_space(record.storage, record.study.study_name, self.study.union_space()))
            record.retried(lambda: declared.write(record.study))
            if self.locations.artifacts is not None:
                share(problem.folder, Artifacts(self.locations.artifacts))
        except BaseException:
            record.close()
            raise
        return record


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, eq=False)
class SplitState:
    """What is known of one split after some stages.

    Attributes
    ----------
    begun, given : float
        When the split began, by a steady clock, and the seconds that it was given.
    results : mapping
        The results of stages that later ones need, by their names.
    seconds : mapping of str to float
        How long each finished stage took.
    left_out : list of LeftOut
        What failed after the trials and is left out.
    answer : callable
        Given the state with the choice of the split, gives the answer if this is the last split.
    """

    session: StageSession
    problem: SplitProblem
    record: Record
    deadline: Deadline
    begun: float
    allotted: float
    results: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    answer: Callable[[SplitState], None] = lambda state: None

    def __getitem__(self, stage: Stage[T]) -> T:
        """Return the result of a finished stage."""
        result: T = self.results[stage.name]
        return result

    @property
    def study(self) -> Study:
        """The declaration of the study."""
        return self.session.study

    def having(self, stage: Stage[T], result: T, seconds: float = 0.0) -> SplitState:
        """Return the state after a stage."""
        results, took = {**self.results, stage.name: result}, {**self.seconds, stage.name: seconds}
        return replace(self, results=results, seconds=took)


@dataclass(frozen=True)
class Instead(Generic[T_co]):
    """What stands for a stage that fails after the trials, so that their study still has a result.

    Attributes
    ----------
    what : str
        What is left out, as in a sentence.
    make : callable
        Returns what later stages go on with, given the state.
    remedy : str
        A sentence on that.
    """

    what: str
    make: Callable[[SplitState], T_co]
    remedy: str = "The result is saved without it."


@dataclass(frozen=True)
class Stage(Generic[T]):
    """One step of a study.

    Attributes
    ----------
    name : str
        Its name in the log of events and in the result.
    run : callable
        Returns its result, given the state.
    needs : tuple of Stage
        The stages whose results it uses.
    text : callable
        What to show when it begins; None where there is nothing to do, so that neither a line nor an event says so.
    instead : Instead or None
        What stands for it where it fails; None where the study cannot go on without it.
    beside : bool
        Whether the stages after it begin before it ends, where trials run in processes of their own. It then runs in a
        thread, and must neither read the record nor show a text.
    """

    name: str
    run: Callable[[SplitState], T]
    needs: tuple[Stage[Any], ...] = ()
    text: Callable[[SplitState], str | None] = lambda state: ""
    instead: Instead[T] | None = None
    beside: bool = False

    def __call__(self, state: SplitState) -> SplitState:
        """Return the state with the result of this stage, and the seconds that it took."""
        begun, before = time.monotonic(), len(state.left_out)
        result = self._made(state) if self.instead is None else self._made_or_left_out(state, self.instead)
        for place, missing in enumerate(state.left_out[before:], start=before):
            state.left_out[place] = replace(missing, split=state.problem.name)
            state.session.log(state.left_out[place])
        return state.having(self, result, round(time.monotonic() - begun, 3))

    def _made_or_left_out(self, state: SplitState, instead: Instead[T]) -> T:
        """Return the result, or what stands for it."""
        made: list[T] = or_left_out(instead.what, lambda: [self._made(state)], [], instead.remedy, into=state.left_out)
        return made[0] if made else instead.make(state)

    def _made(self, state: SplitState) -> T:
        """Return the result, and say before that it is made."""
        if (text := self.text(state)) is not None:
            label = f"{state.problem.name}: " if state.problem.name and text else ""
            state.session.stage(self.name, label + text)
        return self.run(state)


def run_stages(stages: Sequence[Stage[Any]], state: SplitState, keep: Sequence[Stage[Any]] = ()) -> SplitState:
    """Return the state after all stages, in their order, with the results of those in `keep`.

    A stage begins once those that it needs have ended. Other results are dropped once no later stage needs them. Raises
    StudyError if a stage comes before what it needs.
    """
    done = set(state.results)
    for stage in stages:
        if missing := [need.name for need in stage.needs if need.name not in done]:
            raise StudyError(f"stage '{stage.name}' needs {', '.join(missing)}: list what it needs before it.")
        done.add(stage.name)
    running: dict[str, Future[SplitState]] = {}
    pool = ThreadPoolExecutor(max(len(stages), 1))
    try:
        for place, stage in enumerate(stages, start=1):
            state = _joined(state, [running.pop(need.name) for need in stage.needs if need.name in running])
            if stage.beside and not isinstance(state.session.executor, InProcess):
                running[stage.name] = pool.submit(stage, replace(state, left_out=[]))
            else:
                state = stage(state)
            needed = {value.name for value in keep} | {value.name for later in stages[place:] for value in later.needs}
            state = replace(state, results={name: value for name, value in state.results.items() if name in needed})
        state = _joined(state, [*running.values()])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after an error, functions end with their executor
    names = {value.name for value in keep}
    return replace(
        state,
        results={name: value for name, value in state.results.items() if name in names},
        seconds={stage.name: state.seconds[stage.name] for stage in stages},
    )


def _joined(state: SplitState, others: Sequence[Future[SplitState]]) -> SplitState:
    """Return a state with what stages beside it have added, once they have ended."""
    for other in (future.result() for future in others):
        results, seconds = {**other.results, **state.results}, {**other.seconds, **state.seconds}
        state.left_out.extend(other.left_out)
        state = replace(state, results=results, seconds=seconds)
    return state
