"""What the smaller commands do, and how their findings look as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.markup import escape

from ranktune.dashboards.terminal.tables import table, titled
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model, load_model
from ranktune.studies import catalogue
from ranktune.studies.api_search import NAME as API_SEARCH
from ranktune.studies.summary import summarise
from ranktune.tuner.evaluation.refit import score_on
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.statistics.intervals import bootstrap_interval
from ranktune.tuner.study.home import all_folders, default_home

_BRIEFLY = ("queries", "documents", "features", "grades", "sparsity", "queries_without_relevant")


def score_file(model: Path, data: str, **reading: Any) -> Floats:
    """Return the score of each document of data, (n_documents,), in the order of the file."""
    chosen = load_model(model)
    return chosen.predict(_read_for(chosen, data, reading, graded=False))


def _read_for(model: Model, data: str, reading: dict[str, Any], *, graded: bool = True) -> Queries:
    """Return the queries of data with the features of model: by name where both have names, else by number."""
    return catalogue.read(
        data, n_features=model.n_features, feature_names=model.feature_names, graded=graded, **reading
    )


def evaluate_file(model: Path, data: str, metrics: Sequence[str], **reading: Any) -> dict[str, Any]:
    """Return, for each metric, the mean of a model over the queries of data with its bootstrap interval."""
    chosen = load_model(model)
    names = tuple(dict.fromkeys(str(parse_metric(name)) for name in metrics))
    queries = _read_for(chosen, data, reading)
    found: dict[str, Any] = {}
    for name, values in score_on(chosen, queries, names).items():
        interval = bootstrap_interval(values, np.random.default_rng(0))
        skipped = int(np.isnan(values).sum())
        limits = [interval.low, interval.high]
        if skipped == len(values):
            found[name] = {"mean": None, "interval": None, "skipped": skipped}
        else:
            found[name] = {"mean": interval.mean, "interval": limits, "skipped": skipped}
    return {"model": str(model), "data": data, "queries": queries.n_queries, "metrics": found}


def evaluation_table(found: dict[str, Any]) -> RenderableType:
    """Return an evaluation as a table."""
    means = table(("metric",), ("mean", "95% interval", "queries skipped"))
    for name, own in found["metrics"].items():
        mean = "-" if own["mean"] is None else f"{own['mean']:.4f}"
        interval = "-" if own["mean"] is None else f"{own['interval'][0]:.4f} to {own['interval'][1]:.4f}"
        means.add_row(escape(name), mean, interval, str(own["skipped"]))
    return titled(f"{found['model']} on {found['data']}, {found['queries']} queries", means)


def describe(data: str, **reading: Any) -> dict[str, Any]:
    """Return what is in data, part by part: of a folder of folds, each fold's train, vali and test."""
    parts = []
    for split in catalogue.load(data, **reading):
        for part in ("train", "vali", "test"):
            queries = getattr(split, part)
            if queries is not None:
                name = " ".join(filter(None, (split.name if split.vali or split.test else "", part)))
                parts.append({"part": name} | summarise(queries).as_dict())
    return {"data": data, "parts": parts if len(parts) > 1 else [parts[0] | {"part": "all"}]}


def data_table(found: dict[str, Any]) -> RenderableType:
    """Return a description as a table: a column a part; of many parts, a row a part with the main facts."""
    parts = found["parts"]
    if len(parts) > 3:
        told = table(("part",), tuple(key.replace("_", " ") for key in _BRIEFLY))
        for part in parts:
            told.add_row(escape(part["part"]), *(escape(_told(part[key])) for key in _BRIEFLY))
    else:
        told = table(("",), tuple(part["part"] for part in parts))
        for key in (name for name in parts[0] if name != "part"):
            told.add_row(key.replace("_", " "), *(escape(_told(part[key])) for part in parts))
    return titled(found["data"], told)


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items())
    if isinstance(value, list):
        return (
            ", ".join(str(one) for one in value[:8]) + (f" and {len(value) - 8} more" if len(value) > 8 else "")
            or "none"
        )
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def related_to(name: str, model: Path | None, home: Path | None, count: int) -> dict[str, Any]:
    """Return what an api-search model ranks first for name, and what BM25 does.

    Raises StudyError where no model is given and no study of api-search is finished.
    """
    from ranktune.studies.api_search.related import related

    return related(name, load_model(model or _latest_model(home or default_home())), count=count).as_dict()


def _latest_model(home: Path) -> Path:
    for folder in reversed(all_folders(home)):
        if folder.result.exists() and folder.study().data == API_SEARCH:
            return Path(load_result(folder.result)["model"])
    raise StudyError(f"no finished study of {API_SEARCH} in {home}: run `ranktune tune` first, or give --model.")


def related_table(found: dict[str, Any]) -> RenderableType:
    """Return two rankings side by side; what the documentation itself lists under See Also is marked."""
    sides = table(("", "the chosen model", "BM25"))
    for place, (ours, theirs) in enumerate(zip(found["ours"], found["bm25"], strict=True), start=1):
        sides.add_row(str(place), _judged(ours), _judged(theirs))
    sides.caption = "* listed under See Also, ** each lists the other"
    return titled(f"{found['query']}: {found['summary']}", sides)


def _judged(entry: dict[str, Any]) -> str:
    return escape(entry["name"] + " " + "*" * int(entry["grade"])).rstrip()
