"""What a worker needs to join a study: its splits, how to evaluate their trials, and where the data are."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import optuna
from optuna.storages import RDBStorage
from sqlalchemy import Connection

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import StudyError, nearest
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import pack_problem, unpack_problem
from ranktune.tuner.splits.seals import proven
from ranktune.tuner.splits.store import located
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import open_storage, shown_url
from ranktune.tuner.storage.leases import Leases
from ranktune.tuner.storage.optuna_internals import study_attribute, study_names
from ranktune.tuner.storage.retrying import retrying
from ranktune.tuner.study.custom import restore_custom
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import NoStudy, StudyFolder
from ranktune.tuner.study.tasks import Tasks

DECLARED = "ranktune"
"""Attribute of an Optuna study that holds a Declaration."""
T = TypeVar("T")


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


class _Stored(ABC):
    """The splits of a study that have begun, by the storages of their records."""

    def __init__(self) -> None:
        self._storages: dict[str | Path, RDBStorage] = {}
        self._splits: dict[str, JoinedSplit] = {}

    def splits(self) -> list[JoinedSplit]:
        """Return the splits whose record exists by now."""
        for name, storage in self._begun():
            if name not in self._splits and _declared(storage, name) is not None:
                self._splits[name] = _joined(name, partial(_declared, storage, name), Leases(storage, name))
        return list(self._splits.values())

    @abstractmethod
    def _begun(self) -> Iterator[tuple[str, RDBStorage]]:
        """Yield the names of the Optuna studies of the splits that have begun, each with its storage."""

    def _opened(self, where: str | Path) -> RDBStorage:
        self._storages[where] = storage = self._storages.get(where) or open_storage(where)
        return storage

    def close(self) -> None:
        """Close the records."""
        for split in self._splits.values():
            split.leases.disconnect()
        for storage in self._storages.values():
            storage.remove_session()
            storage.engine.dispose()


class FolderStudy(_Stored):
    """A study in a home folder on this machine, which another process runs."""

    def __init__(self, folder: StudyFolder) -> None:
        super().__init__()
        self._folder = folder

    def _begun(self) -> Iterator[tuple[str, RDBStorage]]:
        for path in (self._folder.split(name) / "record.db" for name in self._folder.split_names()):
            storage = self._opened(path) if path.exists() else None
            if storage is not None and (names := _names(storage)):
                yield names[0], storage

    def is_concluded(self) -> bool:
        """Return whether no process runs the study any more."""
        return not self._folder.is_running()


class DatabaseStudy(_Stored):
    """A study in a database that several machines reach."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self._name, self._storage = name, self._opened(url)
        if next(self._begun(), None) is None:
            names = sorted({each.partition("/")[0] for each in _names(self._storage)})
            hint = nearest(name, names) if names else "It holds no studies yet."
            self.close()
            raise NoStudy(f"no study '{name}' in {shown_url(url)}. {hint} Begin it with storage=.")

    def _begun(self) -> Iterator[tuple[str, RDBStorage]]:
        names = (name for name in _names(self._storage) if name.partition("/")[0] == self._name)
        return ((name, self._storage) for name in names)

    def is_concluded(self) -> bool:
        """Return whether the owner has marked the study as finished."""
        owner = Leases(self._storage, self._name).owner()
        return owner is not None and not owner.is_running and owner.concluded


def _names(storage: RDBStorage) -> list[str]:
    return _read(storage, study_names)


def _declared(storage: RDBStorage, name: str) -> str | None:
    text = _read(storage, lambda connection: study_attribute(connection, name, DECLARED))
    return None if text is None else str(text)


def _read(storage: RDBStorage, reading: Callable[[Connection], T]) -> T:
    def once() -> T:
        with storage.engine.connect() as connection:
            return reading(connection)

    return retrying(once, storage.engine)


def _joined(name: str, read: Callable[[], str | None], leases: Leases) -> JoinedSplit:
    """Return a split whose declaration is read again for each trial: an upgraded owner may go on with the study."""
    tasks: dict[str | None, Tasks] = {}

    def task_of(params: Mapping[str, Value], path: bool) -> Task:
        text = read()
        if text not in tasks:
            tasks[text] = _tasks(name, str(text))
        return tasks[text].of(params, path)

    text = read()
    tasks[text] = _tasks(name, str(text))
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
            proven(folder)
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
