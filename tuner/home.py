"""Where studies live: a home folder with one folder a study.

HOME/NAME/study.json   what was declared, and digests of the data
HOME/NAME/lock         held by the process that runs the study
HOME/NAME/             record.db, artifacts/ and model.json; of a study of several splits, HOME/NAME/SPLIT/
HOME/NAME/data/        the arrays that workers map; removed when the study is finished
HOME/NAME/result.json  what was concluded
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktune.solvers.errors import StudyError, nearest
from ranktune.tuner.study import Study, check_name

FORMAT = 2


def default_home() -> Path:
    """Return RANKTUNE_HOME, or ranktune-runs in the current folder."""
    return Path(os.environ.get("RANKTUNE_HOME") or "ranktune-runs")


@dataclass(frozen=True)
class StudyFolder:
    """The folder of one study."""

    path: Path

    @property
    def result(self) -> Path:
        """Path of the conclusion; it exists once the study is finished."""
        return self.path / "result.json"

    @property
    def data(self) -> Path:
        """Folder of the arrays that workers map."""
        return self.path / "data"

    def split(self, name: str) -> Path:
        """Folder of one split's record and model."""
        return self.path / name if name else self.path

    @contextmanager
    def replace_data(self) -> Iterator[Path]:
        """Yield an empty folder that becomes data when the block ends well: never half of it under that name."""
        fresh = self.path / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        yield fresh
        self.remove_data()
        fresh.rename(self.data)

    def check_settings(self, study: Study) -> None:
        """Raise StudyError that names every difference where this folder holds a study with other settings.

        More trials or time, or less, are the same study.
        """
        if not (self.path / "study.json").exists():
            return
        noted = self.study().as_dict()  # a field that was not there yet has its default
        differences = [
            f"{key} is {noted[key]!r} there, {value!r} here"
            for key, value in study.as_dict().items()
            if key not in ("trials", "timeout", "name") and noted[key] != value
        ]
        if differences:
            raise StudyError(
                f"study '{self.path.name}' exists with other settings: {'; '.join(differences)}. "
                "Choose another name (--name), or repeat its settings."
            )

    def declare(self, study: Study, digests: Mapping[str, str]) -> None:
        """Note study and the digests of its data. Raises StudyError where the folder holds another study."""
        self.check_settings(study)
        if (self.path / "study.json").exists() and self.digests() != dict(digests):
            raise StudyError(
                f"study '{self.path.name}' exists with other data (its digest differs). "
                "Choose another name (--name), or give the data it began with."
            )
        declared = {"format": FORMAT, "study": study.as_dict(), "data": dict(digests)}
        temporary = self.path / "study.tmp"
        temporary.write_text(json.dumps(declared, indent=1), encoding="utf-8")
        temporary.replace(self.path / "study.json")

    def study(self) -> Study:
        """Return the declared study."""
        return Study.from_dict(self._noted()["study"])

    def split_names(self) -> list[str]:
        """Return the names of the splits, in their order."""
        return list(self._noted()["data"])

    def digests(self) -> dict[str, str]:
        """Return the digest of each split's data."""
        return dict(self._noted()["data"])

    def _noted(self) -> dict[str, Any]:
        file = self.path / "study.json"
        try:
            noted: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(noted, dict):
                raise ValueError("it is no declaration of a study")
        except (OSError, ValueError) as error:
            raise StudyError(f"cannot read {file}: {error}. Choose another name, or remove that folder.") from None
        if noted.get("format") != FORMAT:
            raise StudyError(
                f"{file} has format {noted.get('format')}; this version reads {FORMAT}. "
                "Open it with the RankTune that wrote it."
            )
        return noted

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the study: one process runs it. Raises StudyError that names the holder."""
        with open(self.path / "lock", "a+", encoding="utf-8") as file:
            if not _try_lock(file):
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise StudyError(
                    f"study '{self.path.name}' is being run by {holder}. Wait for it, or choose another name."
                )
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()}")
            file.flush()
            try:
                yield
            finally:
                if not (self.path / "study.json").exists():  # it came to nothing: the name is free again
                    self._vanish()
            file.seek(0)
            file.truncate()

    def held(self) -> bool:
        """Return whether the process that the lock names is alive; the lock itself is not touched."""
        try:
            pid = int((self.path / "lock").read_text(encoding="utf-8").removeprefix("process "))
        except (OSError, ValueError):
            return False
        if os.name != "posix":  # there signal 0 would end it
            return True
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            return False
        return True

    def _vanish(self) -> None:
        """Remove what we put into the folder, and the folder if nothing else is in it."""
        shutil.rmtree(self.path / "data.new", ignore_errors=True)
        with suppress(OSError):
            (self.path / "lock").unlink()
            self.path.rmdir()

    def remove_data(self) -> None:
        """Remove the arrays that workers mapped: they can be made again from the source."""
        shutil.rmtree(self.data, ignore_errors=True)


def _try_lock(file: Any) -> bool:
    """Lock file for this process until it is closed; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def make_folder(home: Path, name: str) -> StudyFolder:
    """Return the folder of a new or existing study. Raises StudyError where it cannot be made or written."""
    folder = StudyFolder(home / name)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        probe = folder.path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StudyError(
            f"cannot write to {folder.path}: {error.strerror}. "
            "Choose a home that you may write to (--home or RANKTUNE_HOME)."
        ) from None
    return folder


def find_folder(home: Path, name: str) -> StudyFolder:
    """Return the folder of an existing study. Raises StudyError with the nearest name where there is none."""
    check_name(name)
    folder = StudyFolder(home / name)
    if not (folder.path / "study.json").is_file():
        known = [found.path.name for found in all_folders(home)]
        hint = nearest(name, known) if known else "There are no studies there yet."
        raise StudyError(f"no study '{name}' in {home}. {hint}")
    return folder


def all_folders(home: Path) -> list[StudyFolder]:
    """Return the folders of all studies in home, oldest first."""
    if not home.is_dir():
        return []
    files = sorted(home.glob("*/study.json"), key=lambda file: file.stat().st_mtime)
    return [StudyFolder(file.parent) for file in files]


def free_name(home: Path, stem: str) -> str:
    """Return stem, or stem-2, stem-3, ... : the first that no study in home has."""
    names = (stem if k == 1 else f"{stem}-{k}" for k in range(1, 10_000_000))
    return next(name for name in names if not (home / name).exists())
