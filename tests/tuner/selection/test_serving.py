"""Studies whose model a system must load: what is delivered, what that costs, and that copies lose what is said."""

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.blend import BlendModel, parts_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.deployment.engines import copied, copy_loss, is_significant
from ranktune.tuner.selection import serving
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.selection.rows import BLEND, DISTILLED, TREE_BLEND
from tests.support.export_samples import random_trees

SOLVERS = ("RidgeRanker", "GBDTRanker", "LambdaMART")


def graded(n_queries: int, seed: int) -> Queries:
    """Grades by three weights, and by a step that no weight can follow."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(12 * n_queries, 5))
    value = X[:, 0] + X[:, 2] - X[:, 3] + 2.2 * (np.abs(X[:, 1]) < 0.7) + 2.0 * generator.normal(size=len(X))
    return Queries.from_arrays(X, np.digitize(value, [0.5, 2.5]), qid=np.repeat(np.arange(n_queries), 12))


def tuned(home: Path, *serve: str, data: Queries | None = None, **more: Any) -> Result:
    given: dict[str, Any] = {
        "test": graded(40, 1),
        "solvers": SOLVERS,
        "trials": 6,
        "sampler": "random",
        "jobs": 1,
        "name": "-".join(("s", *serve)),
    } | more
    few = {f"{name}.trees": 10 for name in given["solvers"] if name != "RidgeRanker"}
    return ranktune.tune(data or graded(60, 2), serve=serve, home=home, space=few, **given)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def free(home: Path) -> Result:
    return tuned(home)


@pytest.fixture(scope="module")
def for_solr(home: Path) -> Result:
    return tuned(home, "solr", "lightgbm", solvers=("GBDTRanker", "LambdaMART"))


def test_a_copy_that_fails_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> NoReturn:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(serving, "copy_loss", failing)
    with pytest.warns(RankTuneWarning, match=r"^the copy for solr failed and is left out: .*: by design\."):
        result = tuned(tmp_path, "solr")
    assert result.restriction is not None and not result.restriction.distilled and result.best.is_served
    assert export(result.best_model, "solr")


def test_without_systems_nothing_is_said_of_them(free: Result) -> None:
    assert free.restriction is None and free.best.solver == BLEND
    assert isinstance(free.best_model, BlendModel)
    assert {row.is_served for row in free.leaderboard} == {True}


@pytest.mark.parametrize("systems", [("solr",), pytest.param(("elasticsearch", "onnx"), marks=pytest.mark.thorough)])
def test_what_is_delivered_can_be_loaded(home: Path, systems: tuple[str, ...]) -> None:
    result = tuned(home, *systems)
    for system in systems:
        export(result.best_model, system)
        for row in result.leaderboard:
            model = load_model(Path(result.folder) / "models" / f"{row.solver}.json")
            assert row.is_served == all(FORMATS[name].holds(parts_of(model)) for name in systems)
    rows = {row.solver: row for row in result.leaderboard}
    actual = result.restriction
    assert actual is not None and actual.systems == systems and actual.best == BLEND and not actual.untried
    assert not rows[BLEND].is_served and {DISTILLED, TREE_BLEND} <= set(rows)
    assert result.best.solver == DISTILLED and actual.distilled
    assert actual.cost is not None and actual.loss is not None
    assert actual.cost.mean == pytest.approx(-actual.loss.mean, abs=1e-12) and abs(actual.loss.mean) < 0.005
    assert result.best.params == rows[BLEND].params
    blend, copy = (load_model(Path(result.folder) / "models" / f"{name}.json") for name in (BLEND, DISTILLED))
    test = graded(40, 1)
    assert np.corrcoef(blend.predict(test), copy.predict(test))[0, 1] > 0.999
    assert copy.solver == DISTILLED and BLEND not in result.alternatives.values()
    said = " ".join(result.conclusion.details)
    assert f"Distilled is a copy of Blend *, which {' and '.join(systems)} cannot load: " in said
    kept = load_result(Path(result.folder) / "result.json")
    assert kept.restriction == actual


def test_what_all_can_load_costs_nothing(for_solr: Result) -> None:
    result = for_solr.restriction
    assert result is not None and result.cost is None and result.loss is None and not result.distilled
    assert {"RankSVM", "RidgeRanker"} <= set(result.untried)
    assert isinstance(for_solr.best_model, TreeModel)
    said = " ".join(for_solr.conclusion.details)
    assert "solr and lightgbm can load the best model of all: nothing is lost." in said
    assert "had no trials" in said


def with_missing(n_queries: int, seed: int) -> Queries:
    """Graded queries in which one value in five is missing."""
    queries = graded(n_queries, seed)
    X = np.where(np.random.default_rng(seed).random(queries.features.shape) < 0.2, np.nan, queries.features)
    return Queries.from_arrays(X, queries.grades, qid=np.repeat(np.arange(n_queries), 12))


def test_missing_values_are_served_where_a_system_knows_them(home: Path) -> None:
    result = ranktune.tune(
        with_missing(60, 0), test="none", solvers=("RidgeRanker", "RankSVM"), serve="solr", trials=4, sampler="random",
        name="missing", home=home, jobs=1,
    )  # fmt: skip
    assert result.best.solver == DISTILLED and result.best.is_served  # weights of missing values only trees express
    export(result.best_model, "solr")
    assert not any(row.is_served for row in result.leaderboard[1:])
    with pytest.warns(RankTuneWarning, match="ranklib cannot load .*, nor any other model of this study"):
        result = ranktune.tune(
            with_missing(60, 0), test="none", solvers="RidgeRanker", serve="ranklib", trials=2, sampler="random",
            name="unserved", home=home, jobs=1,
        )  # fmt: skip
    assert not result.best.is_served
    assert "ranklib cannot load it, nor any other model of this study." in " ".join(result.conclusion.details)


def blend() -> BlendModel:
    parts = (
        LinearModel(np.array([1.0, 0.5, 0.0, -0.3, 0.0]), "x"),
        TreeModel(random_trees(1, features=5, count=5), 5, "y"),
    )
    return BlendModel(parts, BLEND)


def test_the_loss_is_of_queries_that_a_copy_was_not_made_from() -> None:
    queries = graded(50, 3)
    result = copied(blend(), queries, ["solr"])
    lost = copy_loss(blend(), queries, ["solr"], "ndcg@10", 0)
    assert result.metric == "ndcg@10" and result.loss.mean == pytest.approx(float(np.nanmean(lost)))
    metric = parse_metric("ndcg@10")
    before = metric.per_query(blend().predict(queries), queries)
    assert len(lost) == queries.n_queries and (lost[~np.isnan(lost)] <= before[~np.isnan(lost)]).all()
    assert result.bytes_before == blend().bytes < result.model.bytes
    linear = copied(blend(), queries, ["liblinear"])
    assert isinstance(linear.model, LinearModel)
    assert linear.loss.high - linear.loss.low > 5 * (result.loss.high - result.loss.low)  # it ranks otherwise


def test_a_loss_is_kept_unless_it_is_significantly_too_high() -> None:
    generator = np.random.default_rng(0)
    assert not is_significant(np.zeros(50)) and not is_significant(np.full(50, np.nan))
    assert is_significant(np.full(50, 0.003))
    noise = generator.normal(size=400) * 0.01
    assert not is_significant(noise + 0.002 - noise.mean())
    assert is_significant(noise + 0.004 - noise.mean())
