"""Held-out queries are whole and useful on both sides; patience remembers the best."""

import numpy as np
import pytest

from ranktune.solvers.boosting.growth import Patience, held_out
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries


def graded(kinds: str) -> Queries:
    """A query of three documents for each letter: u with different grades, f with one grade."""
    y = np.concatenate([[0.0, 1.0, 2.0] if kind == "u" else [1.0, 1.0, 1.0] for kind in kinds])
    X = np.arange(len(y), dtype=np.float64)[:, None]
    return Queries.from_arrays(X, y, qid=np.repeat(np.arange(len(kinds)), 3))


@pytest.mark.parametrize("kinds", ["uu", "uuf", "u" * 30 + "f" * 20, "fufuf"])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.99])
def test_every_query_is_on_one_side_and_both_sides_have_pairs(kinds: str, share: float) -> None:
    queries = graded(kinds)
    train, aside = held_out(queries, share, np.random.default_rng(0))
    ids = sorted([*train.query_ids.tolist(), *aside.query_ids.tolist()])
    assert ids == list(range(len(kinds)))
    assert train.has_pairs and aside.has_pairs
    assert (np.diff(train.query_ids) > 0).all() and (np.diff(aside.query_ids) > 0).all()


def test_the_share_is_that_of_both_kinds() -> None:
    _, aside = held_out(graded("u" * 100 + "f" * 50), 0.2, np.random.default_rng(1))
    assert (aside.query_ids < 100).sum() == 20
    assert (aside.query_ids >= 100).sum() == 10


def test_one_useful_query_cannot_be_divided() -> None:
    with pytest.raises(DataError, match="1 of 3 queries"):
        held_out(graded("fuf"), 0.2, np.random.default_rng(0))


def test_patience_counts_rounds_since_the_best() -> None:
    patience = Patience(2)
    assert [patience.update(k, value) for k, value in enumerate([0.1, 0.3, 0.3, 0.2], start=1)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert (patience.best_round, patience.best_value) == (2, 0.3)
    assert patience.over
    assert patience.update(5, 0.4) and not patience.over


def test_values_that_are_no_numbers_are_never_best() -> None:
    patience = Patience(1)
    assert not patience.update(1, float("nan"))
    assert patience.over
