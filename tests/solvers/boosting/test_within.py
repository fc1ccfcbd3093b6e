"""Boosted trees that also compare the documents of a query: what they learn from, share, keep and refuse."""

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting import training_queries
from ranktune.solvers.boosting.training_queries import MAX_FEATURES, MAX_KEPT, WIDENED, widened
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.blend import BlendModel, blended, parts_of
from ranktune.solvers.models.within import KINDS, WithinModel, columns_within
from ranktune.solvers.registry import make

BOOSTED = {"LambdaMART": {}, "GBDTRanker": {}, "XGBoostRanker": {}, "CatBoostRanker": {"loss": "QueryRMSE"}}


def graded(seed: int = 0, *, missing: bool = False, weighted: bool = False, queries: int = 60) -> Queries:
    """Grades are ranks of the first feature within the query, whose level tells nothing."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 25, queries)
    number = np.repeat(np.arange(queries), lengths)
    X = generator.normal(size=(lengths.sum(), 4)).astype(np.float32)
    order = [np.argsort(np.argsort(X[number == q, 0])) / max(length, 1) for q, length in enumerate(lengths)]
    X[:, 0] += 5.0 * generator.normal(size=queries)[number]
    if missing:
        X[generator.random(X.shape) < 0.15] = np.nan
    weights = generator.random(queries) + 0.5 if weighted else None
    return Queries.from_arrays(X, np.floor(4.0 * np.concatenate(order)), qid=number, query_weights=weights)


def made(name: str, **params: Any) -> Any:
    return make(name, {"trees": 12, **BOOSTED[name], **params}, 3)


def check_same(ranker: Any, other: Any) -> None:
    for field in ("feature", "threshold", "children", "value"):
        np.testing.assert_array_equal(getattr(ranker.trees_, field), getattr(other.trees_, field))
    assert ranker.rounds_ == other.rounds_


@pytest.mark.parametrize("form", ["plain", "missing", "weighted", "monotone", "validation", "vali"])
@pytest.mark.parametrize("name", BOOSTED)
def test_trees_are_those_of_a_table_with_the_columns(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = graded(missing=form == "missing", weighted=form == "weighted")
    vali = graded(9) if form == "vali" else None
    params = {"validation": 0.3, "patience": 3, "seeds": 2} if form == "validation" else {"patience": 3}

    def table(of: Queries) -> Queries:
        columns = columns_within(of.features, of.starts, np.arange(4 * len(KINDS)))
        return replace(of.replaced(monotone=None), features=columns)

    wide, given = table(queries), queries
    if form == "monotone":
        given = queries.constrained({0: 1, 2: -1})
        wide = wide.constrained({0: 1, 2: -1, 4: 1, 6: -1, 8: 1, 10: -1, 12: -1, 14: 1, 16: 1, 18: -1})
    ranker = made(name, within_query="all", **params).fit(given, vali=vali)
    other = made(name, **params).fit(wide, vali=None if vali is None else table(vali))
    check_same(ranker, other)
    np.testing.assert_array_equal(ranker.predict(queries), other.predict(wide))
    assert ranker.n_features_in_ == ranker.as_model().n_features == 4
    assert (ranker.trees_.features >= 4).any()


@pytest.mark.parametrize("params", [{}, {"start": "linear"}, {"start": "linear", "validation": 0.3}])
@pytest.mark.parametrize("name", BOOSTED)
def test_models_are_saved_and_score_the_same(name: str, params: dict[str, Any], tmp_path: Path) -> None:
    queries = graded(missing=True)
    ranker = made(name, within_query="ranks", **params).fit(queries)
    model = ranker.as_model()
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert parts_of(loaded) == parts_of(model) == type(ranker).model_parts(ranker.get_params())
    for scores in (loaded.predict(queries), loaded.predict(queries.features, qid=queries.query_of_document)):
        np.testing.assert_array_equal(scores, ranker.predict(queries))
    assert loaded.bytes == model.bytes and loaded.takes_missing
    with pytest.raises(DataError, match="Pass qid="):
        ranker.predict(queries.features)


@pytest.mark.parametrize("name", ["LambdaMART", "GBDTRanker"])
def test_paths_steps_and_continued_models(name: str) -> None:
    queries = graded()
    ranker = made(name, within_query="ranks", start="linear", trees=10)
    for count, path in ranker.fit_path(queries, [4, 10]):
        alone = made(name, within_query="ranks", start="linear", trees=int(count)).fit(queries)
        check_same(path, alone)
        np.testing.assert_array_equal(path.predict(queries), alone.predict(queries))
    plain, ranks = (made(name, within_query=kind).fit(queries).as_model() for kind in ("none", "ranks"))
    for earlier in (plain, ranks):
        for kind in ("none", "ranks"):
            later = made(name, within_query=kind).continue_from(earlier).fit(queries)
            model = later.as_model()
            assert len(parts_of(model)) == 1 and isinstance(model, WithinModel) == (earlier is ranks or kind == "ranks")
            added = later.as_model().predict(queries) - earlier.predict(queries)
            assert np.abs(added).max() > 0.0
            np.testing.assert_allclose(later.predict(queries), model.predict(queries), rtol=1e-12, atol=1e-12)


def test_a_blend_is_the_weighted_sum_of_its_members(tmp_path: Path) -> None:
    queries = graded(missing=True)
    members = [made("LambdaMART", within_query=kind).fit(queries).as_model() for kind in ("none", "ranks", "all")]
    members.append(make("RidgeRanker", {}, 0).fit(queries).as_model())
    factors = [0.5, 2.0, 1.0, 0.25]
    blend = blended(members, factors, "Blend", {})
    assert isinstance(blend, BlendModel) and parts_of(blend) == {"linear", "within"} and blend.needs_queries
    blend.save(tmp_path / "model.json")
    total = sum(factor * member.predict(queries) for factor, member in zip(factors, members, strict=True))
    for model in (blend, load_model(tmp_path / "model.json")):
        np.testing.assert_allclose(model.predict(queries), total, rtol=1e-12, atol=1e-12)
    with pytest.raises(DataError, match="Pass qid="):
        blend.predict(queries.features)


@pytest.mark.parametrize("kind", ["ranks", "all"])
def test_a_constraint_is_kept_where_one_document_changes(kind: str) -> None:
    queries = graded()
    ranker = made("LambdaMART", within_query=kind, trees=80, min_documents=5)
    model = ranker.fit(queries, monotone={0: 1, 1: -1}).as_model()
    assert model.monotone == {"f1": 1, "f2": -1}
    first = queries.starts[:-1]
    for column, sign in ((0, 1), (1, -1)):
        scores = []
        for value in np.linspace(-12.0, 12.0, 49):
            X = np.array(queries.features)
            X[first, column] = value
            scores.append(model.predict(queries.with_features(X))[first])
        assert (sign * np.diff(scores, axis=0) >= -1e-12).all() and np.ptp(scores, axis=0).max() > 0.0


def test_a_model_that_falls_with_a_rank_is_refused() -> None:
    model = made("LambdaMART", within_query="ranks").fit(graded()).as_model()
    with pytest.raises(DataError, match=r"(falls|rises) somewhere with 'f4'"):
        model.replaced(monotone={"f4": 1}).replaced(monotone={"f4": -1})


def test_folds_trials_and_seeds_share_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def counted(features: Any, *others: Any) -> Any:
        computed.append(len(features))
        return columns_within(features, *others)

    monkeypatch.setattr(training_queries, "columns_within", counted)
    queries = graded()
    halves = [queries.select(np.arange(k, 60, 2)) for k in (0, 1)]
    for half, other in (halves, halves[::-1]):
        for leaves in (4, 8):
            made("LambdaMART", within_query="ranks", leaves=leaves, seeds=2).fit(half, vali=other)
    made("GBDTRanker", within_query="ranks").fit(queries)
    assert computed == [queries.n_documents]
    reordered = queries.select([5, 3, 4])
    np.testing.assert_array_equal(
        widened(reordered, "ranks").features, columns_within(reordered.features, reordered.starts, np.arange(8))
    )


def test_columns_are_kept_while_their_queries_are() -> None:
    gc.collect()
    before = len(WIDENED)
    some = [graded(seed) for seed in range(MAX_KEPT + 2)]
    for queries in some:
        widened(queries, "ranks")
    assert len(WIDENED) <= MAX_KEPT
    some.clear()
    del queries
    gc.collect()
    assert len(WIDENED) <= before


def test_sparse_and_very_wide_features_get_no_further_columns() -> None:
    queries = graded()
    thin = replace(queries, features=sparse.csr_array(queries.features))
    with pytest.warns(RankTuneWarning, match="within_query='ranks' is left out: the features are sparse"):
        ranker = made("LambdaMART", within_query="ranks").fit(thin, vali=thin)
    check_same(ranker, made("LambdaMART").fit(thin, vali=thin))
    assert not ranker.as_model().needs_queries and len(ranker.predict(queries.features)) == queries.n_documents
    wide = np.zeros((queries.n_documents, MAX_FEATURES + 1), dtype=np.float32)
    with pytest.warns(RankTuneWarning, match=f"{MAX_FEATURES + 1} features, and at most {MAX_FEATURES}"):
        made("LambdaMART", within_query="all").fit(queries.with_features(wide))
