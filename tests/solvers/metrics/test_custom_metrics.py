"""Metrics of the user's: a function of the grades of a query in ranking order."""

import numpy as np
import pytest

from ranktune import register_metric
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.custom import described_metric, restore_metric
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.metrics.presets import CUSTOM
from tests.support import custom_solvers


def graded(seed: int = 0, queries: int = 40) -> tuple[Queries, np.ndarray]:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 12, queries)
    grades = generator.integers(0, 3, lengths.sum())
    return Queries.from_arrays(np.zeros((lengths.sum(), 1)), grades, group=lengths), generator.normal(size=len(grades))


def test_it_equals_the_metric_of_the_same_formula() -> None:
    register_metric("my_precision", custom_solvers.precision, cutoff="required")
    queries, scores = graded()
    ours, theirs = parse_metric("precision@3:empty=0"), parse_metric("my-precision@3")
    np.testing.assert_allclose(theirs.per_query(scores, queries), ours.per_query(scores, queries))
    assert str(theirs) == "my-precision@3"
    assert str(parse_metric("MY_PRECISION@3:ties=input")) == "my-precision@3:ties=input"


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "input", "reverse"])
def test_ties_are_ordered_as_by_the_other_metrics(ties: str) -> None:
    register_metric("mine", custom_solvers.precision, cutoff="required")
    queries, scores = graded()
    tied = np.round(scores)
    theirs = parse_metric(f"mine@3:ties={ties}").per_query(tied, queries)
    np.testing.assert_allclose(theirs, parse_metric(f"precision@3:empty=0,ties={ties}").per_query(tied, queries))


def test_ties_do_not_help_unless_it_is_said_otherwise() -> None:
    register_metric("success", custom_solvers.success)
    queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0])
    assert parse_metric("success").per_query(np.zeros(2), queries).tolist() == [0.0]
    assert parse_metric("success").ties == "pessimistic"


def test_a_query_without_a_value_is_skipped() -> None:
    register_metric("picky", lambda grades: float("nan") if grades.max() == 0 else 1.0)
    queries = Queries.from_arrays(np.zeros((4, 1)), [1, 0, 0, 0], group=[2, 2])
    np.testing.assert_array_equal(parse_metric("picky").per_query(np.zeros(4), queries), [1.0, np.nan])
    assert parse_metric("picky").mean(np.zeros(4), queries) == 1.0


@pytest.mark.parametrize("value", [None, "high", float("inf"), [1.0, 2.0]])
def test_what_is_no_number_is_refused(value: object) -> None:
    register_metric("odd", lambda grades: value)  # type: ignore[arg-type, return-value]
    queries, scores = graded()
    with pytest.raises(DataError, match=r"'odd' returned .* must return a finite number"):
        parse_metric("odd").per_query(scores, queries)


def test_the_function_cannot_change_the_grades() -> None:
    def vandal(grades: np.ndarray) -> float:
        grades[0] = 9.0
        return 1.0

    register_metric("vandal", vandal)
    queries, scores = graded()
    with pytest.raises(ValueError, match="read-only"):
        parse_metric("vandal").per_query(scores, queries)


@pytest.mark.parametrize("name", ["ndcg", "p", "P_10", "9lives", "a b", "a:b", "recip_rank", "", "domination-error"])
def test_a_name_that_cannot_be_or_is_taken_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=r"name=|error rate"):
        register_metric(name, custom_solvers.success)


def test_cutoffs_are_as_registered() -> None:
    register_metric("success", custom_solvers.success)
    register_metric("share", custom_solvers.precision, cutoff="optional")
    with pytest.raises(ParameterError, match="takes no cutoff"):
        parse_metric("success@5")
    queries, scores = graded()
    assert Metric("share").mean(scores, queries) > 0.0
    with pytest.raises(ParameterError, match="cutoff='some'"):
        register_metric("odd", custom_solvers.success, cutoff="some")
    with pytest.raises(ParameterError, match="must be callable"):
        register_metric("odd", 7)  # type: ignore[arg-type]


def test_a_function_is_named_by_its_import_path() -> None:
    assert str(parse_metric("tests.support.custom_solvers:success")) == "success"
    assert CUSTOM["success"].function is custom_solvers.success


def test_a_described_metric_is_resolved() -> None:
    register_metric("success", custom_solvers.success)
    description = described_metric(CUSTOM["success"])
    assert description == {"function": "tests.support.custom_solvers:success", "cutoff": "none"}
    restore_metric("success", description)  # it is known
    del CUSTOM["success"]
    restore_metric("success", description)
    assert CUSTOM["success"].function is custom_solvers.success
