"""Configurations of boosted rankers on tasks, through the command: what is fitted, kept, put together and compared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers import LambdaMART
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import Result
from ranktune.studies.benchmarks.turnkey import boosting
from ranktune.studies.benchmarks.turnkey.boosting import averaged, chosen, fitted
from ranktune.tuner.statistics.comparisons import holm
from tests.support.turnkey_samples import queries, write

PARTS = {"train": queries(25, 1), "vali": queries(15, 2), "test": queries(20, 3)}
SMALL = 'small={"solver": "LambdaMART", "leaves": 4}'
FLAT = 'flat={"solver": "GBDTRanker", "leaves": 2}'
BAG = 'bag={"bag": {"small": 2, "flat": 1}}'
NDCG = parse_metric("ndcg@10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cases of the same training queries."""
    place = tmp_path_factory.mktemp("tiny")
    for case, test in (("a", PARTS["test"]), ("b", queries(20, 4))):
        for part, content in (PARTS | {"test": test}).items():
            write(place / f"{case}.{part}.txt", content)
    return place


def run(folder: Path, *options: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the rows of the summary by variant, and the tables by task."""
    file = folder / "result.json"
    order = ["boosting", folder, *options, "--store", file]
    done = CliRunner().invoke(app, list(map(str, order)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    summary, *by_task = Result.read(file).tables
    return {str(row["variant"]): row for row in summary.rows}, by_task


def test_variants_are_compared_on_test_queries(folder: Path) -> None:
    rows, (table,) = run(folder, "--variant", SMALL, "--variant", FLAT, "--rounds", 20, "--seed", 0, "--seed", 1)
    assert [row["task"] for row in table.rows] == ["a", "b"] and rows["flat"]["tasks"] == 2
    train, test = (queries_as_written(PARTS[name]) for name in ("train", "test"))
    rankers = [LambdaMART(trees=20, leaves=4, random_state=seed).fit(train) for seed in (0, 1)]
    reference = float(np.mean([NDCG.mean(np.float32(ranker.predict(test)).astype(float), test) for ranker in rankers]))
    (_, others) = run(folder, "--variant", SMALL, "--variant", FLAT, "--rounds", 20, "--reference", "flat")
    ahead = float(table.rows[0]["mean"]) - reference
    assert float(table.rows[0]["difference"]) == pytest.approx(ahead, abs=2e-4)
    assert others[0].title.startswith("small less flat")
    p_values = [float(row["p"]) for row in table.rows]
    assert [float(row["Holm"]) for row in table.rows] == pytest.approx(holm(p_values), abs=2e-4)


def queries_as_written(part: Any) -> Any:
    return part.with_features(np.round(part.features, 6).astype(np.float32))


def test_cells_are_kept_and_bags_need_no_fit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[tuple[str, int]] = []

    def counted(variant: Any, train: Any, vali: Any, rounds: int, seed: int) -> Any:
        if train.n_queries > 10:
            fits.append((variant["solver"], seed))
        return fitted(variant, train, vali, rounds, seed)

    monkeypatch.setattr(boosting, "fitted", counted)
    options = ["--rounds", 5, "--keep", tmp_path / "cells.jsonl", "--variant", SMALL, "--variant", FLAT]
    alone, _ = run(folder, *options)
    assert len(fits) == 4
    rows, _ = run(folder, *options, "--variant", BAG)
    assert fits[4:] == [("LambdaMART", 1000)] * 2 and rows["small"] == alone["small"]
    repeated, _ = run(folder, *options, "--variant", BAG)
    assert len(fits) == 6 and repeated == rows
    kept = [json.loads(line) for line in (tmp_path / "cells.jsonl").read_text().splitlines()]
    assert rows["bag"]["s"] == pytest.approx(sum(cell["used"] for cell in kept))
    run(folder, *options, "--seed", 0, "--seed", 1)
    assert len(fits) == 10


def test_boosting_ends_by_validation_queries(folder: Path) -> None:
    _, (table,) = run(folder, "--variant", SMALL, "--variant", FLAT)
    assert all(0 < row["trees"] < 500 for row in table.rows)


def test_scores_of_a_bag_count_by_their_spread_within_queries() -> None:
    part, generator = PARTS["test"], np.random.default_rng(0)
    first, second = generator.normal(size=(2, part.n_documents))
    level = np.repeat(generator.normal(size=part.n_queries), part.lengths)
    small = averaged([first, second], part)
    large = averaged([first, 1000.0 * second + 50.0 * level], part)
    of_query = [np.ptp((large - small)[a:b]) for a, b in zip(part.starts[:-1], part.starts[1:], strict=True)]
    assert max(of_query) < 1e-9
    assert averaged([np.zeros(part.n_documents)] * 2, part).tolist() == [0.0] * part.n_documents


def test_parameters_reach_the_library() -> None:
    train, test = PARTS["train"], PARTS["test"]
    base = {"solver": "GBDTRanker", "leaves": 6}

    def scores(**more: Any) -> Any:
        score, trees = fitted({**base, **more}, train, None, 10, 0)
        assert trees == 10
        return np.asarray(score(test))

    assert np.array_equal(scores(library={"lambda_l2": 30.0}), scores(l2=30.0))
    assert not np.array_equal(scores(library={"path_smooth": 30.0}), scores())


@pytest.mark.parametrize("solver", ["lightgbm", "catboost"])
def test_one_call_of_a_library(solver: str) -> None:
    pytest.importorskip(solver)
    part = PARTS["test"]
    for vali in (None, PARTS["vali"]):
        score, trees = fitted({"solver": solver}, PARTS["train"], vali, 30, 0)
        assert 0 < trees <= 30 and (vali is not None or trees == 30)
        assert NDCG.mean(np.asarray(score(part), dtype=float), part) > 0.8


def test_a_cell_that_fails_does_not_stop_the_others(folder: Path, tmp_path: Path) -> None:
    wrong = 'wrong={"solver": "LambdaMART", "leaves": 1}'
    order = ["boosting", str(folder), "--rounds", "5", "--variant", SMALL, "--variant", wrong]
    done = CliRunner().invoke(app, order)
    assert done.exit_code == 1 and "2 of 4 cells failed" in done.stdout and "leaves=1" in done.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gbtd", "Did you mean 'gbdt'"),
        ("a={", "is no JSON"),
        ('a={"leaves": 3}', "has no solver"),
        ('a={"bag": {"mixed-x3": 2}}', "has no solver"),
    ],
)
def test_mistakes_are_explained(given: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        chosen([given])
