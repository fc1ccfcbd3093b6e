"""What does not fit into the memory of a study is said before it is read, and nothing is left behind."""

from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.tuner.workers.workforce import COORDINATOR, WORKER


def test_data_that_do_not_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    X = np.zeros((1_200_000, 32), dtype=np.uint8)  # as float64 eight times as large
    np.savez(tmp_path / "large.npz", X=X, y=np.arange(len(X)) % 2, qid=np.arange(len(X)) // 100)
    home = tmp_path / "home"
    memory = COORDINATOR + WORKER + (101 << 20)
    with pytest.raises(DataError, match=r"large\.npz: X.npy of shape \(1200000, 32\) takes about 307 MB .* are free"):
        ranktune.tune(tmp_path / "large.npz", solvers="RidgeRanker", trials=1, memory=memory, home=home)
    assert list(home.iterdir()) == []


def test_a_limit_that_is_too_small_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a study needs at least"):
        ranktune.tune("nothing.txt", memory="100MB", home=tmp_path)
    assert list(tmp_path.iterdir()) == []
