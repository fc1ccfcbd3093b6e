"""What a process holds while it runs a study: its folder, workers, display and log."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ranktune.dashboards.web.tracking import logged
from ranktune.notebook import StudyResult, shown
from ranktune.reading import Sources, load_for_workers, read_and_prepare
from ranktune.solvers.core.errors import Damaged, StudyError, without_secrets
from ranktune.solvers.data.api_search import NAME as API_SEARCH
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.runner.preparation import IN_GAP, reopen
from ranktune.tuner.samplers.presets import PRESETS
from ranktune.tuner.search.loop import CTRL_C
from ranktune.tuner.search.progress import Progress, Silent
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.storage.locations import Locations
from ranktune.tuner.storage.membership import Ownership
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.workers.executor import CallLimits, Executor
from ranktune.tuner.workers.interrupts import Interrupted, Interrupts
from ranktune.tuner.workers.workforce import Workforce


@dataclass(frozen=True)
class StudySession:
    """What a process holds while it runs a study."""

    folder: StudyFolder
    locations: Locations
    workers: Executor
    progress: Progress
    events: Events
    owner: Ownership | None
    memory: int | None

    def reopened(self) -> tuple[list[SplitProblem], str]:
        """Return the problems whose data are stored; without them why not."""
        try:
            return reopen(self.folder), "are not kept once it is finished"
        except Damaged as damage:
            self.progress.stage(f"{damage} The data are read again.")
            return [], "were kept and are damaged"

    def prepare(self, study: Study, sources: Sources, extend: bool) -> list[SplitProblem]:
        """Return the problems of the data; a worker, which loads the numeric libraries anyway, reads files."""
        if study.preset is not None:
            self.progress.stage(f"preset {study.preset}: {PRESETS[study.preset].unchanged(vars(study))}")
        if study.first:
            self.progress.stage(f"configurations of {', '.join(study.first)} are given, and tried first")
        self.events.write(Event.STAGE, name="reading")
        self.progress.stage(without_secrets(f"reading {study.data}"))
        by_worker = all(map(_is_file, sources))
        for _ in range(self.workers.jobs - by_worker):  # meanwhile
            self.workers.submit(load_for_workers, limits=CallLimits())
        arguments = study, sources, self.folder, extend, self.memory
        problems = self.workers.call(read_and_prepare, *arguments) if by_worker else read_and_prepare(*arguments)
        if left_out := sum(facts.get(IN_GAP, 0) for facts in self.folder.facts().values()):
            self.progress.stage(f"{left_out} queries lie in the gap before the test queries, and are left out")
        return problems

    def run(
        self,
        study: Study,
        problems: Sequence[SplitProblem],
        deadline: Deadline | None = None,
        mlflow: str | None = None,
    ) -> StudyResult:
        """Run the trials, choose and evaluate; mlflow is the address with its password, which the study has without."""
        run = StudyRun(
            study, self.folder, self.workers, progress=self.progress, locations=self.locations, events=self.events,
            owner=self.owner,
        )  # fmt: skip
        with logged(self.folder.path, mlflow or study.mlflow, self.locations.storage):
            return shown(run.run(problems, deadline))


@contextmanager
def running(folder: StudyFolder, force: Workforce, locations: Locations, progress: Progress) -> Iterator[StudySession]:
    """Hold a study and its workers; a signal to end becomes Interrupted."""
    url = locations.storage
    try:
        with Interrupts(), folder.owned(), closing(progress), ExitStack() as stack:
            folder.warn_of_versions()
            owner = None if url is None else stack.enter_context(Ownership(url, folder.path.name))
            events = stack.enter_context(Events(folder.path, progress.event))
            workers = stack.enter_context(force.assembled(apart=url is not None, load=load_for_workers))
            try:
                if force.note:
                    progress.stage(force.note)
                yield StudySession(folder, locations, workers, progress, events, owner, force.reading_memory)
            except BaseException as error:
                cause = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
                events.write(Event.STUDY_STOPPED, reason=cause)
                raise
            if owner is not None:
                owner.concluded = True
    except KeyboardInterrupt as error:
        put_back = error.put_back if isinstance(error, Interrupted) else 0
        raise Interrupted(put_back, _how_far(folder)) from None


def finished(folder: StudyFolder, study: Study) -> Result | None:
    """Return the result of a study that has ended, of which nothing is missing or damaged; None of any other.

    One that a time limit or a person ended goes on, and one that was declared anew since.
    """
    from ranktune.dashboards.records.study import open_study  # it loads what pages need

    if study.timeout is not None or not folder.has_result:
        return None
    data = open_study(folder.path)
    result, is_whole = data.result, all(split.evidence and split.explanations for split in data.splits)
    if result is None or not is_whole or data.damage or not result.is_complete or result.left_out:
        return None
    if (folder.path / "study.json").stat().st_mtime_ns > folder.result.stat().st_mtime_ns:
        return None
    return None if CTRL_C in result.ended_early else result


def _how_far(folder: StudyFolder) -> str:
    """Return the state of an interrupted study, and how to continue it."""
    if not (folder.path / "study.json").exists():
        return "The study had not begun. Nothing was saved."
    from ranktune.dashboards.terminal.listing import counted, state  # it loads the library of tables

    name = folder.path.name
    next_step = f"`ranktune resume {name}` continues the study."
    try:
        facts = state(folder.path)
    except StudyError:  # such as a database that cannot be reached
        return f"Finished trials are in the record. {next_step}"
    if folder.has_result and not load_result(folder.result).is_complete:
        return f"The chosen model and its scores are saved. `ranktune resume {name}` compares it with the others."
    best = "" if facts["best"] is None else f", best {facts['metric']} {facts['best']:.4f} ({facts['solver']})"
    return f"{counted(facts)} trials are in the record{best}. {next_step}"


def _is_file(source: object) -> bool:
    """Return whether a worker process can read source, or there is nothing to read."""
    return source is None or (isinstance(source, str | Path) and source != API_SEARCH)


def display(verbose: bool | None = None) -> Progress:
    """Return a display of the progress: lines, none, or by default one on a terminal or in a notebook."""
    from ranktune.terminal import LineProgress, in_notebook, watcher

    if verbose is None:
        return watcher() if sys.stderr.isatty() or in_notebook() else Silent()
    return LineProgress() if verbose else Silent()
