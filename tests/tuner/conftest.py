"""What many tests share: a small study, whose folder none changes, and worker processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ranktune
from tests.support.engine_samples import SOLVERS, graded
from tests.support.process_samples import Lasting


@pytest.fixture(scope="session")
def lane() -> Iterator[Lasting]:
    executor = Lasting(1)
    yield executor
    executor.end()


@pytest.fixture(scope="session")
def two_lanes() -> Iterator[Lasting]:
    executor = Lasting(2)
    yield executor
    executor.end()


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> ranktune.StudyResult:
    home = tmp_path_factory.mktemp("home")
    return ranktune.tune(
        graded(40, 0), vali=graded(20, 1), test=graded(30, 2), also=["map", "ndcg@10:letor"], solvers=SOLVERS,
        trials=9, sampler="random", name="known", home=home, jobs=1,
    )  # fmt: skip
