"""What trials leave is a shortcut: the same configuration finds it, another one or damage does not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.evaluation.models import KEPT, has_model, keep_model, keep_scores, kept_model, kept_scores
from ranktune.tuner.evaluation.task import Task

SCORES = np.linspace(-1.0, 1.0, 50, dtype=np.float32)


def task(folder: Path) -> Task:
    return Task(str(folder), ("ndcg@10",), "RankSVM", {"C": 0.1, "tolerance": 1e-3}, 7)


def test_the_same_configuration_finds_what_was_kept(tmp_path: Path) -> None:
    keep_scores(task(tmp_path), SCORES)
    keep_model(task(tmp_path), LinearModel(np.arange(4.0), solver="RankSVM"))
    same = replace(task(tmp_path), parameters={"tolerance": 1e-3, "C": 0.1}, metrics=("map",), keep=True)
    scores, model = kept_scores(same, 50), kept_model(same)
    assert scores is not None
    np.testing.assert_array_equal(scores, SCORES)
    assert isinstance(model, LinearModel)
    np.testing.assert_array_equal(model.weights, np.arange(4.0))
    assert has_model(same)


@pytest.mark.parametrize("other", [{"solver": "ListNet"}, {"seed": 8}, {"parameters": {"C": 0.2}}, {"plan": "fresh"}])
def test_another_configuration_finds_nothing(tmp_path: Path, other: dict[str, object]) -> None:
    keep_scores(task(tmp_path), SCORES)
    keep_model(task(tmp_path), LinearModel(np.arange(4.0), solver="RankSVM"))
    assert kept_scores(replace(task(tmp_path), **other), 50) is None  # type: ignore[arg-type]
    assert kept_model(replace(task(tmp_path), **other)) is None  # type: ignore[arg-type]


def test_damaged_scores_are_not_believed(tmp_path: Path) -> None:
    keep_scores(task(tmp_path), SCORES)
    (path,) = (tmp_path / KEPT).glob("*.npz")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        scores = kept_scores(task(tmp_path), 50)
        assert scores is None or np.array_equal(scores, SCORES)
    path.write_bytes(whole[: len(whole) // 2])
    assert kept_scores(task(tmp_path), 50) is None
    path.write_bytes(whole)
    assert kept_scores(task(tmp_path), 49) is None
    assert kept_scores(task(tmp_path), 50) is not None


def test_a_folder_that_cannot_be_written_keeps_nothing_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / KEPT).write_text("a file")
    keep_scores(task(tmp_path), SCORES)
    keep_model(task(tmp_path), LinearModel(np.arange(4.0), solver="RankSVM"))
    assert kept_scores(task(tmp_path), 50) is None
