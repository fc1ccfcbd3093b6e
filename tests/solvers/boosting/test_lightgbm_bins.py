"""Folds and trials of one data set share its bins; what they learn is what LightGBM learns from a part of its data."""

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting.bins import MIN_SHARE
from ranktune.solvers.boosting.growth import queries_with_pairs
from ranktune.solvers.boosting.lightgbm import library as shared_bins
from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.boosting.lightgbm.library import KEPT, MAX_KEPT, Data, rows_of
from ranktune.solvers.boosting.lightgbm.regression import GBDTRanker
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.data.queries import Queries
from tests.support.tree_samples import graded


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents of each data set that is cut into bins."""
    documents: list[int] = []

    class Counted(Data):
        def __init__(self, features: Any, params: Any) -> None:
            documents.append(features.shape[0])
            super().__init__(features, params)

    monkeypatch.setattr(shared_bins, "Data", Counted)
    return documents


def many_values() -> Queries:
    """Queries whose features differ from document to document, so that a part of them has other bins."""
    queries = queries_with_pairs(graded(queries=70))
    return queries.with_features(queries.features + np.random.default_rng(0).random(queries.features.shape))


@pytest.mark.parametrize("bins", [16, 255])
@pytest.mark.parametrize("kind", [LambdaMART, partial(GBDTRanker, centre="query")])
def test_a_part_is_learnt_from_in_the_bins_of_the_whole(kind: Any, bins: int) -> None:
    import lightgbm

    queries, numbers = many_values(), np.arange(0, 60, 2)
    params: dict[str, Any] = {"trees": 5, "min_documents": 5, "bins": bins}
    part = queries.select(numbers)
    ours = kind(**params).fit(part)
    given = {
        **kind(**params)._source(InMemory(part)).parameters,
        "seed": int(np.random.default_rng(0).integers(2**31 - 1)),
    }
    whole = lightgbm.Dataset(
        queries.features, label=kind()._targets(queries)[0], group=queries.lengths, params=given, free_raw_data=False
    )
    theirs = lightgbm.train(given, whole.construct().subset(rows_of(queries, numbers).tolist()), num_boost_round=5)
    assert np.allclose(ours.predict(part), theirs.predict(part.features), rtol=1e-12, atol=1e-12)
    alone = Queries(part.features, part.grades, part.starts, part.query_ids)
    assert kind(**params).fit(alone).predict(part).tobytes() != ours.predict(part).tobytes()
    elsewhere = many_values()
    separate = kind(**params).fit(elsewhere.select(numbers))
    assert separate.predict(part).tobytes() == ours.predict(part).tobytes()


def test_folds_and_trials_share_bins(made: list[int]) -> None:
    queries = graded(1, 60)
    for fold in range(3):
        part = queries.select(np.flatnonzero(np.arange(60) % 3 != fold))
        LambdaMART(trees=2).fit(part)
        LambdaMART(trees=2, leaves=4, min_documents=3).fit(part.select(np.arange(20)))
        GBDTRanker(trees=2, seeds=2, validation=0.3).fit(part)
    LambdaMART(trees=2).fit(queries)
    assert made == [queries.n_documents]
    LambdaMART(trees=2, bins=7).fit(queries)
    assert made == 2 * [queries.n_documents]


def test_small_parts_and_sparse_features_have_separate_bins(made: list[int]) -> None:
    queries = graded(2, 200)
    few = queries.select(np.arange(int(0.5 * MIN_SHARE * 200)))
    LambdaMART(trees=2).fit(few)
    assert made == [few.n_documents]
    thin = graded(2, 60, layout=sparse.csr_array)
    part = thin.select(np.arange(0, 60, 2))
    LambdaMART(trees=2).fit(part)
    LambdaMART(trees=2).fit(part)
    assert made == [few.n_documents, part.n_documents, part.n_documents]


def test_queries_in_another_order_are_learnt_from_in_that_order() -> None:
    queries = graded(3, 60)
    backwards = queries.select(np.arange(60)[::-1])
    alone = Queries(backwards.features, backwards.grades, backwards.starts, backwards.query_ids)
    params: dict[str, Any] = {"trees": 3, "min_documents": 2}
    ours, expected = GBDTRanker(**params).fit(backwards), GBDTRanker(**params).fit(alone)
    assert ours.predict(queries).tobytes() == expected.predict(queries).tobytes()


def test_bins_of_few_data_sets_are_kept_and_none_of_those_that_are_gone() -> None:
    gc.collect()
    before = len(KEPT)
    some = [graded(seed) for seed in range(MAX_KEPT + 2)]
    for queries in some:
        LambdaMART(trees=1).fit(queries)
        assert len(KEPT) <= MAX_KEPT
    del queries, some
    gc.collect()
    assert len(KEPT) <= before


def test_a_fit_that_goes_on_while_another_begins_is_not_disturbed() -> None:
    queries = graded(4)
    linear = Queries(queries.features, 3.0 - queries.grades, queries.starts, queries.query_ids)
    expected = GBDTRanker(trees=6).fit(queries).predict(queries)
    ranker = GBDTRanker(trees=6)
    steps = ranker.fit_steps(queries)
    next(steps)
    LambdaMART(trees=6).fit(queries)
    GBDTRanker(trees=3).fit(linear)
    list(steps)
    assert ranker.predict(queries).tobytes() == expected.tobytes()
