"""Time to score documents with trees, beside a walk down each tree and beside LightGBM's own prediction.

The trees are LightGBM's, grown on a generated case, so that both score the same ones. Calls of predict are whole, with
their checks. The blend adds two such ensembles and a linear model; LightGBM's figure for it is that of two boosters.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from threadpoolctl import threadpool_limits

from ranktune.solvers.boosting.lightgbm_growth import trees_of
from ranktune.solvers.core.arrays import Floats, Matrix
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.tree_scoring import walked
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.tables import Row, Table

Scorer: TypeAlias = Callable[[Matrix], Floats]

BATCHES = (1, 100, 1000, 100_000)
MIN_SECONDS = 0.02
"""A turn repeats its calls for so long: the clock counts in milliseconds."""


@dataclass(frozen=True)
class Line:
    """Microseconds a document, medians of turns; equal: whether ours has the bits of the walk."""

    model: str
    batch: int
    ours: float
    walk: float
    lightgbm: float
    wanted: str
    met: bool
    equal: bool


def boosters(n_trees: int, leaves: int) -> list[Any]:
    """Return two fitted boosters of LightGBM, which differ by the queries that they learned from."""
    import lightgbm

    params = {"objective": "lambdarank", "num_leaves": leaves, "num_threads": 1, "verbosity": -1, "deterministic": True}
    grown = []
    for seed in (12, 13):
        queries = many_queries(200, seed)
        data = lightgbm.Dataset(queries.features, queries.grades, group=np.diff(queries.starts))
        grown.append(lightgbm.train(params, data, n_trees))
    return grown


def compare(n_trees: int, leaves: int, batches: tuple[int, ...], turns: int) -> list[Line]:
    """Return a line for each batch of the first booster, then of the blend."""
    first, second = boosters(n_trees, leaves)
    n_features = first.num_feature()
    members = [TreeModel(trees_of(one.model_to_string(), has_missing=False), n_features, "") for one in (first, second)]
    linear = LinearModel(np.linspace(-1.0, 1.0, n_features), "")
    blend = blended([*members, linear], [0.5, 0.3, 0.2], "blend", {})
    many = many_queries(max(batches) // 80 + 1, 14).features

    def both(X: Matrix) -> Floats:
        return np.asarray(_predicted(first, X)) + np.asarray(_predicted(second, X))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)  # that the rows are taken as one query
        lines = [_line("trees", members[0], lambda X: _predicted(first, X), many[:n], 1.0, turns) for n in batches]
        return lines + [_line("blend", blend, both, many[:n], 3.0, turns) for n in batches]


def _predicted(booster: Any, X: Matrix) -> Floats:
    found: Floats = booster.predict(X, num_threads=1)
    return found


def _line(name: str, model: Model, theirs: Scorer, X: Matrix, at_most: float, turns: int) -> Line:
    scorers: Mapping[str, Scorer] = {"ours": model.predict, "walk": lambda X: _walked(model, X), "lightgbm": theirs}
    equal = np.array_equal(model.predict(X), _walked(model, X))
    seconds: dict[str, list[float]] = {each: [] for each in scorers}
    for _ in range(turns):
        for each, scorer in scorers.items():
            calls, begun = 0, time.process_time()
            while calls == 0 or time.process_time() - begun < MIN_SECONDS:
                scorer(X)
                calls += 1
            seconds[each].append((time.process_time() - begun) / calls)
    figures = {each: float(1e6 * np.median(found) / len(X)) for each, found in seconds.items()}
    aimed = len(X) >= 1000
    wanted = f"<= {at_most:g}" if aimed else ""
    return Line(name, len(X), **figures, wanted=wanted, met=not aimed or figures["ours"] <= at_most, equal=equal)


def _walked(model: Model, X: Matrix) -> Floats:
    """Return the scores of model, its trees walked down one by one."""
    if isinstance(model, BlendModel):
        queries, total = Queries.from_arrays(X, np.zeros(len(X))), np.zeros(len(X))
        for part in model.parts:
            total += walked(part.trees, X) if isinstance(part, TreeModel) else part.predict(queries)
        return total
    assert isinstance(model, TreeModel)
    return walked(model.trees, X)


def main(
    trees: Annotated[int, typer.Option(help="Trees of each ensemble.", min=1)] = 500,
    leaves: Annotated[int, typer.Option(help="Leaves of a tree.", min=2)] = 31,
    batches: Annotated[str, typer.Option(help="Documents of a call, comma-separated.")] = ",".join(map(str, BATCHES)),
    turns: Annotated[int, typer.Option(help="Turns of each.", min=1)] = 3,
) -> list[Table]:
    """Compare the time of predict on trees and blends with a walk down each tree and with LightGBM."""
    with threadpool_limits(1):
        lines = compare(trees, leaves, tuple(int(part) for part in batches.split(",")), turns)
    title = f"Microseconds of processor time a document: {trees} trees of {leaves} leaves"
    return [Table(title, [_row(line) for line in lines], failed=not all(line.equal for line in lines))]


def _row(line: Line) -> Row:
    return {
        "model": line.model, "batch": line.batch, "predict": line.ours, "walk": line.walk, "LightGBM": line.lightgbm,
        "wanted": line.wanted, "met": line.met, "same bits": line.equal,
    }  # fmt: skip
