"""The baseline of one feature says which feature it is: in the table, in JSON and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import succeeded


@pytest.mark.parametrize(
    "names",
    [["price", "bm25_title"], None, ["a", "a [red] name, of 70 letters, that no table has room for " + "x" * 20]],
)
def test_best_feature_names_its_feature(names: list[str] | None, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(400, 2))
    grade = np.digitize(2.0 * X[:, 1] + 0.3 * X[:, 0] + generator.normal(size=400), [0.5, 2.0])
    data = ranktune.Queries.from_arrays(X, grade, qid=np.arange(400) // 10, feature_names=names)
    solvers = ("RidgeRanker", "BestFeature")
    result = ranktune.tune(data, solvers=solvers, trials=2, name="s", home=tmp_path, executor=InProcess())
    expected = "f2" if names is None else names[1]
    rows = {row.solver: row.feature for row in result.leaderboard}
    assert rows.pop("BestFeature") == expected and set(rows.values()) == {""}
    shown = json.loads(succeeded("show", "s", "--home", str(tmp_path), "--json"))
    assert {row["solver"]: row["feature"] for row in shown["leaderboard"]}["BestFeature"] == expected
    assert f"BestFeature ({expected[:20]})" in succeeded("show", "s", "--home", str(tmp_path))
    frame = result.leaderboard_frame()
    assert list(frame[frame["solver"] == "BestFeature"]["feature"]) == [expected]
