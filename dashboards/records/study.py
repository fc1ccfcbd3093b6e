"""A study as the views show it: settings, trials, per-query evidence and models, read from its folder.

A split is one division into training, validation and test queries. A folder of folds has several splits, any other
study has one with the name "".

Studies that are read repeatedly: each is read once for each change, however many pages show it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TypeVar

from ranktune.dashboards.records.reader import FileState, TrialReader, file_states, files_of, reader_of, trials_of
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import RankTuneError, StudyError
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.selection.evidence import (
    EVIDENCE,
    EXPLANATIONS,
    Evidence,
    Explanations,
    read_evidence,
    read_explanations,
)
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.splits.seals import check_sealed, is_written
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import lost_trials
from ranktune.tuner.study.home import StudyFolder, all_folders

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SplitData:
    """One split: its trials by number and, once it is finished, the evidence and the files of its models by label.

    explanations are None for a study of an older RankTune too.
    damage describes what cannot be read and is left out, "" if nothing is.
    """

    name: str
    folder: Path
    trials: tuple[Trial, ...]
    evidence: Evidence | None
    model_files: Mapping[str, Path]
    explanations: Explanations | None = None
    damage: str = ""

    def model(self, label: str) -> Model | None:
        """Return the model of a row of the leaderboard, None where there is no readable file."""
        try:
            check_sealed(self.model_files[label])
            return load_model(self.model_files[label])
        except (KeyError, RankTuneError, OSError):
            return None


@dataclass(frozen=True, eq=False)
class StudyData:
    """A study with all of its splits; result is None while the study is not finished.

    facts are the sizes of each split's data. study_damage describes which files of the whole study cannot be read.
    brief is whether pages leave out what takes long to compute: the importance of parameters.
    """

    folder: Path
    study: Study
    splits: tuple[SplitData, ...]
    result: Result | None
    facts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    study_damage: str = ""
    brief: bool = False

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.folder.name

    @property
    def metric(self) -> str:
        """The metric that the trials maximise."""
        return self.study.metric

    @property
    def total(self) -> int:
        """The number of trials to run, all splits together."""
        return self.study.n_trials * max(len(self.splits), 1)

    @cached_property
    def held(self) -> bool:
        """Whether a process on this machine runs the study now."""
        return StudyFolder(self.folder).is_running()

    @cached_property
    def solvers(self) -> tuple[str, ...]:
        """Names of the solvers in the search space."""
        return tuple(self.study.solvers)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every finished trial, split by split."""
        return tuple(trial for split in self.splits for trial in split.trials)

    @cached_property
    def all_solvers(self) -> list[str]:
        """The solvers in the search space, then any other that trials name."""
        return list(dict.fromkeys([*self.solvers, *(trial.solver for trial in self.trials)]))

    @property
    def damage(self) -> str:
        """What cannot be read and is left out, "" if nothing is."""
        return " ".join(filter(None, [self.study_damage, *(split.damage for split in self.splits)]))

    @cached_property
    def evidence(self) -> list[tuple[str, Evidence]]:
        """The evidence of every split that has values of the metric, with the name of the split."""
        known = [(split.name, split.evidence) for split in self.splits if split.evidence is not None]
        return [(name, evidence) for name, evidence in known if evidence.labels and self.metric in evidence.values]

    @property
    def part(self) -> str:
        """The queries of the evidence: "test", or "validation" where there are no test queries."""
        return "test" if self.evidence[0][1].part == "test" else "validation"

    @property
    def weights_note(self) -> str:
        """A sentence if queries count by weights, "" if each counts once."""
        weighted = any(evidence.weights is not None for _, evidence in self.evidence)
        return "Queries count by their weights, in means, intervals and tests." if weighted else ""

    @property
    def common_labels(self) -> list[str]:
        """The labels of the models that are in the evidence of every split, in the order of the first."""
        first = self.evidence[0][1].labels if self.evidence else ()
        return [label for label in first if all(label in evidence.labels for _, evidence in self.evidence)]

    @property
    def state(self) -> str:
        """The state "running", "finished", or "stopped": neither finished nor running."""
        if self.held:
            return "running"
        return "finished" if self.result is not None and self.result.is_complete else "stopped"

    @property
    def progress(self) -> str:
        """The number of finished trials, "5 of 20" where the study ends after a number of trials."""
        done = len(self.trials)
        return f"{done} of {self.total}" if self.study.ends_by_count else str(done)

    @property
    def groups(self) -> list[tuple[int, SplitData, str]]:
        """Every split with its place and the group of its panels: its name, "" of the only split.

        A study without splits has an empty one.
        """
        splits = self.splits or (SplitData("", self.folder, (), None, {}),)
        return [(k, split, split.name if len(splits) > 1 else "") for k, split in enumerate(splits)]


def duration(seconds: float) -> str:
    """Return seconds in a readable unit: "5 s", "10 min", "2.0 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def open_study(folder: Path, readers: dict[Path, TrialReader] | None = None) -> StudyData:
    """Return the study in folder as it is now. Raises StudyError where there is no readable study.

    readers, by folder of a split, keep the trials that were read before.
    """
    home = StudyFolder(folder)
    study = home.study()
    result = load_result(home.result) if home.has_result else None
    readers = {} if readers is None else readers
    splits = tuple(_split(home, name, readers) for name in home.split_names())
    damage: list[str] = []
    facts = _part(lambda _: home.facts(), folder, damage) or {}
    return StudyData(folder, study, splits, result, facts, " ".join(damage))


def _split(home: StudyFolder, name: str, readers: dict[Path, TrialReader]) -> SplitData:
    folder = home.split(name)
    reader = readers.get(folder) or readers.setdefault(folder, reader_of(home, name))
    trials = tuple(sorted(trials_of(home, name, reader), key=lambda trial: trial.number))
    damage: list[str] = []
    lost = lost_trials(home.path, name, (trial.number for trial in trials))
    evidence = _part(read_evidence, folder / EVIDENCE, damage)
    explained = _part(read_explanations, folder / EXPLANATIONS, damage)
    labels = {} if evidence is None else dict(zip(evidence.labels, evidence.models, strict=True))
    files = {label: folder / file for label, file in labels.items() if file}
    for file in files.values():
        _part(check_sealed, file, damage)
    if damage:
        damage.append(f"What it shows is left out; `ranktune resume {home.path.name}` makes it again.")
    if lost:
        damage.append(lost)
    return SplitData(name, folder, trials, evidence, files, explained, " ".join(damage))


def _part(read: Callable[[Path], T], path: Path, damage: list[str]) -> T | None:
    """Return what read returns for a file; None if it is missing, or damaged, with the error added to damage."""
    try:
        return read(path) if is_written(path) else None
    except StudyError as error:
        damage.append(str(error))
        return None


@dataclass
class Watched:
    """One study, with its data and what was computed from it, until one of its files changes.

    costs is the processor time, in seconds, of computing each view when it was last computed, reading included.
    """

    folder: Path
    costs: dict[str, float] = field(default_factory=dict)
    _signature: tuple[FileState, ...] = ()
    _data: StudyData | None = None
    _cache: dict[str, tuple[StudyData, bytes]] = field(default_factory=dict)
    _readers: dict[Path, TrialReader] = field(default_factory=dict)
    _reading: Lock = field(default_factory=Lock)
    _computing: dict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.folder.name

    def signature(self) -> tuple[FileState, ...]:
        """Return a value that changes whenever a file of the study does."""
        return file_states(files_of(StudyFolder(self.folder)))

    def data(self) -> StudyData:
        """Return the study as it is now. Raises a RankTuneError where it cannot be read."""
        with self._reading:
            signature = self.signature()  # from before reading: later changes are read the next time
            if self._data is None or signature != self._signature:
                with _readable(self.name):
                    self._data = open_study(self.folder, self._readers)
                self._signature = signature
            return self._data

    def cached(self, key: str, compute: Callable[[StudyData], bytes]) -> bytes:
        """Return compute(data), computed once until the study changes and by one thread at a time."""
        with self._computing[key]:
            begun = time.thread_time()
            data = self.data()
            known = self._cache.get(key)
            if known is None or known[0] is not data:
                with _readable(self.name):
                    known = self._cache[key] = (data, compute(data))
                self.costs[key] = time.thread_time() - begun
            return known[1]


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn an error of any kind, such as that of a file with other content than it should have, into a StudyError."""
    try:
        yield
    except RankTuneError:
        raise
    except Exception as error:
        raise StudyError(f"study '{name}' cannot be shown: {type(error).__name__}: {error}") from error


@dataclass
class Watching:
    """The studies of a home folder, by name."""

    home: Path
    _known: dict[Path, Watched] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def names(self) -> list[str]:
        """Return the names of the studies, the latest first."""
        return [folder.path.name for folder in reversed(all_folders(self.home))]

    def find(self, name: str) -> Watched | None:
        """Return a study by name, None where there is none; names are compared with folders, never joined to paths."""
        folder = next((study.path for study in all_folders(self.home) if study.path.name == name), None)
        if folder is None:
            return None
        with self._lock:
            return self._known.setdefault(folder, Watched(folder))
