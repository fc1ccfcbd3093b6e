"""Whole tools at equal time, through the command: what is measured, kept and reported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult, stored_results
from ranktune.studies.benchmarks.tasks import KINDS
from ranktune.studies.benchmarks.turnkey import cells, command, peers
from ranktune.studies.benchmarks.turnkey.libraries import METRIC, PeerBudget
from ranktune.studies.benchmarks.turnkey.peers import OURS, PEERS, SINGLE_CALLS
from ranktune.studies.benchmarks.turnkey.results import OVER_CALLS
from tests.support.turnkey_samples import queries, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LETOR folder of two folds over the same queries."""
    place = tmp_path_factory.mktemp("tiny")
    parts = [queries(12, 1), queries(12, 2), queries(12, 3)]
    for number, order in ((1, (0, 1, 2)), (2, (2, 0, 1))):
        fold = place / f"Fold{number}"
        fold.mkdir()
        for name, k in zip(("train", "vali", "test"), order, strict=True):
            write(fold / f"{name}.txt", parts[k])
    return place


@pytest.fixture
def first_feature(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tools that answer at once, in this process; the list holds those that were run."""
    asked: list[str] = []
    weight = dict(zip(PEERS, np.linspace(0.0, 3.0, len(PEERS)), strict=True))

    def compete(rival: str, split: QuerySplit, budget: PeerBudget) -> tuple[Any, dict[str, Any]]:
        assert split.test is not None
        asked.append(f"{rival} {split.name}")
        X = np.asarray(split.test.features)
        report = {"estimate": 0.9, "interval": None, "tried": 3, "detail": {"trees": budget.threads}}
        ours = {"interval": [0.0, 1.0], "detail": {}} if rival == OURS else {}
        return X[:, 0] + weight[rival] * X[:, 1], report | ours | {"seconds": budget.seconds}

    monkeypatch.setattr(cells, "compete", compete)
    monkeypatch.setattr(command, "check_installed", lambda rival: None)
    monkeypatch.setattr(cells, "version_of", lambda rival: "1")
    return asked


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["turnkey", *map(str, arguments)], catch_exceptions=False)


def rows_of(folder: Path, *arguments: Any) -> dict[str, list[Any]]:
    """Return the rows that the command stores, by the begin of the titles of their tables."""
    file = folder / "stored.json"
    invoke(*arguments, "--store", file)
    rows: dict[str, list[Any]] = {}
    for table in BenchmarkResult.read(file).tables:
        rows.setdefault(table.title.partition(",")[0].partition(" (")[0], []).extend(table.rows)
    return rows


def kept_in(file: Path) -> list[cells.Finished]:
    return list(stored_results(file, cells.Finished.from_json))


def test_the_command_tells_what_was_measured(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    rows = rows_of(tmp_path, folder, "--seconds", 3, "--keep", tmp_path / "k")
    assert first_feature == [f"{r} Fold{k}" for k in (1, 2) for r in PEERS]
    ours = [cell for cell in kept_in(tmp_path / "k") if cell.cell.rival == OURS]
    for cell, parts in zip(ours, (queries(12, 3), queries(12, 2)), strict=True):
        for name in ("ndcg@10", "ndcg@10:letor"):
            expected = parse_metric(name).mean(np.round(np.asarray(parts.features)[:, 0], 6), parts)
            assert cell.mean(name) == pytest.approx(expected, abs=1e-12)
    quality = rows[f"{folder.name}: test queries"][0]
    mean = np.mean([cell.mean() for cell in ours])
    assert quality[METRIC] == pytest.approx(mean) and quality["estimate - test"] == pytest.approx(0.9 - mean)
    assert quality["in interval"] == "2 of 2"
    assert [pair["rival"] for pair in rows["ranktune less a rival"]] == [rival for rival in PEERS if rival != OURS]
    wanted = rows["wanted of ranktune"]
    assert not any(">= 0." in verdict["wanted"] for verdict in wanted)  # no target for a set without a name


def test_kinds_are_drawn_by_the_seed_and_the_lead_over_single_calls_is_judged(
    first_feature: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "task_of", lambda name: QuerySplit(name, *(queries(12, k) for k in (1, 2, 3))))
    rows = rows_of(tmp_path, "--task", "all-7:3", "--seconds", 40, "--seconds", 3, "--rival", "single", "--threads", 2)
    kinds = list(dict.fromkeys(asked.split()[1] for asked in first_feature))
    assert len(kinds) == 3 and all(kind.endswith("-7") and kind[:-2] in KINDS for kind in kinds)
    assert {asked.split()[0] for asked in first_feature} == {OURS, *SINGLE_CALLS}
    lead, without_goal = rows["beside the peers"]
    assert lead["met"] == (lead[OVER_CALLS] >= 0.01) and not without_goal["wanted"]
    for seconds in (3, 40):
        effort = rows[f"{kinds[0]}: what the tools did in {seconds} s"]
        assert {row["seconds"] for row in effort} == {seconds}
        assert [row["trees"] for row in effort[1:]] == [2] * len(SINGLE_CALLS)
    assert "all-x" in CliRunner().invoke(app, ["turnkey", "--task", "all-x"]).stderr


def test_stored_results_are_not_rerun(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    options = (folder, "--seconds", 3, "--keep", file)
    invoke(*options, "--rival", OURS)
    first = invoke(*options).stdout
    every = 2 * len(PEERS)
    assert len(first_feature) == every  # the first, and those that were missing
    assert invoke(*options).stdout == first and len(first_feature) == every
    invoke(folder, "--seconds", 4, "--keep", file)
    invoke(*options, "--seed", 1)
    invoke(*options, "--threads", 2)
    assert len(first_feature) == 4 * every
    file.write_bytes(file.read_bytes()[:-20])  # an interrupt cut the last line short
    invoke(*options, "--threads", 2)
    assert first_feature[4 * every :] == ["flaml Fold2"]
    assert len(kept_in(file)) == 4 * every
    invoke(*options, "--threads", 2)
    assert len(first_feature) == 4 * every + 1


def test_a_tool_that_fails_does_not_stop_the_others(
    folder: Path, first_feature: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    others: Callable[..., tuple[Any, dict[str, Any]]] = vars(cells)["compete"]

    def compete(rival: str, split: QuerySplit, budget: PeerBudget) -> tuple[Any, dict[str, Any]]:
        if rival == "lightgbm-optuna" or (rival == "flaml" and split.name == "Fold2"):
            raise StudyError(f"{rival} found no model.")
        return others(rival, split, budget)

    monkeypatch.setattr(cells, "compete", compete)
    options = (folder, "--keep", tmp_path / "k")
    ended = invoke(*options)
    assert ended.exit_code == 1 and f"3 of {2 * len(PEERS)} cells failed" in ended.stdout
    rows = rows_of(tmp_path, *options)
    (failures,) = (rows[title] for title in rows if "failed" in title)
    assert failures[0]["failure"] == f"{folder.name} Fold1 lightgbm-optuna 60 s seed 0: lightgbm-optuna found no model."
    runs = {row["rival"]: row["runs"] for row in rows[f"{folder.name}: what the tools did in 60 s"]}
    assert runs == {rival: 1 if rival == "flaml" else 2 for rival in PEERS if rival != "lightgbm-optuna"}
    monkeypatch.setattr(cells, "compete", others)
    assert invoke(*options).exit_code == 0 and len(first_feature) == 2 * len(PEERS)


def test_mistakes_are_explained(folder: Path, first_feature: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = invoke(folder, "--rival", "xgbost")
    assert wrong.exit_code == 2 and "Did you mean 'xgboost'" in wrong.stderr
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name == "flaml" else object())
    with pytest.raises(ParameterError, match=r"flaml needs flaml.*pip install --group bench"):
        peers.check_installed("flaml")
    with pytest.raises(DataError, match=r"Add test\.txt"):
        peers.compete("lightgbm-optuna", QuerySplit("Fold1", queries(3, 1), queries(3, 2)), PeerBudget(1.0))
