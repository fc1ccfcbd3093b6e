"""A study whose parts are gathered in files has the bits of one whose parts are in memory, and leaves none of them."""

from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.data import gathering
from ranktune.tuner.splits import store as parts


@pytest.mark.parametrize("given", [False, True])
def test_files_change_no_result(given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(900, 5))
    y, qid = (X[:, 0] + generator.normal(size=900) > 0.5).astype(int), np.arange(900) // 10
    data, vali = (X[:700], y[:700], qid[:700]), (X[700:], y[700:], qid[700:]) if given else None
    seen, opened = [], []
    for name, size in (("memory", 1 << 40), ("files", 1)):
        monkeypatch.setattr(gathering, "MIN_BYTES", size)
        monkeypatch.setattr(parts, "MIN_BYTES", size)
        result = ranktune.tune(
            data, vali=vali, solvers=["RidgeRanker", "GBDTRanker"], trials=4, jobs=1, home=tmp_path / name, name="one"
        )
        seen.append((result.estimate, result.test_metrics, result.best.params, result.best_model.predict(X).tobytes()))
        opened.append({path.name for path in (tmp_path / name / "one").iterdir()})
    assert seen[0] == seen[1]
    assert opened[0] == opened[1]
    assert not {"data", "data.new", "data.parts"} & opened[1]
