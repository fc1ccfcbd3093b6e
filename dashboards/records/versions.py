"""The versions of a study as the history shows them: quality, delivered model, decision, and what changed."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

from ranktune.dashboards.records.reader import changed_of
from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import Damaged, RankTuneError
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.retuning.portfolio import load_portfolio
from ranktune.tuner.retuning.versions import current, decision_of, delivered, versions
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.study.home import StudyFolder


def history_of(home: Path, name: str) -> Json:
    """Return the versions of a study as JSON, the first one first; that of an unreadable version has the reason."""
    folders, known = versions(home, name), list[Json]()
    try:
        at = current(home, name).version
    except RankTuneError:  # it has not ended, or its pointer is damaged
        at = ""
    for folder in folders:
        line = _line(home, folder)
        known.append(line | {"current": folder.path.name == at, "changes": _changes(known, line)})
    return {"study": folders[0].path.name, "metric": folders[0].study().metric, "versions": known}


def _line(home: Path, folder: StudyFolder) -> Json:
    line: Json = {"version": folder.path.name, "state": "interrupted", "decision": "", "quality": None}
    line |= {"interval": None, "gain": None, "solver": "", "parameters": {}, "features": [], "queries": None}
    line["changed"] = changed_of(folder)
    try:
        if not folder.has_result:
            return line | {"state": "running" if folder.is_running() else "interrupted"}
        decided, result = decision_of(folder), load_result(folder.result)
        line |= _first(folder, result) if decided is None else _retuned(decided)
        with suppress(Damaged):
            line["queries"] = sum(sizes["queries"] for sizes in folder.facts().values()) or None
        return line | {"state": "finished", "features": _features(load_model(delivered(folder).path(home)))}
    except RankTuneError as error:
        return line | {"state": f"unreadable: {error}"}


def _first(folder: StudyFolder, result: Result) -> Json:
    portfolio = load_portfolio(folder.path)
    parts = portfolio[0].parts if portfolio else ()
    best = result.best
    return {
        "decision": "first",
        "quality": result.estimate.mean if math.isfinite(result.estimate.mean) else None,
        "interval": [result.estimate.low, result.estimate.high] if math.isfinite(result.estimate.low) else None,
        "solver": best.solver,
        "parameters": {part.solver: dict(part.params) for part in parts} or {best.solver: best.params},
    }


def _retuned(decided: JsonView) -> Json:
    mean, low, high = decided["means"][decided["decision"]]
    contender = decided["contenders"].get(decided["decision"])
    known = decided["configuration"]
    return {
        "decision": decided["decision"],
        "quality": mean,
        "interval": None if low is None else [low, high],
        "gain": None if contender is None else contender["difference"],
        "solver": known["solver"],
        "parameters": {part["solver"]: part["params"] for part in known["parts"]},
    }


def _features(model: Model) -> list[str]:
    """Return the names of the features that a model uses, their numbers from 1 where they have none."""
    names = model.feature_names
    return [str(j + 1) if names is None else names[j] for j in model.used_features.tolist()]


def _changes(before: list[Json], line: JsonView) -> list[str]:
    """Return what differs from the last finished version, in words."""
    former = next((each for each in reversed(before) if each["state"] == "finished"), None)
    if former is None or line["state"] != "finished" or line["decision"] == "keep":
        return []
    found = [] if former["solver"] == line["solver"] else [f"{former['solver']} became {line['solver']}"]
    for solver, params in line["parameters"].items():
        old = former["parameters"].get(solver)
        if old is None:
            found.append(f"{solver} is new")
            continue
        moved = [
            f"{name} {_short(old.get(name))} to {_short(value)}"
            for name, value in params.items()
            if old.get(name) != value
        ]
        found += [f"{solver}: {', '.join(moved)}"] if moved else []
    found += [f"{solver} is gone" for solver in former["parameters"] if solver not in line["parameters"]]
    now, then = set(line["features"]), set(former["features"])
    new, gone = sorted(now - then), sorted(then - now)
    found += [f"features in: {', '.join(new)}"] * bool(new) + [f"features out: {', '.join(gone)}"] * bool(gone)
    found += ["the same configuration, fitted again"] * (not found)
    if former["queries"] != line["queries"]:
        found.append(f"queries {former['queries']} to {line['queries']}")
    return found


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
