"""A small study that tests of its stages and of its results look at; none changes its folder."""

from __future__ import annotations

import pytest

import ranktune
from tests.support.engine_samples import SOLVERS, graded


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> ranktune.StudyResult:
    home = tmp_path_factory.mktemp("home")
    return ranktune.tune(
        graded(40, 0), vali=graded(20, 1), test=graded(30, 2), also=["map", "ndcg@10:letor"], solvers=SOLVERS,
        trials=9, sampler="random", name="known", home=home, jobs=1,
    )  # fmt: skip
