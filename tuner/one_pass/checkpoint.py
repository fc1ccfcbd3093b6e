"""The state of a pass in one file, from which an interrupted pass goes on: an npz archive of arrays and one text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ranktune.solvers.core.arrays import Array, Json, JsonView
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.files import atomic_write
from ranktune.tuner.splits.proof import Damaged, read_archive

FORMAT = 1


def save(path: Path, about: JsonView, arrays: Mapping[str, Array]) -> None:
    """Write a checkpoint in place of the previous one. Raises StudyError where it cannot be written."""
    text = np.frombuffer(json.dumps({"format": FORMAT, **about}).encode(), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        parts: Json = {f"state-{name}": array for name, array in arrays.items()}
        np.savez(file, about=text, **parts)

    try:
        atomic_write(path, write)
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror}. Give a folder you may write to, with room.") from None


def load(path: Path) -> tuple[Json, dict[str, Array]] | None:
    """Return what save wrote, None where there is nothing. Raises StudyError for a damaged or unknown file."""
    if not path.exists():
        return None
    try:
        arrays = read_archive(path)
        about = json.loads(arrays.pop("about").tobytes())
        known = about["format"]
    except (Damaged, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path} is damaged ({error}). Remove it, and the pass begins again.") from None
    if known != FORMAT:
        raise StudyError(f"{path} has the format {known}, this RankTune reads {FORMAT}. Remove it to begin again.")
    return about, {name.removeprefix("state-"): array for name, array in arrays.items()}
