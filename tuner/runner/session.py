"""What all stages of a running study share: its folder, its workers, its display and its log."""

from __future__ import annotations

from dataclasses import dataclass, field

from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.runner.joining import Declaration, share
from ranktune.tuner.search.loop import Objective
from ranktune.tuner.search.progress import Progress, Silent
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.membership import Ownership, this_host
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.space_migration import migrate_space
from ranktune.tuner.study.compatibility import claim
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.home import StudyFolder, writing
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.workers.executor import Executor


@dataclass(frozen=True, eq=False)
class Session:
    """A study while a process runs it.

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

    def stage(self, name: str, text: str) -> None:
        """Log that a stage of the study begins, and show the text."""
        self.events.write(Event.STAGE, name=name)
        if text:
            self.progress.stage(text)

    def check(self) -> None:
        """Raise StudyError if another process has taken the study over."""
        if self.owner is not None:
            self.owner.check()

    def record(self, problem: Problem) -> Record:
        """Open the record of a split, with what workers need to join it."""
        own = self.folder.split(problem.name)
        with writing(own):
            own.mkdir(exist_ok=True)
        record = Record(
            own,
            record_name(self.folder.path.name, problem.name),
            self.study.metric,
            self.locations.storage,
            self.locations.artifacts,
            on_event=lambda event, message: self.events.write(Event(event), reason=message),
            weights=problem.judged_weights,
        )
        if self.owner is not None:
            record.leases.held = self.owner.held
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
