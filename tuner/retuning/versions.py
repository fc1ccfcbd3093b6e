"""The versions of a study: itself, and those that retuned it; and which of their models is the current one.

HOME/NAME/current.json      the current version and its model, in the folder of the first study
HOME/VERSION/decision.json  what the retuning of that version ended with

Without current.json the model of the first study is the current one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError, nearest
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.splits.proof import Damaged
from ranktune.tuner.splits.sealing import read_sealed, write_sealed
from ranktune.tuner.study.home import StudyFolder, all_folders, find_folder, writing

CURRENT, DECISION = "current.json", "decision.json"


@dataclass(frozen=True)
class Delivery:
    """A model that a version delivers: the study whose folder holds it, and its file there."""

    version: str
    study: str
    model: str

    def path(self, home: Path) -> Path:
        """Return the path of the model."""
        return home / self.study / self.model


def first_of(home: Path, name: str) -> StudyFolder:
    """Return the folder of the first study of a version. Raises StudyError where a study of the chain is gone."""
    folder = find_folder(home, name)
    while after := folder.study().after:
        folder = find_folder(home, after)
    return folder


def versions(home: Path, name: str) -> list[StudyFolder]:
    """Return the folders of all versions of a study, the first study first, finished or not."""
    first, followers = first_of(home, name), dict[str, list[StudyFolder]]()
    for folder in all_folders(home):
        followers.setdefault(_after(folder), []).append(folder)
    found = [first]
    for folder in found:  # it grows
        found += followers.get(folder.path.name, [])
    return found


def _after(folder: StudyFolder) -> str:
    """Return the study that one retunes, "" for one that cannot be read."""
    try:
        return folder.study().after
    except StudyError:
        return ""


def decision_of(folder: StudyFolder) -> Json | None:
    """Return what the retuning of a version ended with, None of a first study and before its end. Raises Damaged."""
    decided: Json | None = read_sealed(folder.path / DECISION)
    return decided


def delivered(folder: StudyFolder) -> Delivery:
    """Return what a version delivers. Raises StudyError where it has not ended."""
    decided = decision_of(folder)
    if decided is not None:
        return Delivery(folder.path.name, decided["delivered"]["study"], decided["delivered"]["model"])
    if not folder.has_result:
        raise StudyError(f"study '{folder.path.name}' has no result yet. `ranktune resume {folder.path.name}` goes on.")
    split = Path(load_result(folder.result)["model"]).parent.name
    inside = f"{split}/model.json" if split in folder.split_names() else "model.json"
    return Delivery(folder.path.name, folder.path.name, inside)


def current(home: Path, name: str) -> Delivery:
    """Return the current model of a study, given by any of its versions. Raises StudyError for a damaged pointer."""
    first = first_of(home, name)
    try:
        kept = read_sealed(first.path / CURRENT)
        return delivered(first) if kept is None else Delivery(**kept)
    except (Damaged, TypeError) as error:
        raise StudyError(f"{error} Choose a version again: `ranktune rollback {first.path.name} VERSION`.") from None


def make_current(home: Path, name: str, version: str) -> Delivery:
    """Let what a version of a study delivers be the current model, and return it.

    Raises StudyError for a version that there is not, or that has not ended, and where its model is gone.
    """
    known = {folder.path.name: folder for folder in versions(home, name)}
    if version not in known:
        raise StudyError(f"study '{name}' has no version '{version}'. {nearest(version, known)}")
    delivery, first = delivered(known[version]), next(iter(known.values()))
    if not delivery.path(home).exists():
        raise StudyError(f"the model of version '{version}', {delivery.path(home)}, is gone. Choose another version.")
    with writing(first.path):
        write_sealed(first.path / CURRENT, json.dumps(asdict(delivery)))
    return delivery


def delivery_of(home: Path, name: str) -> Delivery:
    """Return the model of a name: of a first study the current one, of a later version what it delivers."""
    folder = find_folder(home, name)
    return delivered(folder) if folder.study().after else current(home, name)


def model_file(home: Path, name: str) -> Path:
    """Return the file of a model by name."""
    return delivery_of(home, name).path(home)
