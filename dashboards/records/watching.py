"""Studies that are read repeatedly: each is read once for each change, however many pages show it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ranktune.dashboards.records.file import FileState, Reader, file_states
from ranktune.dashboards.records.opening import files_of
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.solvers.core.errors import RankTuneError, StudyError
from ranktune.tuner.study.home import StudyFolder, all_folders


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
    _readers: dict[Path, Reader] = field(default_factory=dict)
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
