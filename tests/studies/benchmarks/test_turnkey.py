"""Whole tools at equal time, through the command: what is measured, kept and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import append_result, stored_results
from ranktune.studies.benchmarks.turnkey import cells, command, peers
from ranktune.studies.benchmarks.turnkey.data import Case
from ranktune.studies.benchmarks.turnkey.peers import METRIC, OURS, OWN, PEERS, Budget
from tests.support.turnkey_samples import finished, queries, write


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
    weight = dict(zip(PEERS, (0.0, 0.1, 0.3, 1.0, 2.0, 2.5, 3.0), strict=True))

    def compete(rival: str, split: Split, budget: Budget) -> tuple[Any, dict[str, Any]]:
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


def test_the_command_tells_what_was_measured(folder: Path, first_feature: list[str]) -> None:
    report = json.loads(invoke(folder, "--seconds", 3, "--json").stdout)
    assert first_feature == [f"{r} Fold{k}" for k in (1, 2) for r in PEERS]
    for fold, parts in (("Fold1", queries(12, 3)), ("Fold2", queries(12, 2))):
        cell = next(c for c in report["cells"] if c["cell"]["fold"] == fold and c["cell"]["rival"] == OURS)
        for name in ("ndcg@10", "ndcg@10:letor"):
            expected = parse_metric(name).mean(np.round(np.asarray(parts.features)[:, 0], 6), parts)
            assert cell["values"][name] == pytest.approx(expected, abs=1e-12)
    (budget,) = report["reports"]
    ours = next(row for row in budget["rows"] if row["rival"] == OURS)
    assert ours["optimism"] == pytest.approx(0.9 - ours[METRIC]) and ours["inside_interval"] == 2
    assert [pair["rival"] for pair in budget["comparisons"]] == [rival for rival in PEERS if rival != OURS]
    assert not any(">= 0." in verdict["wanted"] for verdict in budget["verdicts"])  # no target for a set without a name
    table = invoke(folder, "--seconds", 3, "--fold", "Fold2").stdout
    assert "ndcg@10:letor" in table and "better than flaml" in table and "1 of 1" in table
    assert max(map(len, table.splitlines())) <= 80


def test_each_budget_has_a_report(folder: Path, first_feature: list[str]) -> None:
    options = (folder, "--fold", "Fold1", "--seconds", 3, "--seconds", 5, "--threads", 2)
    report = json.loads(invoke(*options, "--json").stdout)
    assert [budget["seconds"] for budget in report["reports"]] == [3.0, 5.0] and report["threads"] == 2
    for budget in report["reports"]:
        assert [row["seconds"] for row in budget["rows"]] == [budget["seconds"]] * len(PEERS)
        assert [row["trees"] for row in budget["rows"]] == [None, *[2.0] * (len(PEERS) - 1)]
    assert {cell["cell"]["threads"] for cell in report["cells"]} == {2}
    text = invoke(*options).stdout
    assert "wanted of ranktune (3 s)" in text and "wanted of ranktune (5 s)" in text and "2 threads" in text


def test_generated_tasks_are_compared(first_feature: list[str]) -> None:
    report = json.loads(invoke("--task", "few-0", "--rival", OURS, "--rival", "catboost", "--json").stdout)
    assert first_feature == ["ranktune few-0", "catboost few-0"]
    assert [comparison["data"] for comparison in report["reports"][0]["comparisons"]] == ["few-0"]
    assert "there is nothing to compare on" in CliRunner().invoke(app, ["turnkey"]).stderr


def test_any_data_is_compared(tmp_path: Path, first_feature: list[str]) -> None:
    for number, part in enumerate(("train", "vali", "test"), 1):
        write(tmp_path / f"n.{part}.txt", queries(12, number))
    file = write(tmp_path / "whole.txt", queries(20, 4))
    report = json.loads(invoke(tmp_path / "n", file, "--json").stdout)
    assert first_feature == [f"{rival} {split}" for split in ("given", "dealt") for rival in PEERS]
    (budget,) = report["reports"]
    others = len(PEERS) - 1
    assert [(pair["data"], pair["letor"]) for pair in budget["comparisons"][::others]] == [
        ("n", False), ("whole", False),
    ]  # fmt: skip
    results = {verdict["what"]: verdict for verdict in budget["verdicts"]}
    verdict, difference = results["n: not behind flaml"], budget["comparisons"][others - 1]["difference"]
    assert verdict["wanted"] == ">= -0.002" and verdict["met"] == (difference >= -0.002)
    assert results["whole: shortest run, seconds"]["wanted"] == ">= 54.0"
    assert results["whole: longest run, seconds"]["wanted"] == "<= 62.2"


def test_columns_of_a_table_are_named(tmp_path: Path, first_feature: list[str]) -> None:
    rows = [f"{k % 2},{k // 4},{0.5 * k},title {k},{k % 3}" for k in range(40)]
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["grade,query_id,first,title,second", *rows]) + "\n")
    options = (tmp_path / "a.csv", tmp_path / "b.csv", "--qid", "query_id", "--drop", "title")
    text = invoke(*options, "--rival", OURS, "--rival", OWN, "--rival", "flaml").stdout
    assert first_feature == [f"{rival} dealt" for _ in "ab" for rival in (OURS, OWN, "flaml")]
    assert "2 data sets: ndcg@10" in text and "Critical difference" in text and "beside the peers" in text
    assert max(map(len, text.splitlines())) <= 80
    report = json.loads(invoke(*options, "--rival", OURS, "--json").stdout)
    assert report["reports"][0]["overall"] is None  # of one tool


def test_stored_results_are_not_rerun(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    options = (folder, "--seconds", 3, "--keep", file, "--json")
    invoke(*options, "--rival", OURS, "--fold", "Fold1")
    first = json.loads(invoke(*options).stdout)
    every = 2 * len(PEERS)
    assert len(first_feature) == every  # the first, and those that were missing
    assert json.loads(invoke(*options).stdout) == first and len(first_feature) == every
    invoke(folder, "--seconds", 4, "--keep", file)
    invoke(*options, "--seed", 1)
    invoke(*options, "--threads", 2)
    assert len(first_feature) == 4 * every
    file.write_bytes(file.read_bytes()[:-20])  # an interrupt cut the last line short
    rerun = json.loads(invoke(*options, "--threads", 2).stdout)
    assert first_feature[4 * every :] == ["flaml Fold2"]
    assert len(list(stored_results(file, cells.Finished.from_json))) == 4 * every and len(rerun["cells"]) == every
    invoke(*options, "--threads", 2)
    assert len(first_feature) == 4 * every + 1


def test_a_tool_that_fails_does_not_stop_the_others(
    folder: Path, first_feature: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    others: Callable[..., tuple[Any, dict[str, Any]]] = vars(cells)["compete"]

    def compete(rival: str, split: Split, budget: Budget) -> tuple[Any, dict[str, Any]]:
        if rival == "lightgbm" or (rival == "flaml" and split.name == "Fold2"):
            raise StudyError(f"{rival} found no model.")
        return others(rival, split, budget)

    monkeypatch.setattr(cells, "compete", compete)
    options = (folder, "--keep", tmp_path / "k", "--json")
    ended = invoke(*options)
    report = json.loads(ended.stdout)
    assert ended.exit_code == 1 and len(report["failures"]) == 3 and "3 of 14 cells failed" in ended.stderr
    assert report["failures"][0] == f"{folder.name} Fold1 lightgbm 60 s seed 0: lightgbm found no model."
    runs = {row["rival"]: row["runs"] for row in report["reports"][0]["rows"]}
    assert runs == {rival: 1 if rival == "flaml" else 2 for rival in PEERS if rival != "lightgbm"}
    monkeypatch.setattr(cells, "compete", others)
    assert invoke(*options).exit_code == 0 and len(first_feature) == 11 + 3


def test_keeping_gives_back_every_value(tmp_path: Path) -> None:
    cell = replace(finished("flaml", "Fold1", [0.1, np.nan, 1 / 3]), interval=(0.25, 0.75), tried=7)
    cell = replace(cell, detail={"trees": 8})
    append_result(tmp_path / "k", cell.as_json())
    (back,) = stored_results(tmp_path / "k", cells.Finished.from_json)
    assert back.cell == cell.cell and replace(back, values={}) == replace(cell, values={})
    assert all(np.array_equal(back.values[name], cell.values[name], equal_nan=True) for name in cells.METRICS)


def test_new_folds_are_other_cells_without_targets(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    options = (folder, "--rival", "ranktune", "--keep", tmp_path / "k", "--json")
    report = json.loads(invoke(*options, "--split-seed", 7).stdout)
    assert len(report["cells"]) == 5 and {cell["cell"]["split_seed"] for cell in report["cells"]} == {7}
    assert report["reports"][0]["rows"][0]["folds"] == 5
    invoke(*options)
    assert len(first_feature) == 7


def test_quality_is_compared_on_all_published_folds_only(
    monkeypatch: pytest.MonkeyPatch, first_feature: list[str]
) -> None:
    folds = tuple(Split(f"Fold{k}", queries(3, 3 * k), queries(3, 3 * k + 1), queries(3, 3 * k + 2)) for k in range(5))
    monkeypatch.setattr(command, "load_cases", lambda data, seed, **options: [Case("OHSUMED", folds, seed, letor=True)])
    line = "OHSUMED: mean test ndcg@10"
    assert line in invoke("any", "--rival", "ranktune").stdout
    for options in (("--fold", "Fold1"), ("--split-seed", 0)):
        report = invoke("any", "--rival", "ranktune", *options).stdout
        assert line not in report and "OHSUMED: estimate less test" in report


def test_mistakes_are_explained(folder: Path, first_feature: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = invoke(folder, "--rival", "lightgmb")
    assert wrong.exit_code == 2 and "Did you mean 'lightgbm'" in wrong.stderr
    wrong = invoke(folder, "--rival", "ranktune", "--fold", "Fold3")
    assert wrong.exit_code == 2 and "has no fold 'Fold3'" in wrong.stderr
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name == "flaml" else object())
    with pytest.raises(ParameterError, match=r"flaml needs flaml.*pip install --group bench"):
        peers.check_installed("flaml")
    with pytest.raises(DataError, match=r"Add test\.txt"):
        peers.compete("lightgbm", Split("Fold1", queries(3, 1), queries(3, 2)), Budget(1.0))
