"""The home folder of studies, with one folder per study.

HOME/NAME/study.json   the declaration, digests of the data, the search space, and the versions of packages
HOME/NAME/facts.json   the sizes of the data
HOME/NAME/lock         held by the process that runs the study (ranktune.tuner.study.lock)
HOME/NAME/events.jsonl the log (ranktune.tuner.study.events)
HOME/NAME/             record.db, artifacts/ and model.json; for a study of several splits, HOME/NAME/SPLIT/
HOME/NAME/data/        the arrays that workers map; removed when the study is finished
HOME/NAME/result.json  the result
HOME/NAME/digests/     digests of those files that are read again (ranktune.tuner.splits.seals)

What declares a study loads the solvers: it is imported where a declaration is read, so that lists of studies are fast.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import Damaged, ParameterError, StudyError, nearest, warn
from ranktune.solvers.core.files.atomic import remedy_of, remove_drafts, sync_folder
from ranktune.solvers.core.libraries import versions_of
from ranktune.tuner.splits.seals import FOLDER as DIGESTS
from ranktune.tuner.splits.seals import is_written, read_sealed, write_sealed
from ranktune.tuner.study.events import FILE as EVENTS
from ranktune.tuner.study.lock import LOCK, holder, owning
from ranktune.tuner.study.settings import Settings, check_name

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json
    from ranktune.tuner.study.compatibility import Difference
    from ranktune.tuner.study.declaration import Study

FORMAT = 2
PLACES = "places.json"
GATHERED = "data.parts"


def home_folder(home: str | Path | None = None) -> Path:
    """Return home, by default RANKTUNE_HOME or ranktune-runs in the current folder."""
    return Path(home or os.environ.get("RANKTUNE_HOME") or "ranktune-runs")


class NoStudy(StudyError):
    """There is no study of that name, or no process that runs it."""


@dataclass(frozen=True)
class StudyFolder:
    """The folder of one study."""

    path: Path

    @property
    def result(self) -> Path:
        """Path of the result; it exists once the chosen model is fitted, and is complete once the study is finished."""
        return self.path / "result.json"

    @property
    def has_begun(self) -> bool:
        """Whether the study was declared."""
        return is_written(self.declaration)

    @property
    def has_result(self) -> bool:
        """Whether the study has an answer, which may be followed by the rest of its result."""
        return is_written(self.result)

    @property
    def declaration(self) -> Path:
        """Path of the declaration."""
        return self.path / "study.json"

    @property
    def data(self) -> Path:
        """Folder of the arrays that workers map."""
        return self.path / "data"

    def split(self, name: str) -> Path:
        """Folder of one split's record and model."""
        return self.path / name if name else self.path

    @contextmanager
    def replace_data(self) -> Iterator[Path]:
        """Yield an empty folder that becomes data if the block succeeds, so that data is always complete."""
        fresh = self.path / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with writing(self.path):
            fresh.mkdir()
            yield fresh
            self.remove_data()
            fresh.rename(self.data)
            sync_folder(self.path)

    @contextmanager
    def gathering(self) -> Iterator[Path]:
        """Yield the folder where large selections of queries are kept while the data are prepared."""
        place = self.path / GATHERED
        shutil.rmtree(place, ignore_errors=True)
        try:
            with writing(self.path):
                yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def check_settings(self, study: Study, *, extend: bool = False) -> Study:
        """Return the study to run: study, with the solvers of an extended study in their former order.

        Trials and time may differ, and with extend the search space may be wider. Raises StudyError that names every
        other difference from the study in this folder.
        """
        study.check_loadable()
        if not self.has_begun:
            return study
        existing = self.study()
        study = replace(study, first=study.first or existing.first)
        if extend:
            first = [name for name in existing.solvers if name in study.solvers]
            study = replace(study, solvers=tuple(dict.fromkeys((*first, *study.solvers))))
        differences = self._differences(existing, study)
        if [change for change in differences if not (extend and change.keeps_trials)]:
            changes = "; ".join(change.text for change in differences)
            widens = not extend and all(change.keeps_trials for change in differences)
            wider = ", or widen the study (extend=True)" if widens else ""
            raise StudyError(
                f"study '{self.path.name}', run by {self._version()}, exists with other settings: {changes}. "
                f"Choose another name (name=), or repeat its settings{wider}."
            )
        return study

    def as_it_began(self) -> Study:
        """Return the declared study with the search space that it began with, where solvers have another one today.

        Without a way to confine the space of today to it, the study is returned as it is declared.
        """
        from ranktune.tuner.study.compatibility import confining, of_today

        study = self.study()
        with suppress(ParameterError, KeyError):  # the first versions saved no space
            overrides = confining(of_today(self._saved().get("space", {})), study.union_space())
            return replace(study, space={**study.space, **overrides})
        return study

    def _differences(self, existing: Study, new: Study) -> list[Difference]:
        from ranktune.tuner.study.compatibility import of_today, saved_space, setting_differences, space_differences

        # The space was saved too: the same declaration means another space once a solver's default space has changed.
        searched = self._saved().get("space") or saved_space(existing.union_space())
        # A field that did not exist has its default.
        differences = setting_differences(existing.as_dict(), new.as_dict())
        return differences + space_differences(of_today(searched), saved_space(new.union_space()))

    def _version(self) -> str:
        """Return the version of RankTune that last ran the study, where its record is a file."""
        names = self.split_names()
        file = self.split(names[0] if names else "") / "record.db"
        query = "SELECT value_json FROM study_user_attributes WHERE key = 'ranktune'"
        with suppress(sqlite3.Error, ValueError, TypeError, KeyError):
            with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as record:
                version = json.loads(json.loads(record.execute(query).fetchone()[0]))["version"]
                return f"RankTune {version}"
        return "another RankTune"

    def declare(self, study: Study, digests: Mapping[str, str], *, extend: bool = False) -> None:
        """Save study and the digests of its data. Raises StudyError if the folder holds another study."""
        from ranktune.tuner.study.compatibility import saved_space

        study = self.check_settings(study, extend=extend)
        if self.has_begun and self.digests() != dict(digests):
            raise StudyError(
                f"study '{self.path.name}' exists with other data ({_changed(self.digests(), digests)}). "
                "Choose another name (name=), or give the data it began with."
            )
        declared = {
            "format": FORMAT,
            "study": study.as_dict(),
            "data": dict(digests),
            "space": saved_space(study.union_space()),
            "versions": self._begun_with() if self.has_begun else versions_of(study.packages),
        }
        with writing(self.path):
            write_sealed(self.declaration, json.dumps(declared, indent=1))

    def warn_of_versions(self) -> None:
        """Warn (RankTuneWarning) where Python or packages have other versions than when the study began."""
        before = self._begun_with() if self.has_begun else {}
        now = versions_of(before)
        changes = [f"{name} {was} -> {now[name]}" for name, was in before.items() if was != now[name]]
        if changes:
            text = f"study '{self.path.name}' began with other versions, so that new trials may differ"
            warn(f"{text}: {', '.join(changes)}.")

    def _begun_with(self) -> Json:
        """Return the versions that the study began with, none of an older study."""
        versions: Json = self._saved().get("versions", {})
        return versions

    def study(self) -> Study:
        """Return the declared study."""
        from ranktune.tuner.study.declaration import Study

        try:
            return Study.from_dict(self._saved()["study"])
        except (ParameterError, KeyError, TypeError, AttributeError) as error:
            raise StudyError(
                f"{self.declaration} declares what this version of RankTune cannot run: {error} "
                "Open it with the RankTune that wrote it."
            ) from None

    def settings(self) -> Settings:
        """Return the settings of the declared study as they were saved: nothing that runs it is loaded."""
        names = {setting.name for setting in fields(Settings)}
        return Settings(**{name: value for name, value in self._saved()["study"].items() if name in names})

    def split_names(self) -> list[str]:
        """Return the names of the splits, in their order."""
        return list(self._saved()["data"])

    def digests(self) -> dict[str, str]:
        """Return the digest of each split's data."""
        return dict(self._saved()["data"])

    def save_facts(self, facts: Mapping[str, Mapping[str, int]]) -> None:
        """Save the sizes of each split's data, for those who read the study once its data are gone."""
        with writing(self.path):
            write_sealed(self.path / "facts.json", json.dumps(facts))

    def facts(self) -> dict[str, dict[str, int]]:
        """Return the sizes of each split's data, empty for an older study. Raises Damaged."""
        return read_sealed(self.path / "facts.json") or {}

    def _saved(self) -> Json:
        file = self.declaration
        try:
            saved = read_sealed(file)
        except Damaged as damage:
            raise StudyError(f"{damage} Restore it from a backup, or choose another name.") from None
        if saved is None:
            raise StudyError(f"cannot read {file}: there is no such file. Choose another name, or remove that folder.")
        fields = saved if isinstance(saved, dict) else {}
        if fields.get("format") != FORMAT:
            raise StudyError(f"{file} {_format_problem(fields.get('format'))}")
        if not isinstance(fields.get("study"), dict) or not isinstance(fields.get("data"), dict):
            raise StudyError(f"{file} {_format_problem(None)}")
        return fields

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the lock of the study. Raises BeingRun (a StudyError) that names the holder."""
        with owning(self.path):
            begun = (self.path / LOCK).stat().st_mtime
            try:
                yield
                remove_drafts(self.path, begun, "**/.*.tmp")
            finally:
                if not self.has_begun:  # the study did not begin: its name is free again
                    self._remove()

    def is_running(self) -> bool:
        """Return whether a process apparently runs the study; the lock itself is not touched."""
        return holder(self.path) is not None

    def _remove(self) -> None:
        """Remove the files of a study that did not begin, and the folder if nothing else is in it."""
        for name in ("data.new", GATHERED, DIGESTS):
            shutil.rmtree(self.path / name, ignore_errors=True)
        with suppress(OSError):
            for file in (EVENTS, PLACES, LOCK):
                (self.path / file).unlink(missing_ok=True)
            self.path.rmdir()

    def remove_data(self) -> None:
        """Remove the arrays that workers mapped: they can be read from the source again."""
        shutil.rmtree(self.data, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError, in a block that writes to a study's folder, into a StudyError."""
    try:
        yield
    except OSError as error:
        raise StudyError(
            f"cannot write to {path}: {error.strerror or error}. {remedy_of(error) or 'Check the place'}, or choose "
            "another home (home= or RANKTUNE_HOME), then run it again: trials that had finished are kept."
        ) from None


def _format_problem(number: object) -> str:
    """Return why a declaration of another format cannot be read, and what can be done."""
    if not isinstance(number, int) or isinstance(number, bool):
        return "is not a declaration of a study. Choose another name, or remove that folder."
    if number > FORMAT:
        return f"has format {number}, of a newer RankTune; this one reads {FORMAT}. Upgrade (pip install -U ranktune)."
    return (
        f"has format {number}, of a RankTune that validated trials in another way, so that they cannot be continued; "
        f"this one reads {FORMAT}. Any Optuna tool opens its record; for more trials choose another name (name=)."
    )


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the difference between the digests of the splits of two studies, in words."""
    if list(before) != list(now):
        return f"its parts are {list(before)} there, {list(now)} here"
    parts = [name for name in before if name and before[name] != now[name]]
    return f"the digest of {', '.join(parts)} differs" if parts else "its digest differs"


def make_folder(home: Path, name: str) -> StudyFolder:
    """Return the folder of a new or existing study. Raises StudyError if it cannot be created or written."""
    folder = StudyFolder(home / name)
    try:
        _probe(folder.path)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"cannot write to {folder.path}: {getattr(error, 'strerror', None) or error}. "
            "Choose a home that you may write to (home= or RANKTUNE_HOME)."
        ) from None
    return folder


def _probe(path: Path) -> None:
    """Write and remove a file. Meanwhile another launch may do the same, or remove a study that did not begin."""
    until = time.monotonic() + 1.0
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / ".writable"
            probe.touch()
            probe.unlink(missing_ok=True)
            return
        except (FileNotFoundError, FileExistsError):
            if time.monotonic() > until or path.is_file():
                raise
            time.sleep(0.005)


def find_folder(home: Path, name: str) -> StudyFolder:
    """Return the folder of an existing study. Raises NoStudy with the nearest name if there is none."""
    if Path(name).parent.resolve() == home.resolve():  # the folder itself
        name = Path(name).name
    check_name(name)
    folder = StudyFolder(home / name)
    if not folder.has_begun:
        names = [study.path.name for study in all_folders(home)]
        hint = nearest(name, names) if names else "It holds no studies yet."
        raise NoStudy(f"no study '{name}' in {home}. {hint}")
    return folder


def all_folders(home: Path) -> list[StudyFolder]:
    """Return the folders of all studies in home, oldest first."""
    if not home.is_dir():
        return []
    folders = [folder for folder in map(StudyFolder, home.glob("*")) if folder.has_begun]
    return sorted(folders, key=lambda folder: (_changed_at(folder.declaration), folder.path))


def _changed_at(file: Path) -> float:
    """Return when a file was changed, 0 if it is gone by now."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def free_name(home: Path, stem: str) -> str:
    """Return the first of stem, stem-2, stem-3, ... that no study in home has, and make its folder if that is possible.

    So no other process takes the name. A folder in which no study begins is removed by `owned`.
    """
    for name in (stem if k == 1 else f"{stem}-{k}" for k in range(1, 10_000_000)):
        with suppress(OSError, ValueError):  # which make_folder tells
            (home / name).mkdir(parents=True)
            break
        if not os.path.lexists(home / name):
            break
    return name
