"""What a worker needs to join a study: its splits, how to evaluate their trials, and where the data are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import optuna

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import StudyError, nearest
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import pack_problem, unpack_problem
from ranktune.tuner.splits.proof import prove
from ranktune.tuner.splits.store import located
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import open_storage, shown_url
from ranktune.tuner.storage.leases import Leases
from ranktune.tuner.storage.locations import record_name
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.retrying import retrying
from ranktune.tuner.study.custom import restore_custom
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import NoStudy, StudyFolder
from ranktune.tuner.study.tasks import Tasks

DECLARED = "ranktune"
"""Attribute of an Optuna study that holds a Declaration."""


@dataclass(frozen=True)
class Declaration:
    """What the owner of a study leaves for workers: the settings, the version of RankTune, and where the data are.

    `artifacts` is where the data can be fetched, None if they can only be read in `folder`.
    """

    study: JsonView
    version: str
    host: str
    folder: str
    artifacts: str | None

    def write(self, study: optuna.Study) -> None:
        """Write it into an Optuna study, unless it is there already."""
        text = json.dumps(asdict(self))
        if study.user_attrs.get(DECLARED) != text:
            study.set_user_attr(DECLARED, text)


@dataclass(frozen=True, eq=False)
class JoinedSplit:
    """A split of a study, as a worker sees it; `task_of` turns parameters by flat name into a task, as `Tasks.of`.

    It raises StudyError if another version of RankTune runs the study by now.
    """

    name: str
    version: str
    leases: Leases
    task_of: Callable[[Mapping[str, Value], bool], Task]


class Joinable(Protocol):
    """A study that workers can join."""

    def splits(self) -> list[JoinedSplit]:
        """Return the splits that have begun."""
        ...

    def is_concluded(self) -> bool:
        """Return whether there will be no more trials."""
        ...


class FolderStudy:
    """A study in a home folder on this machine, which another process runs."""

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._splits: dict[str, JoinedSplit] = {}

    def splits(self) -> list[JoinedSplit]:
        """Return the splits whose record exists by now."""
        for name in self._folder.split_names():
            folder = self._folder.split(name)
            if name in self._splits or not (folder / "record.db").exists():
                continue
            if name not in self._records:
                full_name = record_name(self._folder.path.name, name)
                self._records[name] = Record(folder, full_name, self._folder.study().metric)
            record = self._records[name]

            def read(record: Record = record) -> str | None:
                return record.retried(lambda: record.study.user_attrs.get(DECLARED))

            if read() is not None:
                self._splits[name] = _joined(record.study.study_name, read, record.leases)
        return list(self._splits.values())

    def is_concluded(self) -> bool:
        """Return whether no process runs the study any more."""
        return not self._folder.held()

    def close(self) -> None:
        """Close the records."""
        for record in self._records.values():
            record.close()


class DatabaseStudy:
    """A study in a database that several machines reach."""

    def __init__(self, url: str, name: str) -> None:
        self._storage = open_storage(url)
        self._name = name
        self._whole = Leases(self._storage, name)
        self._splits: dict[str, JoinedSplit] = {}
        if not self._names():
            known = sorted({known.partition("/")[0] for known in self._all_names()})
            hint = nearest(name, known) if known else "It holds no studies yet."
            self.close()
            raise NoStudy(f"no study '{name}' in {shown_url(url)}. {hint} Begin it with storage=.")

    def splits(self) -> list[JoinedSplit]:
        """Return the splits whose record exists by now."""
        for name in self._names():
            if name not in self._splits and self._declared(name) is not None:
                self._splits[name] = _joined(name, partial(self._declared, name), Leases(self._storage, name))
        return list(self._splits.values())

    def _names(self) -> list[str]:
        """Return the names of the Optuna studies of the splits that have begun."""
        return [name for name in self._all_names() if name.partition("/")[0] == self._name]

    def _all_names(self) -> list[str]:
        return retrying(lambda: optuna.get_all_study_names(self._storage), self._storage.engine)

    def _declared(self, name: str) -> str | None:
        def read() -> str | None:
            return optuna.load_study(study_name=name, storage=self._storage).user_attrs.get(DECLARED)

        return retrying(read, self._storage.engine)

    def is_concluded(self) -> bool:
        """Return whether the owner has marked the study as finished."""
        owner = self._whole.owner()
        return owner is not None and not owner.held and owner.concluded

    def close(self) -> None:
        """Close the database."""
        self._storage.remove_session()
        self._storage.engine.dispose()


def _joined(name: str, read: Callable[[], str | None], leases: Leases) -> JoinedSplit:
    """Return a split whose declaration is read again for each trial: an upgraded owner may go on with the study."""
    known: dict[str | None, Tasks] = {}

    def task_of(params: Mapping[str, Value], path: bool) -> Task:
        text = read()
        if text not in known:
            known[text] = _tasks(name, str(text))
        return known[text].of(params, path)

    text = read()
    known[text] = _tasks(name, str(text))
    return JoinedSplit(name, this_version(), leases, task_of)


def _tasks(name: str, text: str) -> Tasks:
    """Return how a declaration turns parameters into tasks. Raises StudyError if this process cannot run them."""
    values = json.loads(text)
    if values.get("version") != this_version():  # before the rest, which another version may declare otherwise
        raise StudyError(
            f"study '{name}' is run by RankTune {values.get('version')}, this worker is {this_version()}: they may "
            f"compute different things. Install the same version here: pip install ranktune=={values.get('version')}."
        )
    declared = Declaration(**values)
    study = Study.from_dict(declared.study)
    study.check_loadable()
    restore_custom(name, study.custom)
    return Tasks(study, _data(declared, name))


def _data(declared: Declaration, name: str) -> Path:
    """Return the folder with the data of a split on this machine, fetched if it is not here yet."""
    try:
        folder = located(declared.folder)
        if folder != Path(declared.folder):  # a copy in the cache, which no owner of the study has proven
            prove(folder)
        return folder
    except StudyError:
        if declared.artifacts is None:
            raise StudyError(
                f"the data of study '{name}' are in {declared.folder} on {declared.host}, which this machine does not "
                "have. Mount it here under the same path, or begin the study with artifacts= (a folder that all see, "
                "or s3://BUCKET/PREFIX)."
            ) from None
    place = Path(declared.folder).name
    packed = Artifacts(declared.artifacts).read(data_name(place))
    if packed is None:
        raise StudyError(f"the data of study '{name}' are not in {declared.artifacts}, where it keeps them.")
    return unpack_problem(packed, place)


def share(folder: Path, artifacts: Artifacts) -> None:
    """Upload the data of a split for workers, unless the same are there."""
    packed = pack_problem(folder)
    if artifacts.read(data_name(folder.name)) != packed:
        artifacts.write(data_name(folder.name), packed)


def data_name(place: str) -> str:
    """Return the name of the data of a split among the artifacts."""
    return f"data-{place}.zip"
