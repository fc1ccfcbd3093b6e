"""What a worker that joins has to know of a study: its parts, what a trial of each is, and where its data are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import optuna

from ranktune.solvers.core.errors import StudyError, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.models.base import this_version
from ranktune.tuner.evaluation.archive import located, pack_problem, unpack_problem
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import open_storage, shown_url
from ranktune.tuner.storage.leases import Leases
from ranktune.tuner.storage.locations import record_name
from ranktune.tuner.storage.record import Record
from ranktune.tuner.storage.retrying import retrying
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.tasks import Tasks

DECLARED = "ranktune"
"""Attribute of an Optuna study that holds a Declaration."""


@dataclass(frozen=True)
class Declaration:
    """What the owner of a study notes in its storage for workers: settings, version of RankTune, where the data are.

    artifacts is where the data can be fetched, None where they can only be read in folder.
    """

    study: Mapping[str, Any]
    version: str
    host: str
    folder: str
    artifacts: str | None

    def write(self, study: optuna.Study) -> None:
        """Note it with an Optuna study, unless it stands there already."""
        text = json.dumps(asdict(self))
        if study.user_attrs.get(DECLARED) != text:
            study.set_user_attr(DECLARED, text)


@dataclass(frozen=True, eq=False)
class Part:
    """A split of a study, as a worker sees it; task_of turns parameters by flat name into what is to be evaluated."""

    name: str
    version: str
    leases: Leases
    task_of: Callable[[Mapping[str, Value]], Task]


class Joinable(Protocol):
    """A study that workers can join."""

    def parts(self) -> list[Part]:
        """Return its splits as far as they were begun."""
        ...

    def is_concluded(self) -> bool:
        """Return whether there will be no more trials."""
        ...


class InFolder:
    """A study of a home folder on this machine, which another process runs."""

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._parts: dict[str, Part] = {}

    def parts(self) -> list[Part]:
        """Return the splits whose record exists by now."""
        for name in self._folder.split_names():
            own = self._folder.split(name)
            if name in self._parts or not (own / "record.db").exists():
                continue
            record = self._records.setdefault(
                name, Record(own, record_name(self._folder.path.name, name), self._folder.study().metric)
            )
            part = _part(record.study.study_name, _declared(record), record.leases)
            if part is not None:
                self._parts[name] = part
        return list(self._parts.values())

    def is_concluded(self) -> bool:
        """Return whether nobody runs the study any more."""
        return not self._folder.held()

    def close(self) -> None:
        """Let go of the records."""
        for record in self._records.values():
            record.close()


class InStorage:
    """A study in a database that several machines reach."""

    def __init__(self, url: str, name: str) -> None:
        self._storage = open_storage(url)
        self._name = name
        self._whole = Leases(self._storage, name)
        if not self._names():
            known = sorted({known.partition("/")[0] for known in self._all_names()})
            hint = nearest(name, known) if known else "There are no studies there yet."
            self.close()
            raise StudyError(f"no study '{name}' in {shown_url(url)}. {hint} Begin it with `ranktune tune --storage`.")
        self._parts: dict[str, Part] = {}

    def parts(self) -> list[Part]:
        """Return the splits whose record exists by now."""
        for name in self._names():
            if name in self._parts:
                continue
            part = _part(name, self._declared(name), Leases(self._storage, name))
            if part is not None:
                self._parts[name] = part
        return list(self._parts.values())

    def _names(self) -> list[str]:
        """Return the names of the Optuna studies of the splits that were begun."""
        return [name for name in self._all_names() if name.partition("/")[0] == self._name]

    def _all_names(self) -> list[str]:
        return retrying(lambda: optuna.get_all_study_names(self._storage), self._storage.engine)

    def _declared(self, name: str) -> str | None:
        def read() -> str | None:
            return optuna.load_study(study_name=name, storage=self._storage).user_attrs.get(DECLARED)

        return retrying(read, self._storage.engine)

    def is_concluded(self) -> bool:
        """Return whether the study's owner has said that it is finished."""
        owner = self._whole.owner()
        return owner is not None and not owner.held and owner.concluded

    def close(self) -> None:
        """Let go of the database."""
        self._storage.remove_session()
        self._storage.engine.dispose()


def _declared(record: Record) -> str | None:
    return record.retried(lambda: record.study.user_attrs.get(DECLARED))


def _part(name: str, text: str | None, leases: Leases) -> Part | None:
    """Return what was declared of a split, None where nothing is yet. Raises StudyError where we cannot work on it."""
    if text is None:
        return None
    declared = Declaration(**json.loads(text))
    _check_version(declared.version, name)
    study = Study.from_dict(declared.study)
    return Part(name, declared.version, leases, Tasks(study, _data(declared, name)).of)


def _check_version(theirs: str, name: str) -> None:
    if theirs != this_version():
        raise StudyError(
            f"study '{name}' is run by RankTune {theirs}, this worker is {this_version()}: they may compute different "
            f"things. Install the same version here: pip install ranktune=={theirs}."
        )


def _data(declared: Declaration, name: str) -> Path:
    """Return the folder with the data of a split on this machine; fetched where it is not here yet."""
    try:
        return located(declared.folder)
    except StudyError:
        if declared.artifacts is None:
            raise StudyError(
                f"the data of study '{name}' are in {declared.folder} on {declared.host}, which this machine does not "
                "have. Mount it here under the same path, or begin the study with --artifacts (a folder that all see, "
                "or s3://BUCKET/PREFIX)."
            ) from None
    place = Path(declared.folder).name
    packed = Artifacts(declared.artifacts).read(data_name(place))
    if packed is None:
        raise StudyError(f"the data of study '{name}' are not in {declared.artifacts}, where it keeps them.")
    return unpack_problem(packed, place)


def share(folder: Path, artifacts: Artifacts) -> None:
    """Put the data of a split where workers fetch them, unless they are there."""
    if artifacts.read(data_name(folder.name)) is None:
        artifacts.write(data_name(folder.name), pack_problem(folder))


def data_name(place: str) -> str:
    """Return the name under which the data of a split are kept among artifacts."""
    return f"data-{place}.zip"
