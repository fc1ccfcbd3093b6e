"""The studies of a home folder, and how far an unfinished one is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ranktune.dashboards.terminal.tables import table
from ranktune.solvers.core.errors import RankTuneError
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.home import StudyFolder, all_folders


def listing(home: Path) -> list[dict[str, Any]]:
    """Return a line for each study of home, oldest first; an unreadable one says why."""
    return [_line(folder) for folder in all_folders(home)]


def _line(folder: StudyFolder) -> dict[str, Any]:
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


def state(path: Path) -> dict[str, Any]:
    """Return how far an unfinished study is: finished trials, how they ended, and the best by validation.

    Only what was judged in full can be the best.
    """
    from ranktune.dashboards.records.study import reader_of
    from ranktune.tuner.storage.record import STOPPED

    folder = StudyFolder(path)
    study = folder.study()
    trials = [trial for name in folder.split_names() for trial in reader_of(folder, name).trials()]
    stopped = [trial for trial in trials if trial.user_attrs.get(STOPPED)]
    values = [
        (trial.value, str(trial.params["solver"]))
        for trial in trials
        if trial.value is not None and not trial.user_attrs.get(STOPPED)
    ]
    done = len(trials)
    best, solver = max(values, default=(None, None))
    return {
        "study": path.name,
        "data": study.data,
        "metric": study.metric,
        "state": "unfinished",
        "done": done,
        "stopped": len(stopped),
        "failed": done - len(values) - len(stopped),
        "trials": study.n_trials * len(folder.split_names()),
        "solver": solver,
        "best": best,
        "test": None,
    }


def listing_table(studies: list[dict[str, Any]]) -> Table:
    """Return the lines as a table."""
    found = table(("study", "data", "metric", "solver", "state", "changed"), ("trials", "vali", "test"))
    for line in studies:
        words = (
            line["study"],
            Path(line.get("data", "")).name,
            line.get("metric", ""),
            line.get("solver") or "",
            line["state"],
            line["changed"][:16].replace("T", " "),
        )
        trials = f"{line['done']} of {line['trials']}" if "done" in line else ""
        found.add_row(*map(escape, words), trials, _number(line.get("best")), _number(line.get("test")))
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
