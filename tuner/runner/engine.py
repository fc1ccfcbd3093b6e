"""A study from beginning to end: every split goes through the stages, and the result is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from threadpoolctl import threadpool_limits

from ranktune.solvers.core.files import cache_folder, private_folder
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.core.machine_code.folders import is_built
from ranktune.tuner.runner.final_stages import REPORTED, STAGES
from ranktune.tuner.runner.report import report
from ranktune.tuner.runner.retuning_stage import DECIDE
from ranktune.tuner.runner.search_stages import ANSWERED
from ranktune.tuner.runner.stage import Session, Stage, State, run_stages
from ranktune.tuner.selection.rescoring import RESCORED
from ranktune.tuner.selection.results import Result
from ranktune.tuner.splits.sealing import remove_sealed
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.events import Event
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import Problem


@dataclass(frozen=True, eq=False)
class StudyRun(Session):
    """A run of a study from its problems to its result."""

    stages: tuple[Stage[Any], ...] = STAGES

    def run(self, problems: Sequence[Problem], deadline: Deadline | None = None) -> Result:
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
        states = list[State]()

        def answer(state: State) -> None:
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

    def _run_split(self, problem: Problem, deadline: Deadline, answer: Callable[[State], None]) -> State:
        record = self.record(problem)
        try:
            known = replace(problem, policy=self.policy)
            state = State(self, known, record, deadline, time.monotonic(), deadline.left, answer=answer)
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
