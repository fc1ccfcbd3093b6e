"""Solvers of one problem are compared at equal objective: all methods reach it."""

import pytest

from ranktune.studies.benchmarks import objective
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.objective import ReachedObjective
from ranktune.studies.papers.figures.ranksvm import objective as of_weights

QUERIES = many_queries(3, 5, n_features=6, mean_length=70)


@pytest.mark.parametrize("method", objective.METHODS)
def test_every_method_reaches_the_optimum(method: str) -> None:
    result, best = (
        of_weights(QUERIES, objective.METHODS[name](QUERIES, 0.01, 1e-6), 0.01, 2) for name in (method, objective.OURS)
    )
    assert result == pytest.approx(best, rel=1e-5)


def test_a_line_is_the_shortest_run_that_is_low_enough() -> None:
    runs = [
        ReachedObjective("other", 1.0, 1.1),
        ReachedObjective("other", 3.0, 1.0),
        ReachedObjective(objective.OURS, 0.5, 1.00001),
    ]
    row = objective._row("other", runs, 1.0)
    assert (row["to 0.01"], row["to 0.0001"], row["to 1e-06"]) == (3.0, 3.0, 3.0)
    assert row["times ours, to 0.0001"] == 6.0
    ours = objective._row(objective.OURS, runs, 1.0)
    assert ours["to 1e-06"] is None and ours["times ours, to 0.0001"] == 1.0
    assert [len(table.rows) for table in objective.main(2, [0.001], 1)] == [len(objective.METHODS)]
