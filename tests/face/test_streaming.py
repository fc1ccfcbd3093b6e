"""Predictions are written as they come, the same as of all data at once; nothing is left where they cannot be."""

from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.data import blocks
from ranktune.solvers.models.linear import LinearModel
from tests.support.commands import called, write_letor


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a model and text whose queries are scored in several blocks."""
    monkeypatch.setattr(blocks, "SCORED_ROWS", 10)
    X = np.random.default_rng(0).normal(size=(60, 3))
    data, model = tmp_path / "data.txt", tmp_path / "model.json"
    write_letor(data, X, np.arange(60) % 2, np.arange(60) // 6)
    LinearModel(np.array([1.0, 0.5, -2.0]), "RankSVM").save(model)
    return model, data


def test_predictions_are_those_of_all_data(files: tuple[Path, Path], tmp_path: Path) -> None:
    model, data = files
    expected = [repr(score) for score in ranktune.load_model(model).predict(ranktune.read(data)).tolist()]
    shown = called("predict", str(model), str(data))
    assert shown.exit_code == 0 and shown.stdout.split() == expected
    out = tmp_path / "scores.txt"
    assert called("predict", str(model), str(data), "-o", str(out)).exit_code == 0
    assert out.read_text().split() == expected


def test_a_file_that_cannot_be_completed_is_not_left(files: tuple[Path, Path], tmp_path: Path) -> None:
    model, data = files
    with open(data, "a") as file:
        file.write("1 qid:99 1:1e300\n")
    LinearModel(np.array([1e10, 0.0, 0.0]), "RankSVM").save(model)
    out = tmp_path / "scores.txt"
    out.write_text("as before")
    failed = called("predict", str(model), str(data), "-o", str(out))
    assert failed.exit_code != 0
    assert out.read_text() == "as before" and not list(tmp_path.glob(".scores*"))
