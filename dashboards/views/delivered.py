"""The delivered model: its parameters, how to use it, and its training data."""

from __future__ import annotations

import shlex

from ranktune.dashboards.figures.panels import Cell, Panel, Table
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import JsonView

DATA_NOTE = "Queries, documents and features are those of training and validation together."


def panels(data: StudyData) -> list[Panel]:
    """Return the parameters of the model and how to use it, where there is one, and the sizes of the data."""
    shown = [] if data.result is None else [_parameters(data.result), _use(data.result)]
    return [*shown, *_data(data)]


def _parameters(result: JsonView) -> Panel:
    best = result["best"]
    rows: list[tuple[str, Cell]] = [("solver", best["solver"])]
    of_blend = best.get("kind") == "ensemble"
    rows += [(f"share of {name}" if of_blend else name, value) for name, value in (best.get("params") or {}).items()]
    rows += [("weights or leaves", best.get("nonzeros")), ("bytes", best.get("bytes"))]
    rows += [("microseconds to score a document", best.get("microseconds"))]
    kept = [row for row in rows if row[1] is not None]
    return Panel("model", "The delivered model", Table(("what", "value"), kept))


def _use(result: JsonView) -> Panel:
    if not result.get("model"):
        note = "The models of the folds are in the folders of the folds, as model.json."
        return Panel("use", "How to use it", note=note)
    path = str(result["model"])
    file = shlex.quote(path)
    rows: list[tuple[str, Cell]] = [
        ("score documents", f"ranktune predict {file} DATA"),
        ("score documents in Python", f"ranktune.load_model({path!r}).predict(X)"),
        ("evaluate it on graded queries", f"ranktune evaluate {file} DATA"),
        ("explain an order", f"ranktune explain {file} DATA --query QUERY"),
        ("export it", f"ranktune export {file} --format FORMAT"),
        ("see the formats", "ranktune export --help"),
    ]
    return Panel("use", "How to use it", Table(("to", "run"), rows))


def _data(data: StudyData) -> list[Panel]:
    facts = data.facts
    if not facts:
        return []
    names = list(dict.fromkeys(name for sizes in facts.values() for name in sizes))
    titles = [name.replace("_", " ") for name in names]
    rows = [[split, *(sizes.get(name) for name in names)] for split, sizes in facts.items()]
    if len(facts) > 1:
        return [Panel("data", "The data", Table(("fold", *titles), rows), None, DATA_NOTE)]
    only = [(title, value) for title, value in zip(titles, rows[0][1:], strict=True)]
    return [Panel("data", "The data", Table(("what", "number"), only), None, DATA_NOTE)]
