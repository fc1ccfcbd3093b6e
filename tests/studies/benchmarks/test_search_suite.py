"""The problems of every class, the peers as samplers, and mean ranks, through the command where they show there."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import scipy
from typer.testing import CliRunner

from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.search.problems import KINDS, PROBLEMS, SearchProblem
from ranktune.studies.benchmarks.search.regret import ProblemSetting, SearchRun, Selection, duel, rank_tables
from ranktune.studies.benchmarks.search.samplers import BLIND, NEEDS, PEERS, absent, run
from ranktune.studies.benchmarks.search.suite import SUITE
from ranktune.studies.benchmarks.search.tabulated import tabulated
from ranktune.studies.benchmarks.task_table import unpack
from tests.support.paths import ROOT

TABLE = ROOT / "docs" / "benchmarks" / "results" / "tasks.npz"
KNOWN = SUITE | tabulated()
HERE = [name for name, problem in KNOWN.items() if not absent([problem.library])]
"""Problems whose libraries are installed."""


@pytest.fixture(autouse=True)
def _table_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.studies.benchmarks.search.tabulated.FILE", TABLE)  # wheels lack it


def value_at(name: str, params: dict[str, Any]) -> float:
    value: float = KNOWN[name].loss(optuna.trial.FixedTrial(params))  # type: ignore[arg-type]
    return value


def test_every_class_has_problems() -> None:
    kinds = {problem.kind for problem in [*PROBLEMS.values(), *KNOWN.values()]}
    assert kinds | {"rankings"} == set(KINDS)
    assert not set(KNOWN) & set(PROBLEMS)


@pytest.mark.parametrize("name", [*(name for name in PROBLEMS if not PROBLEMS[name].corner), *HERE])
def test_nothing_is_below_the_minimum(name: str) -> None:
    problem = (PROBLEMS | KNOWN)[name]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(problem.loss, n_trials=5 if problem.minimum is None else 15 if name in tabulated() else 300)
    limits = problem.limits or (lambda params: [0.0])
    feasible = [t.value for t in study.trials if max(limits(t.params)) <= 0.0]
    assert all(
        value is not None and value > (0.0 if problem.minimum is None else problem.minimum) - 1e-9 for value in feasible
    )
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert np.isfinite(values).all() and np.ptp(values) > 0


def test_minima_of_the_suite() -> None:
    shop = int(np.argmin(np.random.default_rng(20).permutation(20)))
    place = np.random.default_rng(21).random((20, 3))[shop]
    assert value_at("shop20", {"shop": str(shop), **{f"x{j}": x for j, x in enumerate(place)}}) == pytest.approx(0)
    labels = np.random.default_rng(22).integers(3, size=20)
    assert value_at("labels20", {f"c{j}": str(label) for j, label in enumerate(labels)}) == 0.0
    best = {"rate": 1e-3, "optimiser": "adam", "decay": 10**-1.5, "schedule": "cosine", "end": 0.1}
    assert value_at("stages", best) == pytest.approx(0)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("vessel", {"shell": 13, "head": 7, "radius": 42.0984455, "length": 176.6365959}),
        ("beam", {"weld": 0.20573, "length": 3.47049, "height": 9.03662, "thickness": 0.20573}),
    ],
)
def test_published_optima_are_feasible_and_the_minima(name: str, params: dict[str, Any]) -> None:
    """Coello 2002 and later papers; their digits are rounded."""
    limits = SUITE[name].limits
    assert limits is not None and max(limits(params)) < 1e-4
    assert value_at(name, params) == pytest.approx(SUITE[name].minimum, rel=1e-3)


@pytest.mark.parametrize("name", ["lambdamart-36", "gbdtranker-37"])
def test_a_table_is_met_at_its_configurations_and_between_their_values_elsewhere(name: str) -> None:
    problem, (start, seed) = KNOWN[name], name.split("-")
    assert problem.space is not None
    rows = [row for row in unpack(TABLE) if row.task == f"drawn-{seed}" and start in row.configuration.lower()]
    means = {r.configuration: np.nanmean(r.vali) for r in rows if r.share == 1.0 and r.vali is not None}
    known = [(json.loads(text), max(means.values()) - mean) for text, mean in means.items()]
    assert min(value_at(name, params) for params, _ in known) == problem.minimum
    for params, lacks in known:
        assert value_at(name, params) == pytest.approx(lacks, abs=1e-12)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    values = [value_at(name, problem.space.suggest(study.ask())) for _ in range(20)]
    assert min(values) >= 0.0 and max(values) <= max(means.values()) - min(means.values()) and len(set(values)) > 10


def test_infeasible_trials_are_never_picked_and_blind_samplers_are_told_a_penalty() -> None:
    problem = SUITE["vessel"]
    for name in ("random", "skopt", "thompson:mixed"):
        result = run(problem, "vessel", name, 0, ProblemSetting(12, 1))
        assert (np.diff(result.picks) <= 0).all()
        assert all(pick == problem.worst or 6.0 < pick for pick in result.picks)
    assert "skopt" in BLIND and "random" not in BLIND


@pytest.mark.parametrize("name", [name for name in PEERS if not absent(NEEDS.get(name, ()))])
def test_a_run_of_a_peer_can_be_repeated(name: str) -> None:
    setting = ProblemSetting(13, 2)
    first, again = (run(PROBLEMS["layers"], "layers", name, 1, setting) for _ in range(2))
    assert first.picks == again.picks and len(first.picks) == 13
    assert first.picks != run(PROBLEMS["layers"], "layers", name, 2, setting).picks


def made(problem: str, sampler: str, regrets: list[float]) -> list[SearchRun]:
    return [SearchRun(problem, sampler, seed, 1, [regret]) for seed, regret in enumerate(regrets)]


def selection(values: dict[str, dict[str, list[float]]]) -> Selection:
    runs = [each for title, of in values.items() for name, regrets in of.items() for each in made(title, name, regrets)]
    known = {
        title: SearchProblem(lambda trial: 0.0, 0.0, kind="mixed" if title < "c" else "fronts") for title in values
    }
    return Selection(
        {run.key: run for run in runs}, known, list(values), ["x", "y", "z"], range(2), ProblemSetting(1, 1)
    )


def test_mean_ranks_are_by_medians_of_problems_that_all_samplers_ran() -> None:
    chosen = selection({
        "a": {"x": [1.0, 3.0], "y": [2.0, 2.0], "z": [9.0, 9.0]}, "b": {"x": [1.0], "y": [5.0], "z": [3.0]},
        "c": {"x": [2.0], "y": [1.0]},
    })  # fmt: skip
    mixed, fronts, every = rank_tables(chosen)
    expected = {"x": "1.25", "y": "2.25", "z": "2.50"}  # medians of a: 2, 2, 9; of b: 1, 5, 3
    assert {str(row["sampler"]): row["1"] for row in mixed.rows} == expected
    assert {str(row["sampler"]): row["1"] for row in every.rows} == expected and "Left out: c." in every.note
    assert [row["sampler"] for row in fronts.rows] == ["y", "x"] and "Nemenyi" not in fronts.note
    p = scipy.stats.friedmanchisquare([1.5, 1.0], [1.5, 3.0], [3.0, 2.0]).pvalue
    assert f"Friedman's p: {p:.2g} (1)." in mixed.note and "Critical difference (Nemenyi, 5%): 2.34." in mixed.note


def test_two_samplers_are_compared_by_problem_and_seed() -> None:
    chosen = selection({"a": {"x": [1.0, 1000.0], "y": [3.0, 1000.0]}, "c": {"x": [0.0, 0.0], "y": [2.0, 0.0]}})
    mixed, fronts, every = duel(chosen, "x", "y").rows
    assert (mixed["pairs"], mixed["less"], mixed["more"], mixed["mean gap"]) == (2, 1, 0, "-0.250")
    assert (fronts["less"], fronts["mean gap"]) == (1, "-0.500")
    assert (every["class"], every["pairs"], every["less"], every["p"]) == ("all", 4, 2, "0.5")


def test_the_command_compares_classes_and_continues(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    order = ["sampler", "--ranks", "--problems", "categories,conditional,fronts", "--trials", "10"]

    def output(*more: str) -> str:
        return CliRunner().invoke(app, [*order, *more], catch_exceptions=False).stdout

    output("--samplers", "random", "--seeds", "1", "--keep", str(first))
    output("--samplers", "tpe,optuna-tpe", "--seeds", "1", "--keep", str(second))
    apart = [len(file.read_text().splitlines()) for file in (first, second)]
    assert apart == [7, 14]  # labels20, layers, stages and four of two objectives
    both = output(
        "--samplers", "tpe,random,optuna-tpe", "--seeds", "1", "--keep", str(first), "--keep", str(second),
    )  # fmt: skip
    assert [len(file.read_text().splitlines()) for file in (first, second)] == apart
    assert (
        "Mean ranks, all, 7 problems" in both and "Regret of tpe beside random" in both and "Regret, median" not in both
    )
    assert {json.loads(line)["problem"] for line in first.read_text().splitlines()} >= {"labels20", "stages", "zdt1"}
    assert max(map(len, both.splitlines())) <= 80


def test_what_is_not_installed_is_left_out_with_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.studies.benchmarks.search.samplers.find_spec", lambda name: None)
    monkeypatch.setattr("ranktune.studies.benchmarks.search.tabulated.FILE", Path("tasks.npz"))
    order = ["sampler", "--samplers", "random,gp", "--problems", "func3c,bbob-1-2,gbdtranker-37"]
    order += ["--trials", "2", "--seeds", "1", "--keep", str(tmp_path / "runs.jsonl")]
    output = CliRunner().invoke(app, order, catch_exceptions=False).stdout
    for name, library in (("gp", "torch"), ("bbob-1-2", "cocoex"), ("gbdtranker-37", "tasks.npz")):
        assert any(name in line and library in line for line in output.splitlines())
