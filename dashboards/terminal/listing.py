"""The studies of a home folder, and the progress of one that is running or was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.dashboards.records.reader import changed_of, reader_of, trials_of
from ranktune.dashboards.records.trial import best_of, counts
from ranktune.dashboards.terminal.tables import FittedTable, four_digits
from ranktune.solvers.core.errors import Damaged, RankTuneError
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.events import lost_trials
from ranktune.tuner.study.home import StudyFolder, all_folders
from ranktune.tuner.study.labels import read_labels

if TYPE_CHECKING:  # it loads NumPy, which a list does not need
    from ranktune.solvers.core.arrays import Json, JsonView


def listing(home: Path) -> list[Json]:
    """Return a line for each study of home, oldest first; that of an unreadable study has the reason."""
    return [_line(folder) for folder in all_folders(home)]


def _line(folder: StudyFolder) -> Json:
    line: Json = {"study": folder.path.name, "changed": "", "note": "", "tags": []}
    try:
        line |= {"changed": changed_of(folder), **_labels(folder)}
        return line | (_finished(folder) if folder.has_result else state(folder.path))
    except RankTuneError as error:
        return line | {"state": f"unreadable: {error}"}
    except Exception as error:  # an error in one study does not hide the others
        return line | {"state": f"unreadable: {type(error).__name__}: {error}"}


def _labels(folder: StudyFolder) -> Json:
    try:
        note, tags = read_labels(folder)
    except Damaged as damage:
        return {"note": f"unreadable: {damage}", "tags": []}
    return {"note": note, "tags": tags}


def _finished(folder: StudyFolder) -> Json:
    result = load_result(folder.result)
    best = result.best
    value = best.vali or best.again or result.estimate
    return {
        "data": result.data,
        "metric": result.metric,
        "state": "running" if folder.is_running() else "finished" if result.is_complete else "interrupted",
        "done": result.trials,
        "trials": result.trials,
        "stopped": result.stopped,
        "failed": sum(failure.number is not None for failure in result.failures),
        "solver": best.solver,
        "best": value.mean if value.mean == value.mean else None,
        "test": None if best.test is None else best.test.mean,
    }


def state(path: Path) -> Json:
    """Return the progress of a study without a result: finished trials, how they ended, and the best by validation.

    It is "running", or "interrupted" if no process runs it. trials, the number to run, is None where it is not known.
    Only trials that were evaluated in full can be the best. damage says what the record lacks.
    """
    folder = StudyFolder(path)
    study = folder.settings()
    by_split = {name: trials_of(folder, name, reader_of(folder, name)) for name in folder.split_names()}
    trials = [trial for of_split in by_split.values() for trial in of_split]
    lost = [lost_trials(path, name, (trial.number for trial in of_split)) for name, of_split in by_split.items()]
    counted, best = counts(trials), best_of(trials)
    return {
        "study": path.name,
        "data": study.data,
        "metric": study.metric,
        "state": "running" if folder.is_running() else "interrupted",
        "done": len(trials),
        "stopped": counted.stopped,
        "failed": counted.failed,
        "trials": study.n_trials * len(folder.split_names()) if study.ends_by_count else None,
        "solver": None if best is None else best.solver,
        "best": None if best is None else best.value,
        "test": None,
        "damage": " ".join(filter(None, lost)),
    }


def listing_table(studies: list[Json]) -> FittedTable:
    """Return the lines as a table."""
    left = {
        "study": [line["study"] for line in studies],
        "data": [Path(line.get("data", "")).name for line in studies],
        "metric": [line.get("metric", "") for line in studies],
        "solver": [line.get("solver") or "" for line in studies],
        "state": [". ".join(filter(None, (line["state"], line.get("damage")))) for line in studies],
        "changed": [line["changed"][:16].replace("T", " ") for line in studies],
    }
    if any(line["tags"] for line in studies):
        left["tags"] = [", ".join(line["tags"]) for line in studies]
    right = {
        "trials": [counted(line) if "done" in line else "" for line in studies],
        "score": [four_digits(line.get("best")) for line in studies],
        "test": [four_digits(line.get("test")) for line in studies],
    }
    optional = ("data", "metric", "tags", "trials", "solver", "test")
    return FittedTable(left, right, [name for name in optional if name in left or name in right])


def counted(line: JsonView) -> str:
    """Return the number of finished trials, "5 of 20" where it is known how many there will be."""
    return str(line["done"]) if line["trials"] in (None, line["done"]) else f"{line['done']} of {line['trials']}"
