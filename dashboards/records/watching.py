"""Studies that are looked at again and again: read once for each change, however many pages ask."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from ranktune.dashboards.records.file import Reader, changes
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.solvers.core.errors import RankTuneError
from ranktune.tuner.selection.evidence import EVIDENCE
from ranktune.tuner.study.events import FILE as EVENTS
from ranktune.tuner.study.home import PLACES, StudyFolder, all_folders

T = TypeVar("T")

_OF_STUDY = ("study.json", "result.json", "lock")
_OF_SPLIT = ("record.db", "record.db-wal", EVIDENCE)


@dataclass
class Watched:
    """One study, its data and what was made of them, as long as its files stay what they are.

    costs is the processor time, in seconds, that making each view took when it was last made, reading included.
    """

    folder: Path
    costs: dict[str, float] = field(default_factory=dict)
    _seen: Any = None
    _data: StudyData | None = None
    _made: dict[str, tuple[StudyData, bytes]] = field(default_factory=dict)
    _readers: dict[Path, Reader] = field(default_factory=dict)
    _reading: Lock = field(default_factory=Lock)
    _making: dict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    @property
    def name(self) -> str:
        """What the study is called."""
        return self.folder.name

    def signature(self) -> Any:
        """Return what changes as soon as any file of the study does."""
        home = StudyFolder(self.folder)
        try:
            splits = [home.split(name) for name in home.split_names()]
        except RankTuneError:
            splits = []
        files = [self.folder / name for name in _OF_STUDY]
        if (self.folder / PLACES).exists():  # the record is elsewhere; the log tells when something happens to it
            files.append(self.folder / EVENTS)
        return changes(iter(files + [split / name for split in splits for name in _OF_SPLIT]))

    def data(self) -> StudyData:
        """Return the study as it is now. Raises StudyError where it cannot be read."""
        return self.look(lambda data: data)

    def look(self, make: Callable[[StudyData], T]) -> T:
        """Return what make makes of the study as it is now."""
        return make(self._current())

    def kept(self, key: str, make: Callable[[StudyData], bytes]) -> bytes:
        """Return what make makes of the study, made once until the study changes; one thread at a time makes it."""
        with self._making[key]:
            begun = time.thread_time()
            data = self._current()
            made = self._made.get(key)
            if made is None or made[0] is not data:
                made = self._made[key] = (data, make(data))
                self.costs[key] = time.thread_time() - begun
            return made[1]

    def _current(self) -> StudyData:
        with self._reading:
            seen = self.signature()
            if self._data is None or seen != self._seen:
                self._data = open_study(self.folder, self._readers)
                self._seen = seen  # from before reading: what came meanwhile is read the next time
            return self._data


@dataclass
class Watching:
    """The studies of a home folder, by name."""

    home: Path
    _known: dict[Path, Watched] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def names(self) -> list[str]:
        """Return the names of the studies there are now, the latest first."""
        return [folder.path.name for folder in reversed(all_folders(self.home))]

    def find(self, name: str) -> Watched | None:
        """Return a study by its name, None where there is none: compared with what is there, never joined to a path."""
        folder = next((found.path for found in all_folders(self.home) if found.path.name == name), None)
        if folder is None:
            return None
        with self._lock:
            return self._known.setdefault(folder, Watched(folder))
