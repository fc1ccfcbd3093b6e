"""The versions of a study: itself, and those that retuned it; and which of their models is the current one.

HOME/NAME/current.json      the current version and its model, in the folder of the first study
HOME/VERSION/decision.json  what the retuning of that version ended with
HOME/VERSION/delivered/     what a version was each time that it ended, by the model that it delivered: links to files

Without current.json the model of the first study is the current one. That file is written here alone, under a lock. A
version that is resumed may deliver another model: what is current stays what it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import Damaged, StudyError, nearest
from ranktune.solvers.core.files.atomic import atomic_folder, locked
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.splits.seals import file_digest, read_sealed, write_sealed
from ranktune.tuner.study.home import StudyFolder, all_folders, find_folder, writing
from ranktune.tuner.study.lock import LOCK, BeingRun, owning

CURRENT, DECISION, DELIVERED = "current.json", "decision.json", "delivered"
_CHANGING = shutil.ignore_patterns(DELIVERED, LOCK, "record.db*", "events*", "artifacts", "models", "data*", ".*")
"""What of a study is not copied: what is written to as it is, and what no reader of a delivered model needs."""


@dataclass(frozen=True)
class Delivery:
    """A model that a version delivers.

    Attributes
    ----------
    version, study, model : str
        The version, the study whose folder holds the model, and its file there.
    copy : str
        The name of the copy of that study that is meant, "" for the study itself.
    since : str
        What made it current and when, "" for one that was not made current.
    """

    version: str
    study: str
    model: str
    copy: str = ""
    since: str = ""

    def holder(self, home: Path) -> StudyFolder:
        """Return the folder of the study that holds the model, as it was then."""
        return StudyFolder(home / self.study / DELIVERED / self.copy if self.copy else home / self.study)

    def path(self, home: Path) -> Path:
        """Return the path of the model: in the study itself as long as it is the same there."""
        now = home / self.study / self.model
        return now if self.copy in ("", _name(now)) else self.holder(home).path / self.model


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
    if not folder.has_result:
        raise StudyError(f"study '{folder.path.name}' has no result yet. `ranktune resume {folder.path.name}` goes on.")
    if (decided := decision_of(folder)) is not None:
        return Delivery(folder.path.name, **decided["delivered"])
    split = Path(load_result(folder.result).model).parent.name
    inside = f"{split}/model.json" if split in folder.split_names() else "model.json"
    return Delivery(folder.path.name, folder.path.name, inside)


def with_copy(home: Path, found: Delivery) -> Delivery:
    """Return a delivery with a copy of its study, whose files may be replaced. Raises StudyError while it is run."""
    study, found = home / found.study, replace(found, copy=found.copy or _name(found.path(home)))
    if not (copy := found.holder(home).path).exists():
        copy.parent.mkdir(exist_ok=True)
        try:
            with owning(study), atomic_folder(copy) as draft:
                shutil.copytree(study, draft, ignore=_CHANGING, copy_function=_link, dirs_exist_ok=True)
        except BeingRun as error:
            raise StudyError(
                f"{error.sentence}, which may replace its model: nothing was changed. Do it again once that has ended."
            ) from None
    return found


def current(home: Path, name: str) -> Delivery:
    """Return the current model of a study, given by any of its versions. Raises StudyError for a damaged pointer."""
    first = first_of(home, name)
    try:
        stored = read_sealed(first.path / CURRENT)
        return delivered(first) if stored is None else Delivery(**stored)
    except (Damaged, TypeError) as error:
        raise StudyError(f"{error} Choose a version again: {_rollback(first.path.name, 'VERSION')}.") from None


def make_current(home: Path, name: str, version: str) -> Delivery:
    """Let what a version of a study delivers be the current model, and return it.

    Raises StudyError for a version that there is not, or that has not ended, and where its model is gone.
    """
    folders = {folder.path.name: folder for folder in versions(home, name)}
    if version not in folders:
        raise StudyError(f"study '{name}' has no version '{version}'. {nearest(version, folders)}")
    return _recorded(home, name, lambda: delivered(folders[version]), "rollback")


def recorded(home: Path, name: str) -> Delivery:
    """Return the current model, which stays that from now on, whatever becomes of its study."""
    return _recorded(home, name, lambda: current(home, name), "first retune")


def settle(folder: StudyFolder, *, move: bool = True) -> tuple[Path, str]:
    """Return the current model once a version has ended, with a sentence, "" for a study that was never retuned.

    With move, what the version decided for is made current, if what it was compared with is that still.
    """
    home, version = folder.path.parent, folder.path.name
    ended, decided = delivered(folder), decision_of(folder) or {}

    def chosen() -> Delivery:
        found = current(home, version)
        return ended if ended.study == version and asdict(found) == decided.get("incumbent") else found

    found = _recorded(home, version, chosen, "retune") if move else current(home, version)
    model, name = found.path(home), first_of(home, version).path.name
    line = sentence(home, name, found) if decided or found.since else ""
    if ended.path(home) != model:
        line += f", since the {found.since}. {_rollback(name, version)} makes that of {version} current."
    return model, line


def sentence(home: Path, name: str, found: Delivery) -> str:
    """Return the sentence on the current model of a study."""
    return f"The current model of {name} is that of {found.version}: {found.path(home)}"


def _rollback(name: str, version: str) -> str:
    return f"`ranktune retune {name} --rollback {version}`"


def _recorded(home: Path, name: str, choose: Callable[[], Delivery], by: str) -> Delivery:
    """Return a choice that is made while nothing else moves what is current; it is written, unless it is that."""
    first = first_of(home, name).path
    with writing(first), locked(first / CURRENT):
        found = choose()
        if not found.since:
            if not found.path(home).exists():
                raise StudyError(
                    f"the model of version '{found.version}', {found.path(home)}, is gone. Choose another version."
                )
            found = replace(with_copy(home, found), since=f"{by} at {datetime.now().astimezone()}")
            write_sealed(first / CURRENT, json.dumps(asdict(found)))
        return found


def _name(model: Path) -> str:
    """Return the name of a copy that holds a model, which is like no other's where the model is gone."""
    with suppress(OSError):
        return file_digest(model)[:16]
    return "gone"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


def delivery_of(home: Path, name: str) -> Delivery:
    """Return the model of a name: of a first study the current one, of a later version what it delivers."""
    folder = find_folder(home, name)
    return delivered(folder) if folder.study().after else current(home, name)


def model_file(home: Path, name: str) -> Path:
    """Return the file of a model by name."""
    return delivery_of(home, name).path(home)
