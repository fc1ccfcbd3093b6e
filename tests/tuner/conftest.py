"""What many tests share: a small study, whose folder none changes, and worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ranktune
from tests.support.engine_samples import graded, tuned
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
    given: dict[str, Any] = {"vali": graded(20, 1), "test": graded(30, 2), "also": ["map", "ndcg@10:letor"]}
    return tuned(tmp_path_factory.mktemp("home"), trials=9, name="known", **given)
