"""What `solvers --warm` does: compile before the first study what studies use, or for a wheel when it is built."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path

import numpy as np
from scipy import sparse

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.compiled import compiling
from ranktune.solvers.core.files.atomic import naming
from ranktune.solvers.core.machine_code.folders import code_folder, level
from ranktune.solvers.core.space import Choice, Parameter, Params, Value, defaults, is_active
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.feature_rows import scatter
from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.explanation.contributions import contributions
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from ranktune.solvers.registry import ALL, NAMES, loadable, make, solver_class, standard
from ranktune.tuner.one_pass.result import RANKERS
from ranktune.tuner.one_pass.tuning import OnePassTuning
from ranktune.tuner.workers.workforce import Workforce

READING, EXPLAINING, STREAMING = "reading text", "explanations", "one-pass"

METRICS = ("ndcg@10", "pairwise")
"""The metric that a study maximises by default."""


def warm(solvers: Sequence[str], jobs: int | None = None) -> Json:
    """Compile what reading and the solvers use, and return the seconds of compiling of each, and where it is kept.

    Without names it is the solvers that compete by default. jobs is the number of processes, by default one a core.
    """
    begun = time.monotonic()
    every = NAMES if ALL in solvers else [solver_class(name).__name__ for name in solvers] or standard()
    names = loadable(dict.fromkeys(every))
    with naming(Path(code_folder() or "")), Workforce(jobs).assembled(apart=True) as executor:
        futures = {executor.submit(compile_reading): READING, executor.submit(compile_explanations): EXPLAINING}
        if not set(names).isdisjoint(RANKERS):
            futures[executor.submit(compile_one_pass)] = STREAMING
        futures |= {executor.submit(compile_solver, name): name for name in names}
        seconds = {futures[done]: round(done.result(), 3) for done in as_completed(futures)}
    return {
        "compiled": {name: seconds[name] for name in (READING, EXPLAINING, STREAMING, *names) if name in seconds},
        "seconds": round(time.monotonic() - begun, 3),
        "cache": code_folder(),
    }


def build(folder: str) -> None:
    """Compile below a folder what solvers use that compete by default, for the processor that wheels are made for."""
    os.environ |= {"NUMBA_CACHE_DIR": folder, "NUMBA_CPU_NAME": level()[0], "NUMBA_CPU_FEATURES": ""}  # of workers too
    warm(())


def small_queries(n_queries: int = 30) -> Queries:
    """Return queries with three grades and dense features, in single precision as the readers give them."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(2, 20, n_queries)
    X = generator.normal(size=(lengths.sum(), 8)).astype(np.float32)
    grades = np.digitize(X[:, 0] + generator.normal(size=len(X)), [0.0, 1.0]).astype(np.float64)
    return Queries.from_arrays(X, grades, group=lengths)


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


def sparse_queries(queries: Queries) -> Queries:
    """Return queries whose features are sparse: those above a half stay."""
    X = np.asarray(queries.features)
    return queries.with_features(sparse.csr_array(np.where(X > 0.5, X, np.float32(0.0))))


def compile_reading() -> float:
    """Read a small text file, dense and sparse, and return the seconds spent on compiling."""
    queries = small_queries()
    lines = [
        f"{int(grade)} qid:{query} " + " ".join(f"{j}:{value:e}" for j, value in enumerate(row.tolist(), start=1))
        for grade, query, row in zip(queries.grades, queries.query_of_document, queries.features, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder, compiling() as spent:
        file = Path(folder, "small.txt")
        file.write_text("\n".join(lines))
        for layout in ("dense", "sparse"):
            read_text(file, layout=layout)
        scatter(np.ones(1), np.zeros(1, np.int32), np.ones(1, np.int64), np.zeros((1, 1), np.float32))
    return sum(spent)


def compile_one_pass() -> float:
    """Tune in one pass over small data, dense and sparse, and return the seconds spent on compiling."""
    queries, metric = small_queries(), parse_metric(METRICS[0])
    with compiling() as spent:
        for layout in (queries, sparse_queries(queries)):
            OnePassTuning(layout, metric, (), configurations=64, survivors=16, seed=0).run()
    return sum(spent)


def warm_lines(facts: Json) -> str:
    """Return what was compiled, a line each, and where it is kept."""
    lines = [f"{name}: {seconds:.1f} s" for name, seconds in facts["compiled"].items()]
    folder = facts["cache"] or "no folder: none is writable by you alone (RANKTUNE_CACHE)"
    return "\n".join([*lines, f"Compiled in {facts['seconds']:.1f} s, kept in {folder}."])
