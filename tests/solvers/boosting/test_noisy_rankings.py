"""LambdaMART and XGBoostRanker by losses over noisy rankings: what they do by lambdarank, they do by them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.boosting.growth import queries_with_pairs
from ranktune.solvers.boosting.objectives import NOISY
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.fitting import unfitted
from tests.support.tree_samples import graded

NDCG = parse_metric("ndcg@10")
SOLVERS: dict[str, dict[str, Any]] = {
    "LambdaMART": {"trees": 25, "min_documents": 5, "leaves": 8, "query_share": 1.0},
    "XGBoostRanker": {"trees": 25, "min_weight": 1.0, "learning_rate": 0.1, "row_share": 1.0},
}
losses = pytest.mark.parametrize("loss", NOISY)
solvers = pytest.mark.parametrize("solver", SOLVERS)


def made(solver: str, **params: Any) -> BoostedRanker:
    ranker = make(solver, {**SOLVERS[solver], **params}, 0)
    assert isinstance(ranker, BoostedRanker)
    return ranker


def regraded(queries: Queries, grades: Any) -> Queries:
    return Queries(queries.features, np.asarray(grades, dtype=float), queries.starts, queries.query_ids)


@pytest.mark.parametrize("metric", ["auto", "err"])
@solvers
@losses
def test_fresh_queries_are_ranked_about_as_well_as_by_lambdarank(solver: str, loss: str, metric: str) -> None:
    queries, fresh = graded(), graded(1)
    usual = NDCG.mean(made(solver).fit(queries).predict(fresh), fresh)
    result = NDCG.mean(made(solver, loss=loss, metric=metric).fit(queries).predict(fresh), fresh)
    assert result > usual - (0.02 if metric == "auto" else 0.1)
    assert result > NDCG.mean(np.zeros(fresh.n_documents), fresh) + 0.05


@solvers
@losses
def test_seeds_draw_the_noise_and_threads_change_nothing(solver: str, loss: str) -> None:
    queries = graded()

    def fitted(**more: Any) -> bytes:
        return made(solver, **{"loss": loss, "trees": 8, **more}).fit(queries).predict(queries).tobytes()

    first = fitted()
    assert first == fitted() == fitted(threads=2) == fitted(random_state=0)
    assert len({first, fitted(random_state=1), fitted(seeds=2), fitted(samples=3), fitted(l2=3.0)}) == 5
    assert (fitted(decay=0.95) == first) == (loss == "smoothed")
    assert (fitted(metric="ndcg@3") == first) == (loss == "yetirank")


@solvers
@losses
def test_grades_of_any_kind_count_by_their_differences(solver: str, loss: str) -> None:
    queries = graded()
    plain = made(solver, loss=loss, gain="linear").fit(queries).predict(queries)
    halved = regraded(queries, queries.grades / 4.0 - 3.0)
    same = made(solver, loss=loss).fit(halved).predict(queries)
    assert np.allclose(same, plain, atol=1e-6 * np.ptp(plain))
    odd = regraded(queries, np.random.default_rng(0).normal(size=queries.n_documents))
    assert np.isfinite(made(solver, loss=loss).fit(odd).predict(odd)).all()
    if loss == "smoothed":
        with pytest.raises(DataError, match="highest=4"):
            made(solver, loss=loss, metric="err").fit(regraded(queries, queries.grades + 4.0))
        with pytest.raises(DataError, match="gain='exponential'"):
            made(solver, loss=loss, gain="exponential").fit(halved)


@solvers
@losses
def test_weights_multiply_derivatives_and_parts_keep_the_scale_of_gains(solver: str, loss: str) -> None:
    queries = queries_with_pairs(graded())
    weights = np.random.default_rng(2).uniform(0.5, 2.0, queries.n_queries)
    ranker, scores = made(solver, loss=loss), np.random.default_rng(3).normal(size=queries.n_documents)

    def derivatives(of: Queries, numbers: Any = None) -> Any:
        source: Any = ranker._source(InMemory(of))
        part = source if numbers is None else source.part(numbers)
        rows = slice(None) if numbers is None else of.documents_of(numbers)
        return part.objective(part.queries, part.targets, 5).derivatives(scores[rows], 2)

    plain, weighted = derivatives(queries), derivatives(queries.weighted_by(weights))
    for values, other in zip(plain, weighted, strict=True):
        assert np.array_equal(other, values * np.repeat(weights, queries.lengths))
    usual: Any = made(solver, loss="smoothed")._source(InMemory(queries))  # a penalty means about the same to both
    curvature = usual.objective(queries, usual.targets, 5).derivatives(scores, 2)[1]
    assert 0.2 < plain[1].sum() / curvature.sum() < 5.0
    part = np.array([0, 1, 2])
    assert np.allclose(derivatives(queries, part)[0], plain[0][queries.documents_of(part)], rtol=0.0, atol=1e-12)


@losses
def test_xgboost_takes_newton_steps_from_the_scores_so_far(loss: str) -> None:
    """From any start, with weights of queries and of documents, which XGBoost's loss does not take."""
    generator, queries = np.random.default_rng(1), queries_with_pairs(graded())
    weighted = queries.replaced(
        query_weights=generator.uniform(1.0, 9.0, queries.n_queries),
        document_weights=generator.uniform(0.5, 2.0, queries.n_documents),
    )
    ranker = made("XGBoostRanker", loss=loss, depth=2, l2=0.5).fit(weighted)
    assert ranker.trees_.n_splits > 25
    source: Any = replace(ranker._source(InMemory(weighted)), start=generator.normal(size=queries.n_documents))
    growth, objective = source.growth(3), source.objective(source.queries, source.targets, 3)
    scores = source.start.copy()
    for number in range(4):
        gradient, curvature = objective.derivatives(scores, number)
        assert growth.grow()
        values = growth.trees(number, number + 1).scores(queries.features)
        assert len(np.unique(values)) > 2
        for value in np.unique(values):
            members = values == value
            step = -0.1 * gradient[members].sum() / (curvature[members].sum() + 0.5)
            assert value == pytest.approx(step, rel=1e-4, abs=1e-7)
        scores += values
    with pytest.raises(ParameterError, match="weigh documents"):
        made("XGBoostRanker").fit(weighted)


@pytest.mark.parametrize(("solver", "loss"), [("LambdaMART", "yetirank"), ("XGBoostRanker", "smoothed")])
def test_a_study_tunes_it_by_its_default_metric(
    solver: str, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankers: list[Any] = []

    def kept(task: Any) -> Any:
        rankers.append(ranker := unfitted(task))
        return ranker

    monkeypatch.setattr("ranktune.tuner.evaluation.fitting.unfitted", kept)
    queries = graded()
    result = ranktune.tune(
        queries, test=graded(1), metric="map", solvers=[solver], trials=2, folds=2, jobs=1, home=tmp_path,
        serve=["solr", "onnx", "lightgbm"], space={f"{solver}.loss": loss, f"{solver}.trees": 20},
    )  # fmt: skip
    assert np.isfinite(result.best_model.predict(queries)).all()
    assert rankers and all(ranker.metric == "map" for ranker in rankers)
