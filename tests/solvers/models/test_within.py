"""Columns computed within each query, against pandas; and models of trees of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ranktune.solvers import distil
from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.errors import DataError, ModelFormatError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import contributions
from ranktune.solvers.models import within
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from ranktune.solvers.models.within import KINDS, LARGEST, WithinModel, column_name, columns_within
from tests.support.model_file_samples import rewritten

D = 4


def drawn(seed: int = 0, lengths: int = 12) -> tuple[Floats, Ints]:
    """Return features with ties, missing values and columns that do not vary, and the first rows of queries."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, lengths, 60)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X = generator.normal(size=(starts[-1], D)).round(1)
    X[:, 1] = np.repeat(generator.normal(size=60), sizes)
    X[:, 2] = -np.abs(X[:, 2])
    X[generator.random(X.shape) < 0.2] = np.nan
    return X, starts


def every(X: Any, starts: Ints) -> dict[str, Matrix]:
    """Return the columns of all kinds."""
    whole = columns_within(X, starts, np.arange(D * len(KINDS)))
    return {kind: whole[:, k * D : (k + 1) * D] for k, kind in enumerate(KINDS)}


def of_pandas(X: Floats, starts: Ints) -> dict[str, Floats]:
    """Return the columns of all kinds by pandas, in double precision."""
    qid = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    by_query = pd.DataFrame(X).groupby(qid)
    count, highest = by_query.transform("count").to_numpy(), by_query.transform("max").to_numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        ranks = np.where(count == 1, 0.5, (by_query.rank().to_numpy() - 1.0) / (count - 1.0))
        deviations = by_query.transform(lambda part: part.std(ddof=0)).to_numpy()
        varies = highest > by_query.transform("min").to_numpy()
        scores = np.where(varies, (X - by_query.transform("mean").to_numpy()) / deviations, 0.0)
        shares = np.where(highest > 0.0, X / highest, 0.0)
    result = {"value": X, "rank": ranks, "zscore": scores, "gap": highest - X, "share": shares}
    return {kind: np.where(np.isnan(X), np.nan, values) for kind, values in result.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_columns_are_those_of_pandas(seed: int, dtype: Any) -> None:
    X, starts = drawn(seed)
    X = X.astype(dtype)
    ours, theirs = every(X, starts), of_pandas(X.astype(np.float64), starts)
    for kind in KINDS:
        assert ours[kind].dtype == dtype
        np.testing.assert_allclose(ours[kind], theirs[kind], rtol=2e-7, atol=2e-7, err_msg=kind)


def test_columns_are_the_same_in_any_precision_layout_order_and_part(monkeypatch: pytest.MonkeyPatch) -> None:
    X, starts = drawn()
    X = X.astype(np.float32).astype(np.float64)
    whole = columns_within(X, starts, np.arange(D * len(KINDS)))
    generator = np.random.default_rng(1)
    chosen = generator.permutation(D * len(KINDS))[:7]
    np.testing.assert_array_equal(columns_within(X, starts, chosen), whole[:, chosen])
    np.testing.assert_array_equal(columns_within(X.astype(np.float32), starts, chosen), whole[:, chosen])
    np.testing.assert_array_equal(columns_within(sparse.csr_array(X), starts, chosen), whole[:, chosen])
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    order = np.concatenate([a + generator.permutation(b - a) for a, b in ends])
    np.testing.assert_array_equal(columns_within(X[order], starts, chosen), whole[order][:, chosen])
    monkeypatch.setattr(within, "BLOCK_ROWS", 20)
    np.testing.assert_array_equal(columns_within(X, starts, chosen), whole[:, chosen])


def test_extreme_values_stay_finite() -> None:
    X = np.array([[1e308], [-1e308], [5e-324], [0.0], [-3e38], [2e38]])
    for starts in ([0, 6], [0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6]):
        result = columns_within(X, np.array(starts), np.arange(1, 5))
        assert np.isfinite(result).all() and np.abs(result).max() <= LARGEST


@pytest.mark.parametrize("kind", range(1, len(KINDS)))
def test_signs_say_how_a_column_moves_with_the_value_of_its_document(kind: int) -> None:
    generator = np.random.default_rng(kind)
    for _ in range(100):
        X = generator.normal(size=(6, 1)).round(1)
        moved = []
        for value in np.sort(generator.normal(size=20)):
            X[0, 0] = value
            moved.append(columns_within(X, np.array([0, 6]), np.array([kind]))[0, 0])
        assert (within.SIGNS[kind] * np.diff(moved) >= -1e-6).all()


def model() -> Model:
    """Return a model of the first feature, and the ranks and gaps of the second, of three."""
    trees = stumps(features=[0, 4, 10], thresholds=[0.5, 0.5, 1.0], weights=[1.0, 2.0, -4.0])
    return WithinModel(TreeModel(trees, 15, ""), "LambdaMART", feature_names=("bm25", "price", "age"))


def test_a_model_is_scored_by_query() -> None:
    X = [[1.0, 3.0, 0.0], [0.0, 5.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 9.0]]
    assert model().predict(X, qid=[1, 1, 2, 2]).tolist() == [-3.0, 2.0, 0.0, 2.0]
    assert model().predict(X, group=[4]).tolist() == [-1.0, 2.0, -4.0, -4.0]
    assert model().predict(X[:1]).tolist() == [1.0]
    assert model().used_features.tolist() == [0, 1] and model().nonzeros == 2
    assert model().needs_queries and not model().takes_missing


def test_whoever_predicts_says_what_a_query_is() -> None:
    with pytest.raises(DataError, match=r"4 rows and not which .* group=\[4\] if they are one query"):
        model().predict(np.zeros((4, 3)))
    assert len(model().predict(np.zeros((0, 3)))) == 0


def test_a_model_of_other_columns_is_refused(tmp_path: Path) -> None:
    model().save(tmp_path / "model.json")
    rewritten(tmp_path / "model.json", lambda content: content.update(within=["value", "rank", "median"]))
    with pytest.raises(ModelFormatError, match=r"columns .*median.* this RankTune knows value, rank"):
        load_model(tmp_path / "model.json")


def test_columns_are_called_by_their_feature() -> None:
    assert column_name(1, 3, ("bm25", "price", "age")) == "price"
    assert column_name(4, 3, ("bm25", "price", "age")) == "price, rank within the query"
    assert column_name(4, 3, None) == "f2, rank within the query"


def test_it_is_distilled_by_its_scores_and_not_explained_by_document() -> None:
    X, starts = drawn()
    queries = Queries.from_arrays(np.nan_to_num(X[:, :3]), np.zeros(len(X)), group=np.diff(starts))
    copy = distil(blended([model(), model()], [1.0, 2.0], "Blend", {}), queries, trees=50)
    assert isinstance(copy, TreeModel) and not copy.needs_queries
    assert np.corrcoef(copy.predict(queries), model().predict(queries))[0, 1] > 0.5
    with pytest.raises(ParameterError, match="others of its query: its score cannot be divided"):
        contributions(model(), queries.select([3]), np.arange(1), np.arange(1))
