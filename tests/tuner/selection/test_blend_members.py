"""What a delivered blend consists of: models of several columns, and the plain average of trees beside it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.selection.results import Result
from ranktune.tuner.selection.rows import BLEND, LINEAR_BLEND, TREE_BLEND, LeaderboardRow
from tests.support.engine_samples import graded
from tests.support.policies import run_by

FEW = {f"{name}.trees": 40 for name in ("GBDTRanker", "LambdaMART")}
SOLVERS = ("BestFeature", "RidgeRanker", "RankSVM", "GBDTRanker", "LambdaMART")


of_one_column = partial(graded, noise=0.5, weights=(1.0, 0.0, 0.0, 0.0, 0.0))
"""Grades follow the first of five columns: the model of that column alone is as good as any."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    home: Path = tmp_path_factory.mktemp("studies")
    train, test = of_one_column(60, 0), of_one_column(30, 1)
    return ranktune.tune(train, test=test, solvers=SOLVERS, trials=9, jobs=1, name="x", home=home, space=FEW)


def members(row: LeaderboardRow) -> set[str]:
    return {name.partition(" ")[0] for name in row.params or {}}


def test_one_column_is_no_part_of_a_blend(found: Result) -> None:
    blends = [row for row in found.leaderboard if row.is_blend]
    assert blends and not any("BestFeature" in members(row) for row in blends)
    values = {row.solver: row.vali.mean for row in found.leaderboard if row.vali is not None}
    assert values["BestFeature"] > max(values[row.solver] for row in blends) - 0.02  # though it is as good as they are


def test_the_average_of_the_trees_is_a_candidate(found: Result) -> None:
    rows = {row.solver: row for row in found.leaderboard}
    assert BLEND in rows and LINEAR_BLEND in rows
    trees = {"GBDTRanker", "LambdaMART"}
    assert TREE_BLEND not in rows or members(rows[TREE_BLEND]) <= trees
    assert TREE_BLEND in rows or members(rows[BLEND]) <= trees


def test_a_blend_keeps_what_its_study_tries_first_and_single_models_must_be_ahead(tmp_path: Path) -> None:
    def shares(name: str, **blend: float) -> dict[str, object]:
        policy = replace(POLICY, blend=replace(POLICY.blend, **blend))  # type: ignore[arg-type]
        split = QuerySplit("", of_one_column(60, 0))
        result = run_by(policy, tmp_path / name, split, solvers=SOLVERS[1:3], trials=9, test="none", sampler="random")
        return dict(result.best.params or {}) if result.best.is_blend else {}

    assert len(shares("usual", other=np.inf)) > 2, "trials that are close to the best of their solver are averaged"
    assert not shares("default", other=np.inf, default=1.0), "the default alone is no blend"
    assert not shares("single", other=-np.inf)
