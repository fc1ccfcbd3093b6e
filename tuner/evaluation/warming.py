"""Compiling ahead of time what trials use. Numba keeps the machine code on disk, where later processes load it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.compiled import compiling
from ranktune.solvers.core.space import Choice, Parameter, Params, Value, defaults, is_active
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import contributions
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from ranktune.solvers.registry import make, solver_class

METRICS = ("ndcg@10", "pairwise")
"""The metric that a study maximises by default."""


def compile_solver(name: str) -> float:
    """Fit the solver called name on small data, dense and sparse, and return the seconds spent on compiling.

    Each value of each choice in its search space is fitted once, with the defaults of the others.
    """
    solver = solver_class(name)
    with compiling() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge
        for queries in (small_queries(), sparse_queries(small_queries())):
            for parameters in _choices(solver):
                ranker = make(name, parameters, 0)
                for _ in ranker.fit_steps(queries):
                    pass
                scores = ranker.predict(queries)
            for metric in METRICS:
                parse_metric(metric).per_query(scores, queries)
    return sum(spent)


def compile_explanations() -> float:
    """Explain the scores of a small tree, and return the seconds spent on compiling."""
    model = TreeModel(stumps([0, 1], [0.0, 0.0], [1.0, 2.0]), 8, "RankBoost")
    query = small_queries(1)
    rows = np.arange(query.n_documents)
    with compiling() as spent:
        contributions(model, query, rows, rows)
    return sum(spent)


def _choices(solver: type[BaseRanker]) -> Iterator[Params]:
    """Yield the defaults, and each other value of each choice that is active where those before it have theirs.

    The choices after it have their defaults where they can be what the value allows.
    """
    yield {}
    usual = defaults(solver.space)
    for parameter in solver.space:
        if isinstance(parameter, Choice) and is_active(parameter, usual):
            yield from (
                _with(solver.space, parameter, value) for value in parameter.choices if value != parameter.default
            )


def _with(space: Sequence[Parameter], chosen: Choice, value: Value) -> Params:
    """Return what differs from the defaults where one choice has that value, and the others the first they can have."""
    values: dict[str, Value] = {}
    for parameter in space:
        if is_active(parameter, values):
            values[parameter.name] = value if parameter is chosen else parameter.default
    usual = {each.name: each.default for each in reversed(space)}  # of several declarations the first
    return {name: other for name, other in values.items() if other != usual[name]}


def small_queries(n_queries: int = 30) -> Queries:
    """Return queries with three grades and dense features, in single precision as the readers give them."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(2, 20, n_queries)
    X = generator.normal(size=(lengths.sum(), 8)).astype(np.float32)
    grades = np.digitize(X[:, 0] + generator.normal(size=len(X)), [0.0, 1.0]).astype(np.float64)
    return Queries.from_arrays(X, grades, group=lengths)


def sparse_queries(queries: Queries) -> Queries:
    """Return queries whose features are sparse: those above a half stay."""
    X = np.asarray(queries.features)
    return queries.with_features(sparse.csr_array(np.where(X > 0.5, X, np.float32(0.0))))
