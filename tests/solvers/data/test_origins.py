"""Selected queries know which queries they come from, as long as those are in memory."""

import gc
import pickle

import numpy as np

from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries


def queries_of(count: int = 8) -> Queries:
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 4, count)
    return Queries.from_arrays(generator.random((lengths.sum(), 2)), np.ones(lengths.sum()), group=lengths)


def test_the_origin_of_queries_that_were_not_selected_is_themselves() -> None:
    queries = queries_of()
    origin, numbers = origin_of(queries)
    assert origin is queries and numbers.tolist() == list(range(8))


def test_a_selection_of_a_selection_comes_from_the_first() -> None:
    queries = queries_of()
    part = queries.select([6, 1, 2, 7])
    smaller = part.select([3, 0, 1])
    origin, numbers = origin_of(smaller)
    assert origin is queries and numbers.tolist() == [7, 6, 1]
    assert np.array_equal(origin.select(numbers).features, smaller.features)


def test_an_origin_is_not_kept_in_memory() -> None:
    queries = queries_of()
    part = queries.select([0, 3])
    del queries
    gc.collect()
    assert origin_of(part)[0] is part


def test_the_origin_of_changed_queries_and_copies_is_themselves() -> None:
    queries = queries_of()
    part = queries.select([0, 3])
    for other in (part.with_features(part.features + 1.0), pickle.loads(pickle.dumps(part))):
        assert origin_of(other)[0] is other
