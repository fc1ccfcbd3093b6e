"""The note and tags of a study, which earlier releases wrote into labels.json in its folder."""

from __future__ import annotations

from ranktune.solvers.core.errors import Damaged
from ranktune.tuner.splits.seals import read_sealed
from ranktune.tuner.study.home import StudyFolder


def read_labels(folder: StudyFolder) -> tuple[str, list[str]]:
    """Return the note and the tags of a study, empty ones where there are none. Raises Damaged."""
    file = folder.path / "labels.json"
    try:
        match read_sealed(file):
            case None:
                return "", []
            case {"note": str() as note, "tags": list() as tags} if all(isinstance(tag, str) for tag in tags):
                return note, tags
        raise Damaged(f"cannot read {file}: it holds no note and tags.")
    except Damaged as error:
        raise Damaged(f"{error} Remove it, and digests/{file.name}.") from None
