"""In every format a model scores documents as it does itself, those that lack features too."""

from functools import cache

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.distillation import distil
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_evaluators import EVALUATORS, documents
from tests.support.export_samples import SAMPLES, random_blend, random_rows, random_trees
from tests.support.missing_samples import lacking, model_of, some_lacking, without

SINGLE = {"solr", "elasticsearch", "opensearch", "onnx", "ranklib"}
SIX_DIGITS = 1e-5
KNOWING = (
    "LambdaMART", "SymmetricGBDT", "XGBoostRanker", "CatBoostRanker", "RankBoost", "RidgeRanker", "Blend", "copy",
    "learnt copy",
)  # fmt: skip
"""Models of data whose columns lack values or do not."""
formats = pytest.mark.parametrize("format", FORMATS)


def names_of(model: Model) -> tuple[str, ...]:
    return model.feature_names or tuple(f"f{k + 1}" for k in range(model.n_features))


def scored(model: Model, format: str, X: Floats, *, left_out: bool = False) -> Floats:
    """The scores of rows by what reads the format; skips where the format does not hold the model."""
    if not FORMATS[format].holds(needs_of(model)):
        pytest.skip(f"{format} does not hold it")
    names = names_of(model)
    return EVALUATORS[format](export(model, format), names)(documents(X, names, left_out=left_out))


def assert_close(scores: Floats, expected: Floats, format: str, least: float = 0.0) -> None:
    tolerance = SIX_DIGITS if format in SINGLE or format == "liblinear" else 1e-12
    assert np.abs(scores - expected).max() <= tolerance * max(np.abs(expected).max(), least)


def single(X: Floats) -> Floats:
    return X.astype(np.float32).astype(np.float64)


@formats
@pytest.mark.parametrize("kind", SAMPLES)
def test_scores_are_those_of_the_model(format: str, kind: str) -> None:
    model, X = SAMPLES[kind](), single(np.round(np.random.default_rng(0).normal(size=(60, 5)), 1))
    if format not in SINGLE:
        X[:3] = [[0.1] * 5, [-1.5] * 5, [1.0 / 3.0] * 5]
    result = scored(model, format, X)
    assert_close(result, model.predict(X), format)
    assert len(np.unique(result)) >= 4


@formats
@pytest.mark.parametrize("seed", range(3))
def test_every_single_precision_value_goes_where_the_model_sends_it(format: str, seed: int) -> None:
    model, X = TreeModel(random_trees(seed), 6, "LambdaMART"), random_rows(seed + 10, 60)
    result = scored(model, format, X)
    assert_close(result, model.predict(X), format)
    if format in ("lightgbm", "json", "python"):
        assert result.tolist() == model.predict(X).tolist()


@formats
@pytest.mark.parametrize("seed", range(3))
def test_blends_rank_as_the_model_does(format: str, seed: int) -> None:
    """On rows that differ by more than single precision: the thresholds of trees are tested above."""
    model, X = random_blend(seed), single(np.random.default_rng(seed + 1).normal(size=(60, 6)))
    result, expected = scored(model, format, X), model.predict(X)
    assert_close(result, expected, format)
    assert ranks_alike(expected, result)


def test_the_extreme_weights_of_ranklib_are_in_double_precision() -> None:
    model = LinearModel(np.array([0.0, 1e300, -1e-300]), "RankSVM")
    assert scored(model, "ranklib", np.array([[5.0, 2.0, 0.0]])).tolist() == [2e300]


@cache
def knowing(kind: str) -> Model:
    if kind not in ("copy", "learnt copy"):
        return model_of(kind, 0)
    return distil(model_of("Blend", 0), some_lacking(0), trees=20 if kind == "learnt copy" else None)


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("kind", KNOWING)
@formats
def test_what_a_document_lacks_is_missing_where_training_documents_lacked_it_and_else_0(
    format: str, kind: str, left_out: bool
) -> None:
    model, queries = knowing(kind), some_lacking(0)
    X = single(np.asarray(queries.features)[:60])
    absent, zero = (without(X, ~lacking(queries), value) for value in (np.nan, 0.0))
    result = scored(model, format, absent, left_out=left_out)
    np.testing.assert_array_equal(result, scored(model, format, zero, left_out=left_out))
    assert_close(result, model.predict(zero), format, 1.0)


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("kind", SAMPLES)
@formats
def test_absent_is_0_to_models_that_know_no_missing_values(format: str, kind: str, left_out: bool) -> None:
    model = SAMPLES[kind]()
    X = single(np.round(np.random.default_rng(0).normal(size=(60, 5)), 1))
    absent, zero = (without(X, np.ones(5, dtype=np.bool_), value) for value in (np.nan, 0.0))
    assert_close(scored(model, format, absent, left_out=left_out), model.predict(zero), format)
