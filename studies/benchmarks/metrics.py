"""Time of metrics: mean NDCG@10 of many queries, beside scikit-learn and trec_eval, whose values are compared.

Gains are 2^grade - 1. scikit-learn's function takes one query at a time. trec_eval is called through pytrec_eval, which
takes dictionaries by the names of queries and documents: once they are given, and once their making is counted too.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.metrics import ndcg_score

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.comparing import Work, take_turns
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
    works: dict[str, Work] = {f"RankTune {name}": partial(parse_metric(name).mean, scores, data) for name in OURS}
    works["scikit-learn ndcg_score"] = lambda: _scikit_learn(scores, data)
    if find_spec("pytrec_eval"):
        works |= _trec_eval(scores, data)
    turns = take_turns(works, repeats)
    first = f"RankTune {OURS[0]}"
    rows: list[Row] = []
    for name, value in turns.values.items():
        same = abs(value - turns.values[first]) < 1e-6
        rows.append(
            {
                "metric": name, "us a query": 1e6 * turns.median(name) / data.n_queries, "value": value,
                "times ours": turns.ratio(name, first), "same value": None if name.startswith("RankTune") else same,
            }
        )  # fmt: skip
    title = f"Processor time of a metric: {data.n_queries:,} queries, {data.n_documents:,} documents"
    return [Table(title, rows, failed=any(row["same value"] is False for row in rows))]


def _scikit_learn(scores: Floats, data: Queries) -> float:
    gains = 2.0**data.grades - 1.0
    parts = [(gains[a:b], scores[a:b]) for a, b in pairwise(data.starts.tolist()) if gains[a:b].any()]
    return float(np.mean([ndcg_score([gain], [score], k=10) for gain, score in parts]))


def _trec_eval(scores: Floats, data: Queries) -> dict[str, Work]:
    import pytrec_eval

    ids = [str(k) for k in range(data.n_documents)]
    gains, values = (2.0**data.grades - 1.0).astype(int).tolist(), scores.tolist()
    parts = [(str(k), a, b) for k, (a, b) in enumerate(pairwise(data.starts.tolist())) if any(gains[a:b])]

    def by_query(numbers: list[Any]) -> dict[str, dict[str, Any]]:
        return {query: dict(zip(ids[a:b], numbers[a:b], strict=True)) for query, a, b in parts}

    def evaluator() -> pytrec_eval.RelevanceEvaluator:
        return pytrec_eval.RelevanceEvaluator(by_query(gains), {"ndcg_cut.10"})

    def mean(evaluator: pytrec_eval.RelevanceEvaluator, run: dict[str, dict[str, float]]) -> float:
        return float(np.mean([of_query["ndcg_cut_10"] for of_query in evaluator.evaluate(run).values()]))

    return {
        "pytrec_eval, dictionaries given": partial(mean, evaluator(), by_query(values)),
        "pytrec_eval, from arrays": lambda: mean(evaluator(), by_query(values)),
    }
