"""Time of metrics: mean NDCG@10 of many queries, beside scikit-learn and trec_eval, whose values are compared.

Gains are 2^grade - 1. scikit-learn's function takes one query at a time. trec_eval is called through pytrec_eval, which
takes dictionaries by the names of queries and documents: once they are given, and once their making is counted too.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Annotated

import numpy as np
import typer
from sklearn.metrics import ndcg_score
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.solvers import turns
from ranktune.studies.benchmarks.tables import Row, Table

OURS = ("ndcg@10", "map", "mrr", "err@10")
"""Metrics of ours that are timed; the first is that of the peers."""


def main(
    queries: Annotated[int, typer.Option(help="Queries, of about 120 documents.", min=1)] = 1000,
    repeats: Annotated[int, typer.Option(help="Turns of each.", min=1)] = 5,
) -> list[Table]:
    """Compare the time of NDCG@10 with that of peers, and check that the values are equal."""
    data = many_queries(queries, 11, n_features=8)
    scores = np.random.default_rng(0).permutation(data.n_documents).astype(np.float64)  # no two are equal
    found: dict[str, float] = {}

    def keep(name: str, value: Callable[[], float]) -> Callable[[], None]:
        def work() -> None:
            found[name] = value()

        return work

    works = {f"RankTune {name}": _ours(parse_metric(name), scores, data) for name in OURS}
    works["scikit-learn ndcg_score"] = lambda: _scikit_learn(scores, data)
    if find_spec("pytrec_eval"):
        works |= _trec_eval(scores, data)
    with threadpool_limits(1):
        seconds = turns({name: keep(name, work) for name, work in works.items()}, repeats)
    first = f"RankTune {OURS[0]}"
    rows: list[Row] = []
    for name, own in seconds.items():
        value = found[name]
        peer = not name.startswith("RankTune")
        rows.append(
            {
                "metric": name, "us a query": 1e6 * float(np.median(own)) / data.n_queries, "value": value,
                "times ours": float(np.median(own / seconds[first])),
                "same value": abs(value - found[first]) < 1e-6 if peer else None,
            }
        )  # fmt: skip
    title = f"Processor time of a metric: {data.n_queries:,} queries, {data.n_documents:,} documents"
    return [Table(title, rows, failed=any(row["same value"] is False for row in rows))]


def _ours(metric: Metric, scores: Floats, data: Queries) -> Callable[[], float]:
    return lambda: metric.mean(scores, data)


def _scikit_learn(scores: Floats, data: Queries) -> float:
    gains = 2.0**data.grades - 1.0
    parts = [(gains[a:b], scores[a:b]) for a, b in pairwise(data.starts.tolist()) if gains[a:b].any()]
    return float(np.mean([ndcg_score([own], [by], k=10) for own, by in parts]))


def _trec_eval(scores: Floats, data: Queries) -> dict[str, Callable[[], float]]:
    import pytrec_eval

    ids = [str(k) for k in range(data.n_documents)]
    gains = (2.0**data.grades - 1.0).astype(int).tolist()
    values = scores.tolist()
    parts = [(str(k), a, b) for k, (a, b) in enumerate(pairwise(data.starts.tolist())) if any(gains[a:b])]

    def judged() -> dict[str, dict[str, int]]:
        return {query: dict(zip(ids[a:b], gains[a:b], strict=True)) for query, a, b in parts}

    def scored() -> dict[str, dict[str, float]]:
        return {query: dict(zip(ids[a:b], values[a:b], strict=True)) for query, a, b in parts}

    def mean(evaluator: pytrec_eval.RelevanceEvaluator, run: dict[str, dict[str, float]]) -> float:
        return float(np.mean([own["ndcg_cut_10"] for own in evaluator.evaluate(run).values()]))

    measures, run = {"ndcg_cut.10"}, scored()
    evaluator = pytrec_eval.RelevanceEvaluator(judged(), measures)
    return {
        "pytrec_eval, dictionaries given": lambda: mean(evaluator, run),
        "pytrec_eval, from arrays": lambda: mean(pytrec_eval.RelevanceEvaluator(judged(), measures), scored()),
    }
