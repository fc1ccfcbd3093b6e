"""The cost of many configurations in one pass, compared with that of one configuration alone.

Every line compares, in turns, the processor time a document of: one configuration alone, the mean over ALONE of them;
all of them on all queries, without a race; and a whole pass with its race. Each scores every query before it learns
from it, and computes the metric. Alone is what progressive of the ranker does, on the same blocks.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.studies.benchmarks.cases import many_queries, many_sparse_queries
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, Turns, Work, judged, take_turns
from ranktune.tuner.one_pass.result import ConfigurationSpace, Look, PassConfiguration
from ranktune.tuner.one_pass.tuning import BLOCK_ROWS, OnePassTuning

ALONE = 8
"""Configurations that are also run alone, evenly chosen."""

SURVIVORS = 16
WANTED = "all/alone <= 3"
"""Times of one dense configuration alone that all of them may take."""

MIXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ElasticRank", ("ElasticRank",)),
    ("SOLAR1", ("SOLAR1",)),
    ("both", ()),
)


def main(
    queries: int = 4000,
    features: int = 100_000,
    configurations: int = 64,
    repeats: int = 3,
) -> list[BenchmarkTable]:
    """Compare a pass of many configurations with one alone.

    Parameters
    ----------
    queries : int, at least 40
        Queries of the dense case; the sparse one has a quarter.
    features : int, at least 10
        Features of the sparse case.
    configurations : int, at least 8
        Configurations.
    repeats : int
        Turns.
    """
    metric = parse_metric("ndcg@10")
    cases = {
        "136 dense": many_queries(queries, 11),
        f"{features} sparse": many_sparse_queries(max(queries // 4, 10), 31, features),
    }
    rows: list[Row] = []
    for name, data in cases.items():
        for mix, solvers in MIXES:
            turns = measured(data, solvers, configurations, repeats, metric)
            document = 1e6 / data.n_documents
            row: Row = {
                "features": name, "solvers": mix, "alone": turns.median("alone") * document / ALONE,
                f"all {configurations}": turns.median("all") * document, "race": turns.median("race") * document,
                "all/alone": ALONE * turns.ratio("all", "alone"), "race/alone": ALONE * turns.ratio("race", "alone"),
            }  # fmt: skip
            rows.append(judged(row, "" if data.is_sparse else WANTED))
    return [BenchmarkTable("Processor microseconds a document", rows)]


def measured(data: Queries, solvers: tuple[str, ...], count: int, repeats: int, metric: Metric) -> Turns:
    """Return the turns of ALONE configurations one after the other, of all together, and of the pass with its race."""
    first = ConfigurationSpace(solvers, data.is_sparse).first(count, np.random.default_rng(0))
    some = [first[k] for k in np.linspace(0, count - 1, ALONE).astype(int)]
    works: dict[str, Work] = {
        "alone": lambda: [progressive_alone(configuration, data, metric) for configuration in some],
        "all": lambda: in_full(data, metric, solvers, count, 0).run(),
        "race": lambda: OnePassTuning(data, metric, solvers, count, min(SURVIVORS, count), 0).run(),
    }
    return take_turns(works, repeats)


def progressive_alone(configuration: PassConfiguration, data: Queries, metric: Metric) -> Floats:
    """Return the metric of each query before one configuration alone learned from it."""
    ranker = clone(configuration.ranker())
    blocks = (block_of(data, *limits) for limits in query_ranges(data.starts, BLOCK_ROWS))
    return np.concatenate([metric.per_query(ranker.progressive(block), block) for block in blocks])


def in_full(data: Queries, metric: Metric, solvers: tuple[str, ...], count: int, seed: int) -> OnePassTuning:
    """Return a pass without a race: all of its first configurations learn from all queries."""
    end = Look(data.n_queries, data.n_queries // 2, count, fresh=False)
    return OnePassTuning(data, metric, solvers, count, count, seed, looks=[end])
