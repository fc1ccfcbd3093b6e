"""Time to score documents with trees, beside a walk down each tree and beside the prediction of LightGBM.

The trees are LightGBM's, grown on a generated case, so that both score the same ones. Calls of predict are whole, with
their checks. The blend adds two such ensembles and a linear model; LightGBM's figure for it is that of two boosters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats, Matrix
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.other_libraries.lightgbm import trees_of
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.tree_scoring import walked
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, Work, judged, take_turns

BATCHES = (1, 100, 1000, 100_000)
MIN_SECONDS = 0.02
"""A turn repeats its calls for so long: the clock counts in milliseconds."""


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


def compare(n_trees: int, leaves: int, batches: Sequence[int], repeats: int) -> list[Row]:
    """Return the microseconds a document of each batch: of the first booster, then of the blend."""
    pair = boosters(n_trees, leaves)
    n_features = pair[0].num_feature()
    members = [TreeModel(trees_of(booster.model_to_string(), has_missing=False), n_features, "") for booster in pair]
    linear = LinearModel(np.linspace(-1.0, 1.0, n_features), "")
    blend = blended([*members, linear], [0.5, 0.3, 0.2], "blend", {})
    many = many_queries(max(batches) // 80 + 1, 14).features
    cases: list[tuple[str, Model, list[Any], float]] = [
        ("trees", members[0], pair[:1], 1.0),
        ("blend", blend, pair, 3.0),
    ]
    return [_row(*compared, many[:n], repeats) for compared in cases for n in batches]


def _row(name: str, model: Model, boosters: Sequence[Any], at_most: float, X: Matrix, repeats: int) -> Row:
    works: dict[str, Work] = {
        "ours": partial(model.predict, X),
        "walk": partial(_walked, model, X),
        "lightgbm": lambda: sum(np.asarray(booster.predict(X, num_threads=1)) for booster in boosters),
    }
    turns = take_turns(works, repeats, at_least=MIN_SECONDS)
    ours, walk, lightgbm = (1e6 * turns.median(work) / len(X) for work in works)
    row: Row = {"model": name, "batch": len(X), "predict": ours, "walk": walk, "LightGBM": lightgbm}
    same = np.array_equal(turns.values["ours"], turns.values["walk"])
    return {**judged(row, f"predict <= {at_most:g}" if len(X) >= 1000 else ""), "same bits": same}


def _walked(model: Model, X: Matrix) -> Floats:
    """Return the scores of model, its trees walked down one by one."""
    if isinstance(model, BlendModel):
        queries, total = Queries.from_arrays(X, np.zeros(len(X))), np.zeros(len(X))
        for member in model.parts:
            total += walked(member.trees, X) if isinstance(member, TreeModel) else member.predict(queries)
        return total
    assert isinstance(model, TreeModel)
    return walked(model.trees, X)


def main(
    trees: int = 500,
    leaves: int = 31,
    batches: str = ",".join(map(str, BATCHES)),
    turns: int = 3,
) -> list[BenchmarkTable]:
    """Compare the time of predict on trees and blends with a walk down each tree and with LightGBM.

    Parameters
    ----------
    trees : int
        Trees of each ensemble.
    leaves : int
        Leaves of a tree.
    batches : str
        Documents of a call, comma-separated.
    turns : int
        Turns of each.
    """
    rows = compare(trees, leaves, [int(size) for size in batches.split(",")], turns)
    title = f"Microseconds of processor time a document: {trees} trees of {leaves} leaves"
    return [BenchmarkTable(title, rows, failed=not all(row["same bits"] for row in rows))]
