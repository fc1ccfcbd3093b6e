"""The baseline of one feature says which feature it is: in the table, in JSON and in Python."""

import json
from pathlib import Path

import numpy as np
import pytest

import ranktune
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
    result = ranktune.tune(data, solvers=solvers, trials=2, name="s", home=tmp_path)
    expected = "f2" if names is None else names[1]
    rows = {row.solver: row.feature for row in result.leaderboard}
    assert rows.pop("BestFeature") == expected and set(rows.values()) == {""}
    shown = json.loads(succeeded("show", "s", "--home", str(tmp_path), "--json"))
    assert {row["solver"]: row["feature"] for row in shown["leaderboard"]}["BestFeature"] == expected
    assert f"BestFeature ({expected[:20]})" in succeeded("show", "s", "--home", str(tmp_path))
    vali = {row.solver: row.vali.mean for row in result.leaderboard if row.vali}
    is_best = vali["BestFeature"] >= vali["RidgeRanker"]
    assert (f"{expected} alone reaches" in " ".join(str(result).split())) == is_best
    frame = result.leaderboard_frame()
    assert list(frame[frame["solver"] == "BestFeature"]["feature"]) == [expected]


@pytest.mark.parametrize("name", ["seconds_looked_at", "rank [bold]", None])
def test_a_feature_that_ranks_better_than_models_is_asked_about(name: str | None, tmp_path: Path) -> None:
    """Its values are of another size in each query, so that no linear model can use it as it is."""
    generator = np.random.default_rng(2)
    grade = generator.integers(0, 3, 400)
    size = np.repeat(10.0 ** generator.uniform(-6, 6, 40), 10)
    X = np.column_stack([generator.normal(size=400), size * (grade + 0.7 * generator.normal(size=400))])
    names = None if name is None else ["noise", name]
    data = ranktune.Queries.from_arrays(X, grade, qid=np.arange(400) // 10, feature_names=names)
    solvers = ("RidgeRanker", "BestFeature")
    result = ranktune.tune(data, solvers=solvers, trials=3, name="s", home=tmp_path)
    sentence = " ".join(str(result).split())
    assert f"{name or 'f2'} alone reaches 0." in sentence and "is it known before the ranking?" in sentence
