"""The delivered model: its parameters, how to use it, and its training data."""

from __future__ import annotations

import shlex

from ranktune.dashboards.figures.panels import Frame, Panel, facts
from ranktune.dashboards.records.study import StudyData
from ranktune.tuner.selection.results import Result

DATA_NOTE = "Queries, documents and features are those of training and validation together."


def panels(data: StudyData) -> list[Panel]:
    """Return the parameters of the model and how to use it, where there is one, and the sizes of the data."""
    shown = [] if data.result is None else [_parameters(data.result)]
    return [*shown, *_data(data)]


def _parameters(result: Result) -> Panel:
    best = result.best
    share = "share of " * (best.is_blend)
    params = [(f"{share}{name}", value) for name, value in (best.params or {}).items()]
    sizes = {"weights or leaves": "nonzeros", "bytes": "bytes", "microseconds to score a document": "microseconds"}
    rows = [("solver", best.solver), *params, *((title, getattr(best, name)) for title, name in sizes.items())]
    return Panel("model", "The delivered model", facts(rows))


def use(result: Result) -> list[Panel]:
    """Return the commands that come next; none without a model."""
    if not result.model:
        return []
    path = result.model
    known = [result.gain.baseline] if result.gain else [f"column:{name}" for name in result.baselines]
    file, today = shlex.quote(path), shlex.quote([*known, "column:NAME"][0])
    rows = [
        ("score documents", f"ranktune predict {file} DATA"),
        ("score documents in Python", f"ranktune.load_model({path!r}).predict(X)"),
        ("compare it with the ranking of today", f"ranktune evaluate {file} DATA --against {today}"),
        ("explain an order", f"ranktune explain {file} DATA --query QUERY"),
        ("export it", f"ranktune export {file} --format FORMAT"),
        ("see the formats", "ranktune export --help"),
    ]
    return [Panel("use", "What to do next", facts(rows, ("to", "run")), shown=True)]


def _data(data: StudyData) -> list[Panel]:
    if not data.facts:
        return []
    sizes = {name.replace("_", " "): name for of_split in data.facts.values() for name in of_split}
    rows = [[split, *map(of_split.get, sizes.values())] for split, of_split in data.facts.items()]
    table = Frame(("fold", *sizes), rows)
    if len(rows) == 1:
        table = facts(zip(sizes, rows[0][1:], strict=True), ("what", "number"))
    return [Panel("data", "The data", table, None, DATA_NOTE)]
