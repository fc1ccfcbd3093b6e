"""Features and scores that are far from 0 or huge beside their differences: studies find what they find without it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Float
from ranktune.solvers.data.queries import Queries
from tests.support.engine_samples import graded

LINEAR, TREES = ("RidgeRanker", "ListNet"), ("RidgeRanker", "SymmetricGBDT")


class Plain(Ridge):  # type: ignore[misc]
    """Scores as they are, of a class that no model of RankTune holds."""

    def predict(self, X: Any) -> Floats:
        scores: Floats = super().predict(X)
        return scores


class Huge(Ridge):  # type: ignore[misc]
    """Scores in units of 1e200, of which the common part is a thousand million units."""

    def predict(self, X: Any) -> Floats:
        scores: Floats = 1e200 * (1e9 + super().predict(X))
        return scores


class Tiny(Ridge):  # type: ignore[misc]
    """Scores in units of 1e-200."""

    def predict(self, X: Any) -> Floats:
        scores: Floats = 1e-200 * super().predict(X)
        return scores


def rows(result: StudyResult) -> dict[str, tuple[float, float]]:
    """The validation and test means by solver, in the order of the leaderboard."""
    means = {}
    for row in result.leaderboard:
        vali, test = row.again or row.vali, row.test
        assert vali is not None and test is not None
        assert vali.high <= 1.0 and test.high <= 1.0
        means[row.solver] = vali.mean, test.mean
    return means


def study(queries: Queries, X: Floats, home: Path, solvers: tuple[str, ...]) -> StudyResult:
    moved = Queries.from_arrays(X, queries.grades, qid=queries.query_ids[queries.query_of_document])
    return ranktune.tune(moved, sampler="random", trials=5, solvers=solvers, folds=3, home=home)


@pytest.mark.parametrize(
    ("solvers", "offset", "scale", "close"),
    [
        (LINEAR, 1e8, 1.0, 1e-6),
        (LINEAR, 1e8, 1e8, 1e-6),
        pytest.param(
            LINEAR, [1e12, *[0.0] * 4], 1.0, 2e-3, marks=pytest.mark.thorough
        ),  # of whose digits float64 loses some
        (TREES, [-1e9, *[0.0] * 4], 1.0, 1e-6),
    ],
)
def test_a_constant_added_to_features_changes_no_study(
    solvers: tuple[str, ...], offset: Any, scale: float, close: float, tmp_path: Path
) -> None:
    queries = graded(40, 3)
    X = np.asarray(queries.features, dtype=np.float64) * scale + offset
    there, here = (study(queries, part, tmp_path / str(k), solvers) for k, part in enumerate((X, X - offset)))
    found, wanted = rows(there), rows(here)
    assert [name for name in found if name in solvers] == [name for name in wanted if name in solvers]
    for solver in found.keys() & wanted.keys():  # among shares of blends that are nearly equal, digits may decide
        assert found[solver] == pytest.approx(wanted[solver], abs=close if solver in solvers else 2e-3), solver
    assert there.estimate is not None and here.estimate is not None
    assert there.estimate.mean == pytest.approx(here.estimate.mean, abs=2e-3) and there.estimate.high <= 1.0


def test_trees_from_a_linear_model_score_no_more_than_metrics_can(tmp_path: Path) -> None:
    """Bins of LightGBM have a border at 0, so that an offset may change its trees, but no value is beyond the range."""
    queries = graded(40, 3)
    result = study(queries, np.asarray(queries.features) + 1e8, tmp_path, ("LambdaMART", "GBDTRanker"))
    assert any(row.is_blend for row in result.leaderboard) and len(rows(result)) > 2
    assert result.estimate is not None and result.estimate.high <= 1.0


def test_scores_of_a_custom_solver_are_blended_whatever_their_size(tmp_path: Path) -> None:
    queries, found = graded(40, 3), []
    for part in (Plain, Huge, Tiny):
        ranktune.register_solver("Mine", part, [Float("alpha", 0.1, 10.0, 1.0, log=True)], save="skops")
        result = study(queries, np.asarray(queries.features), tmp_path / part.__name__, ("Mine", "RankSVM"))
        blend = next(row for row in result.leaderboard if row.is_blend)
        assert "Mine" in (blend.params or {})
        found.append(rows(result)[blend.solver])
    assert found[1] == pytest.approx(found[0], abs=1e-6) and found[2] == pytest.approx(found[0], abs=1e-6)
