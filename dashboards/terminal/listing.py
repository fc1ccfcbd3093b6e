"""The studies of a home folder, and the progress of an unfinished one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rich.markup import escape

from ranktune.dashboards.terminal.tables import FittedTable, four_digits
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import RankTuneError
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.home import StudyFolder, all_folders


def listing(home: Path) -> list[Json]:
    """Return a line for each study of home, oldest first; that of an unreadable study has the reason."""
    return [_line(folder) for folder in all_folders(home)]


def _line(folder: StudyFolder) -> Json:
    changed = datetime.fromtimestamp((folder.path / "study.json").stat().st_mtime).astimezone()
    line = {"study": folder.path.name, "changed": changed.isoformat(timespec="seconds")}
    try:
        if not folder.result.exists():
            return line | state(folder.path)
        result = load_result(folder.result)
        best = result["best"]
        return line | {
            "data": result["data"],
            "metric": result["metric"],
            "state": "finished",
            "done": result["trials"],
            "trials": result["trials"],
            "stopped": result["stopped"],
            "failed": sum(failure["number"] is not None for failure in result["failures"]),
            "solver": best["solver"],
            "best": best["vali"],
            "test": best["test"],
        }
    except RankTuneError as error:
        return line | {"state": f"unreadable: {error}"}


def state(path: Path) -> Json:
    """Return the progress of an unfinished study: finished trials, how they ended, and the best by validation.

    Only trials that were evaluated in full can be the best.
    """
    from ranktune.dashboards.records.study import reader_of
    from ranktune.dashboards.records.trial import best_of, counts

    folder = StudyFolder(path)
    study = folder.study()
    trials = [trial for name in folder.split_names() for trial in reader_of(folder, name).trials()]
    own, best = counts(trials), best_of(trials)
    return {
        "study": path.name,
        "data": study.data,
        "metric": study.metric,
        "state": "unfinished",
        "done": len(trials),
        "stopped": own.stopped,
        "failed": own.failed,
        "trials": study.n_trials * len(folder.split_names()),
        "solver": None if best is None else best.solver,
        "best": None if best is None else best.value,
        "test": None,
    }


def listing_table(studies: list[Json]) -> FittedTable:
    """Return the lines as a table."""
    left = {
        "study": [line["study"] for line in studies],
        "data": [Path(line.get("data", "")).name for line in studies],
        "metric": [line.get("metric", "") for line in studies],
        "solver": [line.get("solver") or "" for line in studies],
        "state": [line["state"] for line in studies],
        "changed": [line["changed"][:16].replace("T", " ") for line in studies],
    }
    right = {
        "trials": [f"{line['done']} of {line['trials']}" if "done" in line else "" for line in studies],
        "vali": [four_digits(line.get("best")) for line in studies],
        "test": [four_digits(line.get("test")) for line in studies],
    }
    escaped = {name: list(map(escape, cells)) for name, cells in left.items()}
    return FittedTable(escaped, right, ("changed", "metric", "data"))
