"""The state of a pass in one file, from which it or the pass of the next day goes on: an npz archive, and one text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktune.solvers.core.arrays import Array, Json, JsonView
from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.solvers.core.files.archives import read_headed, write_archive
from ranktune.solvers.core.files.atomic import atomic_write

FORMAT = 1

SECONDS = 10.0
"""Seconds between two checkpoints; more where writing one takes a noticeable part of that."""

SHARE_OF_WRITING = 0.05
"""The largest share of the time that is spent on checkpoints."""


@dataclass
class PassCheckpoint:
    """The file of a pass, if it has one, which is written now and then.

    declared  the declaration of the pass, JSON values by name: it continues only under the same declaration
    last      when the file was written, or the pass began, by the steady clock; cost: the seconds that writing took
    """

    path: Path | None
    declared: Json
    last: float = field(default_factory=time.monotonic)
    cost: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the next one."""
        return self.path is not None and time.monotonic() - self.last > max(SECONDS, self.cost / SHARE_OF_WRITING)

    def save(self, about: JsonView, arrays: Mapping[str, Array]) -> None:
        """Write the state in place of the previous one. Raises StudyError where it cannot be written."""
        assert self.path is not None
        begun = time.monotonic()
        about = {"format": FORMAT, "declared": self.declared, **about}
        try:
            atomic_write(self.path, write_archive(arrays, about))
        except OSError as error:
            raise StudyError(
                f"cannot write {self.path}: {error.strerror}. Give a folder you may write to, with room."
            ) from None
        self.last = time.monotonic()
        self.cost = self.last - begun

    def load(self) -> tuple[Json, dict[str, Array]] | None:
        """Return what save wrote, None where there is nothing.

        Raises StudyError for a file that is damaged, has an unknown format, or is of another pass.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            about, arrays = read_headed(self.path)
            known = about["format"]
        except (Damaged, KeyError, TypeError) as error:
            raise StudyError(f"{self.path} is damaged ({error}). Remove it, and the pass begins again.") from None
        if known != FORMAT:
            raise StudyError(
                f"{self.path} has the format {known}, this RankTune reads {FORMAT}. Remove it to begin again."
            )
        for name, declared in self.declared.items():
            if (stored := about["declared"].get(name)) != declared:
                raise StudyError(
                    f"{self.path} is the checkpoint of another pass: its {name} is {stored!r}, not {declared!r}. Give "
                    "what was given then, or another folder. Releases before 0.2.2 knew data by other digests: remove "
                    "such a file, and the pass begins again."
                )
        return about, {
            name.removeprefix("state-"): array for name, array in arrays.items()
        }  # as older releases named them
