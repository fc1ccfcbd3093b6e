"""Whole tools at equal time: what is measured, kept, compared and reported; and that each tool learns."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks import peers, turnkey, turnkey_cells
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.peers import METRIC
from ranktune.studies.benchmarks.turnkey_cells import Cell, Finished, Results
from ranktune.studies.papers.reproduce import Dataset
from ranktune.tuner.evaluation.split import Split
from ranktune.tuner.evaluation.store import read_queries
from ranktune.tuner.statistics.intervals import randomisation_test


def queries(n_queries: int, seed: int, length: int = 12) -> Queries:
    """Queries whose first feature tells the grade, with noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_queries * length, 5))
    y = np.clip(np.round(X[:, 0] + 0.4 * generator.normal(size=len(X))), 0, 2)
    return Queries.from_arrays(X, y, qid=1000 * seed + np.repeat(np.arange(n_queries), length))


def write(path: Path, part: Queries) -> None:
    lines = zip(part.query_of_document, part.grades, part.features, strict=True)
    text = (
        f"{y:g} qid:{part.query_ids[q]} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x)) for q, y, x in lines
    )
    path.write_text("\n".join(text) + "\n")


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
    weight = {"ranktune": 0.0, "lightgbm": 0.3, "flaml": 3.0}

    def compete(rival: str, split: Split, seconds: float, seed: int) -> tuple[Any, dict[str, Any]]:
        assert split.test is not None
        asked.append(f"{rival} {split.name}")
        X = np.asarray(split.test.features)
        interval = [0.0, 1.0] if rival == "ranktune" else None
        report = {"estimate": 0.9, "interval": interval, "reported": None, "tried": 3, "seconds": seconds}
        return X[:, 0] + weight[rival] * X[:, 1], report

    monkeypatch.setattr(turnkey_cells, "compete", compete)
    monkeypatch.setattr(turnkey, "check_installed", lambda rival: None)
    monkeypatch.setattr(turnkey_cells, "version_of", lambda rival: "1")
    return asked


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["turnkey", *map(str, arguments)], catch_exceptions=False)


def finished(rival: str, fold: str, values: Any, *, data: str = "d", estimate: float = 0.5) -> Finished:
    cell = Cell(data, fold, rival, 1.0, 0, None, "1", "")
    array = np.array(values, dtype=np.float64)
    return Finished(cell, {name: array for name in turnkey_cells.METRICS}, 1.0, estimate)


def by_key(*all_finished: Finished) -> Results:
    return {(one.cell.data, one.cell.fold, one.cell.rival, one.cell.seed): one for one in all_finished}


def test_the_command_tells_what_was_measured(folder: Path, first_feature: list[str]) -> None:
    report = json.loads(invoke(folder, "--seconds", 3, "--json").stdout)
    assert first_feature == [f"{r} Fold{k}" for k in (1, 2) for r in ("ranktune", "lightgbm", "flaml")]
    for fold, parts in (("Fold1", queries(12, 3)), ("Fold2", queries(12, 2))):
        cell = next(c for c in report["cells"] if c["cell"]["fold"] == fold and c["cell"]["rival"] == "ranktune")
        for name in ("ndcg@10", "ndcg@10:letor"):
            expected = parse_metric(name).mean(np.round(np.asarray(parts.features)[:, 0], 6), parts)
            assert cell["values"][name] == pytest.approx(expected, abs=1e-12)
    ours = next(row for row in report["rows"] if row["rival"] == "ranktune")
    assert ours["optimism"] == pytest.approx(0.9 - ours[METRIC]) and ours["inside_interval"] == 2
    assert [one["rival"] for one in report["comparisons"]] == ["lightgbm", "flaml"]
    assert not any(">= 0." in one["wanted"] for one in report["verdicts"])  # no target for a set without a name
    table = invoke(folder, "--seconds", 3, "--fold", "Fold2").stdout
    assert "ndcg@10:letor" in table and "better than flaml" in table and "1 of 1" in table


def test_what_is_kept_is_not_run_again(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    options = (folder, "--seconds", 3, "--keep", file, "--json")
    invoke(*options, "--rival", "ranktune", "--fold", "Fold1")
    first = json.loads(invoke(*options).stdout)
    assert len(first_feature) == 6  # 1 and the 5 that were missing
    assert json.loads(invoke(*options).stdout) == first and len(first_feature) == 6
    invoke(folder, "--seconds", 4, "--keep", file)
    invoke(*options, "--seed", 1)
    assert len(first_feature) == 18
    file.write_bytes(file.read_bytes()[:-20])  # an interrupt cut the last line short
    again = json.loads(invoke(*options, "--seed", 1).stdout)
    assert first_feature[18:] == ["flaml Fold2"]
    assert len(turnkey_cells.kept(file)) == 18 and len(again["cells"]) == 6
    invoke(*options, "--seed", 1)
    assert len(first_feature) == 19


def test_keeping_gives_back_every_value(tmp_path: Path) -> None:
    one = replace(finished("flaml", "Fold1", [0.1, np.nan, 1 / 3]), interval=(0.25, 0.75), reported=0.4, tried=7)
    turnkey_cells.keep(tmp_path / "k", one)
    ((cell, back),) = turnkey_cells.kept(tmp_path / "k").items()
    assert cell == one.cell and replace(back, values={}) == replace(one, values={})
    assert all(np.array_equal(back.values[name], one.values[name], equal_nan=True) for name in turnkey_cells.METRICS)


def test_queries_of_all_folds_and_data_are_compared_together() -> None:
    generator = np.random.default_rng(5)
    a = generator.random((3, 20))
    b = a - 0.05 + 0.2 * generator.normal(size=a.shape)
    a[0, :4] = b[1, 3] = np.nan
    places = (("d", "Fold1"), ("d", "Fold2"), ("e", "Fold1"))
    results = by_key(
        *(finished("ranktune", fold, a[k], data=data) for k, (data, fold) in enumerate(places)),
        *(finished("flaml", fold, b[k], data=data) for k, (data, fold) in enumerate(places)),
        finished("ranktune", "Fold3", a[0]),  # without its like: no part of the comparison
    )
    found = turnkey.compared(results, "flaml")
    assert found is not None
    assert found.p_value == randomisation_test(a.ravel(), b.ravel(), np.random.default_rng(0))
    assert found.difference == pytest.approx(np.nanmean(a - b)) and found.queries == 55
    wins = [np.nanmean(x) > np.nanmean(y) for x, y in zip(a, b, strict=True)]
    assert (found.wins, found.losses) == (sum(wins), 3 - sum(wins))
    assert turnkey.compared(results, "lightgbm") is None


def test_a_query_counts_once_with_its_mean_over_the_seeds_that_both_ran() -> None:
    generator = np.random.default_rng(6)
    a, b = generator.random((2, 3, 30))
    a[1, 0] = np.nan

    def at(rival: str, values: Any, seed: int) -> Finished:
        one = finished(rival, "Fold1", values)
        return replace(one, cell=replace(one.cell, seed=seed))

    runs = [at("ranktune", a[k], k) for k in range(3)] + [at("flaml", b[k], k) for k in range(2)]
    found = turnkey.compared(by_key(*runs), "flaml")
    assert found is not None and found.queries == 29 and found.wins + found.losses == 1
    assert found.difference == pytest.approx(np.nanmean(a[:2].mean(axis=0) - b[:2].mean(axis=0)))
    row = turnkey.summary(by_key(*runs), "d", "ranktune")
    assert (row["folds"], row["runs"]) == (1, 3)
    assert row[METRIC] == pytest.approx(np.mean([np.nanmean(values) for values in a]))


def test_few_test_queries_may_be_further_from_the_estimate_than_many() -> None:
    for count, expected in ((10, True), (10_000, False)):
        values = np.tile([0.2, 0.8], count // 2)
        one = replace(finished("ranktune", "Fold1", values, estimate=0.6), interval=(0.58, 0.62))
        assert one.inside is expected
    assert finished("flaml", "Fold1", [0.1, 0.2]).inside is None


def test_verdicts_follow_the_targets() -> None:
    def met(value: float, estimate: float, folds: int = 5, used: float = 1.04) -> dict[str, bool]:
        cells = [finished("ranktune", f"Fold{k}", [value], data="MQ2008", estimate=estimate) for k in range(folds)]
        results = by_key(replace(cells[0], used=used), *cells[1:])
        rows = [turnkey.summary(results, "MQ2008", "ranktune")]
        return {one.what: one.met for one in turnkey.verdicts(rows, [])}

    quality, estimate = "MQ2008: mean test ndcg@10", "MQ2008: estimate less test"
    time = "MQ2008: longest run, of its time"
    assert met(0.701, 0.710) == {quality: True, estimate: True, time: True}
    assert met(0.699, 0.688, used=1.06) == {quality: False, estimate: False, time: False}
    assert met(0.701, 0.715, folds=4) == {estimate: False, time: True}
    better = turnkey.Comparison("flaml", 9, 0.01, 0.04, 5, 0)
    sides = [better, replace(better, difference=-0.01), replace(better, p_value=0.06)]
    assert [one.met for one in turnkey.verdicts([], sides)] == [True, False, False]


@pytest.mark.parametrize("n_queries", [5, 23])
def test_folds_dealt_again_are_a_partition(n_queries: int) -> None:
    whole = queries(n_queries, 1)
    three = [whole.select(np.arange(n_queries)[part::3]) for part in range(3)]
    folds = turnkey_cells.dealt_again([Split("Fold1", *three)], seed=4)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    for fold in folds:
        assert fold.vali is not None and fold.test is not None
        together = concatenate([fold.train, fold.vali, fold.test])
        assert sorted(together.query_ids) == sorted(whole.query_ids)
        assert len(set(together.query_ids.tolist())) == n_queries
        assert fold.train.n_queries >= 3 * (n_queries // 5)
        at = int(np.flatnonzero(whole.query_ids == fold.test.query_ids[0])[0])
        rows = slice(whole.starts[at], whole.starts[at + 1])
        assert np.array_equal(fold.test.features[: fold.test.starts[1]], whole.features[rows])
    tested = [q for fold in folds if fold.test is not None for q in fold.test.query_ids]
    assert sorted(tested) == sorted(whole.query_ids)
    other = turnkey_cells.dealt_again([Split("Fold1", *three)], seed=5)
    assert n_queries == 5 or [f.train.fingerprint for f in folds] != [f.train.fingerprint for f in other]
    with pytest.raises(DataError, match="4 queries cannot be dealt"):
        turnkey_cells.dealt_again([Split("Fold1", queries(4, 1))], seed=0)


def test_new_folds_are_other_cells_without_targets(folder: Path, first_feature: list[str], tmp_path: Path) -> None:
    options = (folder, "--rival", "ranktune", "--keep", tmp_path / "k", "--json")
    report = json.loads(invoke(*options, "--split-seed", 7).stdout)
    assert len(report["cells"]) == 5 and {cell["cell"]["split_seed"] for cell in report["cells"]} == {7}
    assert report["rows"][0]["folds"] == 5
    invoke(*options)
    assert len(first_feature) == 7


def test_quality_is_judged_on_all_published_folds_only(
    monkeypatch: pytest.MonkeyPatch, first_feature: list[str]
) -> None:
    folds = tuple(Split(f"Fold{k}", queries(3, 3 * k), queries(3, 3 * k + 1), queries(3, 3 * k + 2)) for k in range(5))
    monkeypatch.setattr(turnkey, "load_datasets", lambda folders: [Dataset("OHSUMED", folds)])
    judged = "OHSUMED: mean test ndcg@10"
    assert judged in invoke("any", "--rival", "ranktune").stdout
    for options in (("--fold", "Fold1"), ("--split-seed", 0)):
        report = invoke("any", "--rival", "ranktune", *options).stdout
        assert judged not in report and "OHSUMED: estimate less test" in report


def test_a_tool_never_sees_test_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    split = Split("Fold1", queries(6, 1), queries(6, 2), queries(6, 3))
    assert split.test is not None and split.test.grades.any()
    scores = np.arange(split.test.n_documents, dtype=np.float64)
    seen: dict[str, Queries] = {}
    estimate = "0.5"

    def process(command: list[str], env: dict[str, str], **options: Any) -> Any:
        folder = Path(command[4])
        seen.update({place.name: read_queries(place) for place in folder.iterdir()})
        assert env["OMP_NUM_THREADS"] == env["NUMBA_NUM_THREADS"] == "1"
        np.save(folder / "scores.npy", scores)
        (folder / "report.json").write_text(f'{{"estimate": {estimate}}}')
        return subprocess.CompletedProcess(command, int(command[5] == "9.0"), stderr="first\nKeyError: at last")

    monkeypatch.setattr(subprocess, "run", process)
    found, report = peers.compete("lightgbm", split, 1.0, 0)
    assert np.array_equal(found, scores) and report == {"estimate": 0.5}
    assert set(seen) == {"train", "vali", "test"} and not seen["test"].grades.any()
    assert np.array_equal(seen["test"].features, split.test.features)
    with pytest.raises(StudyError, match="lightgbm on Fold1 failed: KeyError: at last"):
        peers.compete("lightgbm", split, 9.0, 0)
    estimate = "NaN"
    with pytest.raises(StudyError, match="no finite estimate"):
        peers.compete("lightgbm", split, 1.0, 0)
    scores[3] = np.nan
    with pytest.raises(StudyError, match="no finite score"):
        peers.compete("lightgbm", split, 1.0, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("rival", ["ranktune", "lightgbm", "flaml"])
def test_every_tool_learns(rival: str) -> None:
    absent = [name for name in peers.NEEDS[rival] if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed")
    split = Split("Fold1", queries(25, 1), queries(15, 2), queries(15, 3))
    scores, report = peers.compete(rival, split, 2.0, 0)
    assert split.test is not None
    metric = parse_metric(METRIC)
    chance = metric.mean(np.asarray(split.test.features)[:, 1], split.test)
    known = metric.mean(np.asarray(split.test.features)[:, 0], split.test)
    assert metric.mean(scores, split.test) > 0.5 * (chance + known)
    assert 0.0 < report["estimate"] <= 1.0 and report["seconds"] > 0.0


def test_mistakes_are_explained(folder: Path, first_feature: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="Did you mean 'lightgbm'"):
        invoke(folder, "--rival", "lightgmb")
    with pytest.raises(ParameterError, match="has no fold 'Fold3'"):
        invoke(folder, "--fold", "Fold3")
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name == "flaml" else object())
    with pytest.raises(ParameterError, match=r'flaml needs flaml.*pip install "ranktune\[bench\]"'):
        peers.check_installed("flaml")
    whole = Split("Fold1", queries(3, 1), queries(3, 2), queries(3, 3))
    for part, split in (("vali", replace(whole, vali=None)), ("test", replace(whole, test=None))):
        with pytest.raises(DataError, match=f"Add {part}.txt"):
            peers.compete("lightgbm", split, 1.0, 0)
