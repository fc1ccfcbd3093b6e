"""What people write about a study: a note and tags, in labels.json in its folder. Nothing depends on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.files import locked
from ranktune.tuner.splits.proof import Damaged
from ranktune.tuner.splits.sealing import read_sealed, write_sealed
from ranktune.tuner.study.home import StudyFolder

MAX_NOTE, MAX_TAG, MAX_TAGS = 2_000, 40, 20
"""Characters of a note and of a tag, and tags of a study."""


@dataclass(frozen=True)
class Labels:
    """A note and tags of a study."""

    note: str = ""
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the lengths. Raises ParameterError."""
        if len(self.note) > MAX_NOTE:
            raise ParameterError(f"the note has {len(self.note)} characters; at most {MAX_NOTE} are kept.")
        for tag in self.tags:
            if not 0 < len(tag) <= MAX_TAG or "," in tag:
                raise ParameterError(f"tag={tag[:60]!r}: a tag has 1 to {MAX_TAG} characters and no comma.")
        if len(self.tags) > MAX_TAGS:
            raise ParameterError(f"{len(self.tags)} tags; a study has at most {MAX_TAGS}.")


def read_labels(folder: StudyFolder) -> Labels:
    """Return the labels of a study, empty ones where there are none. Raises Damaged."""
    file = folder.path / "labels.json"
    try:
        match read_sealed(file):
            case None:
                return Labels()
            case {"note": str() as note, "tags": list() as tags} if all(isinstance(tag, str) for tag in tags):
                return Labels(note, tuple(tags))
        raise Damaged(f"cannot read {file}: it holds no note and tags.")
    except (Damaged, ParameterError) as error:
        raise Damaged(f"{error} Remove it, and digests/{file.name}, to write another.") from None


def change_labels(
    folder: StudyFolder, note: str | None = None, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Labels:
    """Replace the note of a study unless it is None, add and remove tags, and return what it has then."""
    with locked(folder.path / "labels.json"):
        before = read_labels(folder)
        kept = [tag for tag in before.tags if tag not in remove]
        labels = Labels(before.note if note is None else note, tuple(dict.fromkeys([*kept, *add])))
        write_sealed(folder.path / "labels.json", json.dumps(asdict(labels)))
        return labels
