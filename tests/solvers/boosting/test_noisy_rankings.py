"""LambdaMART by losses over noisy rankings: what it does by lambdarank, it does by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.boosting.early_stopping import queries_with_pairs
from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.boosting.objectives import NOISY
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.fitting import unfitted
from tests.solvers.boosting.test_lightgbm import graded

SMALL: dict[str, Any] = {"trees": 25, "min_documents": 5, "leaves": 8}
NDCG = parse_metric("ndcg@10")


def regraded(queries: Queries, grades: Any) -> Queries:
    return Queries(queries.features, np.asarray(grades, dtype=float), queries.starts, queries.query_ids)


@pytest.mark.parametrize("metric", ["auto", "map", "mrr", "err", "pairwise"])
@pytest.mark.parametrize("loss", NOISY)
def test_fresh_queries_are_ranked_about_as_well_as_by_lambdarank(loss: str, metric: str) -> None:
    queries, fresh = graded(), graded(1)
    usual = NDCG.mean(LambdaMART(**SMALL).fit(queries).predict(fresh), fresh)
    result = NDCG.mean(LambdaMART(**SMALL, loss=loss, metric=metric).fit(queries).predict(fresh), fresh)
    assert result > usual - (0.02 if metric == "auto" else 0.1)
    assert result > NDCG.mean(np.zeros(fresh.n_documents), fresh) + 0.05


@pytest.mark.parametrize("loss", NOISY)
def test_seeds_draw_the_noise_and_threads_change_nothing(loss: str) -> None:
    queries = graded()

    def fitted(**more: Any) -> bytes:
        return LambdaMART(**{**SMALL, "query_share": 1.0, "loss": loss, **more}).fit(queries).predict(queries).tobytes()

    assert fitted() == fitted() == fitted(threads=2) == fitted(random_state=0)
    assert len({fitted(), fitted(random_state=1), fitted(seeds=2), fitted(samples=3), fitted(l2=3.0)}) == 5
    assert (fitted(decay=0.95) == fitted()) == (loss == "smoothed")
    assert (fitted(metric="ndcg@3") == fitted()) == (loss == "yetirank")


@pytest.mark.parametrize("loss", NOISY)
def test_grades_of_any_kind_count_by_their_differences(loss: str) -> None:
    queries = graded()
    plain = LambdaMART(**SMALL, loss=loss, gain="linear").fit(queries).predict(queries)
    halved = regraded(queries, queries.grades / 4.0 - 3.0)
    same = LambdaMART(**SMALL, loss=loss).fit(halved).predict(queries)
    assert np.allclose(same, plain, atol=1e-6 * np.ptp(plain))
    odd = regraded(queries, np.random.default_rng(0).normal(size=queries.n_documents))
    assert np.isfinite(LambdaMART(**SMALL, loss=loss).fit(odd).predict(odd)).all()
    if loss == "smoothed":
        with pytest.raises(DataError, match="highest=4"):
            LambdaMART(**SMALL, loss=loss, metric="err").fit(regraded(queries, queries.grades + 4.0))
        with pytest.raises(DataError, match="gain='exponential'"):
            LambdaMART(**SMALL, loss=loss, gain="exponential").fit(halved)


@pytest.mark.parametrize("loss", NOISY)
def test_starts_paths_missing_values_and_validation_queries_are_as_with_lambdarank(loss: str, tmp_path: Path) -> None:
    queries, vali = graded(), graded(7, 15)
    made: dict[str, Any] = {**SMALL, "loss": loss}
    path = [ranker.predict(vali).tobytes() for _, ranker in LambdaMART(**made).fit_path(queries, [10, 25])]
    assert path == [LambdaMART(**{**made, "trees": trees}).fit(queries).predict(vali).tobytes() for trees in (10, 25)]
    stopped = LambdaMART(**{**made, "trees": 200}, patience=5).fit(queries, vali=vali)
    assert 0 < stopped.rounds_[0] < 200
    held = LambdaMART(**made, validation=0.25, start="linear", seeds=2).fit(queries)
    assert held.start_ is not None
    X = np.array(queries.features)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    missing = LambdaMART(**made).fit(X, queries.grades, qid=queries.query_of_document)
    file = tmp_path / "model.json"
    missing.as_model().save(file)
    assert ranktune.load_model(file).predict(X).tobytes() == missing.predict(X).tobytes()


@pytest.mark.parametrize("loss", NOISY)
def test_weights_multiply_derivatives_and_parts_keep_the_scale_of_gains(loss: str) -> None:
    queries = queries_with_pairs(graded())
    weights = np.random.default_rng(2).uniform(0.5, 2.0, queries.n_queries)
    ranker, scores = LambdaMART(**SMALL, loss=loss), np.random.default_rng(3).normal(size=queries.n_documents)

    def derivatives(of: Queries, numbers: Any = None) -> Any:
        source: Any = ranker._source(InMemory(of))
        part = source if numbers is None else source.part(numbers)
        rows = slice(None) if numbers is None else of.documents_of(numbers)
        return part.objective(part.queries, part.targets, 5).derivatives(scores[rows], 2)

    plain, weighted = derivatives(queries), derivatives(queries.weighted_by(weights))
    for one, other in zip(plain, weighted, strict=True):
        assert np.array_equal(other, one * np.repeat(weights, queries.lengths))
    part = np.array([0, 1, 2])
    assert np.allclose(derivatives(queries, part)[0], plain[0][queries.documents_of(part)], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("loss", NOISY)
def test_few_bins_lose_little(loss: str) -> None:
    queries, fresh = graded(), graded(1)
    coarse = LambdaMART(**SMALL, loss=loss, bins=15).fit(queries)
    used, limits = coarse.trees_.feature, coarse.trees_.threshold
    assert max(len(np.unique(limits[used == column])) for column in np.unique(used)) < 15
    usual = LambdaMART(**SMALL, loss=loss).fit(queries).predict(fresh)
    assert NDCG.mean(coarse.predict(fresh), fresh) > NDCG.mean(usual, fresh) - 0.05


@pytest.mark.parametrize("loss", NOISY)
def test_a_study_tunes_it_by_its_own_metric(loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def kept(task: Any) -> Any:
        made.append(ranker := unfitted(task))
        return ranker

    monkeypatch.setattr("ranktune.tuner.evaluation.fitting.unfitted", kept)
    queries = graded()
    result = ranktune.tune(
        queries, test=graded(1), metric="map", solvers=["LambdaMART"], trials=5, folds=2, jobs=1, home=tmp_path,
        serve=["solr", "onnx", "lightgbm"], space={"LambdaMART.loss": loss, "LambdaMART.trees": 20},
    )  # fmt: skip
    assert np.isfinite(result.best_model.predict(queries)).all()
    assert made and all(ranker.metric == "map" for ranker in made)
