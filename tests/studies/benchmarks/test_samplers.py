from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from scipy.stats import mannwhitneyu
from typer.testing import CliRunner

from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import stored_results
from ranktune.studies.benchmarks.search.fronts import FRONTS, hypervolume
from ranktune.studies.benchmarks.search.problems import PROBLEMS, TUNING, problems
from ranktune.studies.benchmarks.search.regret import (
    Run,
    Selection,
    Setting,
    figure,
    mann_whitney,
    seconds_tables,
    tables,
)
from ranktune.studies.benchmarks.search.runs import run
from ranktune.studies.benchmarks.search.samplers import overhead_table


def test_minima_of_the_synthetic_problems() -> None:
    best = {"x0": 0.2017, "x1": 10 ** (4 * (0.15 - 1)), "x2": 0.4769, "x3": 0.2753, "c1": "r", "c2": "p"}
    value = PROBLEMS["hart6m"].loss(optuna.trial.FixedTrial(best))  # type: ignore[arg-type]
    assert PROBLEMS["hart6m"].minimum == pytest.approx(-3.0391) and -3.0391 < value < -2.9
    camel = {"x1": 0.0898, "x2": -0.7126, "h1": "b", "h2": "b", "h3": "a"}
    value = PROBLEMS["func3c"].loss(optuna.trial.FixedTrial(camel))  # type: ignore[arg-type]
    assert value == pytest.approx(-0.7221, abs=1e-4)  # 7 / 10 of the camel's -1.0316
    low = {"x": np.pi, "y": 2.275, "shift": "a", "tilt": "b"}
    value = TUNING["branin3c"].loss(optuna.trial.FixedTrial(low))  # type: ignore[arg-type]
    assert value == pytest.approx(0.3979, abs=1e-4)
    valley = {"kind": "valley", "v0": 1.0, "v1": 1.0, "v2": "low"}
    assert TUNING["branches"].loss(optuna.trial.FixedTrial(valley)) == 0  # type: ignore[arg-type]
    ackley = {"x0": 0.0, "x1": 10**-0.3, "x2": 0.4, "k": 19, "c": "s"}
    assert TUNING["ackley5m"].loss(optuna.trial.FixedTrial(ackley)) == pytest.approx(0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*PROBLEMS, *TUNING])
def test_nothing_is_below_the_minimum(name: str) -> None:
    problem = (PROBLEMS | TUNING)[name]
    study = optuna.create_study(
        directions=["minimize"] * (2 if problem.corner else 1), sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(problem.loss, n_trials=300 if problem.minimum is not None else 20)
    if problem.corner is not None:
        assert (
            problem.minimum is not None
            and -hypervolume([t.values for t in study.trials], problem.corner) > problem.minimum
        )
    else:
        assert study.best_value > (0.0 if problem.minimum is None else problem.minimum)


def test_minima_of_programs() -> None:
    network = {
        "layers": 3,
        "rate": 10**-2.5,
        "width0": 64,
        "width1": 32,
        "width2": 16,
        "drop0": 0,
        "drop1": 0.1,
        "drop2": 0.2,
    }
    schedule = {"warm": 1, "decay": "cosine", "strength": 0.8, "warm_share": 0.1, "period": 8, "mix": 0.7, "end": 0.25}
    steps = {f"x{j}": (step + 0.5) / 6 for j, step in enumerate((1, 4, 2, 5, 3))}
    for problem, params in (
        (PROBLEMS["layers"], network),
        (PROBLEMS["stairs"], steps),
        (PROBLEMS["levy20"], {f"x{j}": 1.0 for j in range(20)}),
        (TUNING["switches"], schedule),
        (TUNING["valley10"], {f"x{j}": 1.0 for j in range(10)}),
        (TUNING["waves8"], {f"x{j}": 0.0 for j in range(8)}),
    ):
        assert problem.loss(optuna.trial.FixedTrial(params)) == pytest.approx(problem.minimum, abs=1e-12)  # type: ignore[arg-type]


def test_many_configurations_give_the_same_tree() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(TUNING["tree-digits"].loss, n_trials=3)
    best = dict(study.best_params, max_depth=20)
    trials = [optuna.trial.FixedTrial(best | {"max_depth": k}) for k in (20, 25, 30)]
    assert len({TUNING["tree-digits"].loss(trial) for trial in trials}) == 1  # type: ignore[arg-type]


def test_the_errors_of_trees_have_few_different_values() -> None:
    problem = TUNING["tree-wine"]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(problem.loss, n_trials=60)
    errors = np.array([trial.value for trial in study.trials]) * 89
    np.testing.assert_allclose(errors, np.round(errors), atol=1e-9)
    assert len(np.unique(np.round(errors))) < 25


def test_hypervolume_is_the_share_of_random_points_that_are_dominated() -> None:
    points, generator = np.random.default_rng(0).random((12, 2)) * 2, np.random.default_rng(1)
    places = generator.random((200_000, 2)) * (1.5, 1.2)
    dominated = np.mean(np.any(np.all(places[:, None] >= points, axis=2), axis=1)) * 1.5 * 1.2
    assert hypervolume(points.tolist(), (1.5, 1.2)) == pytest.approx(dominated, abs=0.01)
    assert hypervolume([(2.0, 0.0), (0.0, 1.3)], (1.5, 1.2)) == 0.0


@pytest.mark.parametrize("name", FRONTS)
def test_fronts(name: str) -> None:
    """Values on the true front have almost its area; a run's loss is the negative area of its front."""
    problem = PROBLEMS[name]
    assert problem.corner is not None and problem.minimum is not None
    rest = 0.5 if name == "dtlz2" else 0.0
    values = [
        problem.loss(optuna.trial.FixedTrial({"x0": first} | {f"x{j}": rest for j in range(1, 6)}))  # type: ignore[arg-type]
        for first in np.linspace(0, 1, 300).tolist()
    ]
    assert -hypervolume(values, problem.corner) == pytest.approx(problem.minimum, rel=0.01)
    result = run(problem, name, "thompson", 0, Setting(False, 14, 2))
    assert (np.diff(result.picks) <= 0).all() and problem.minimum < result.picks[-1] <= 0.0 and not result.believed


def test_a_run_picks_by_what_it_observed() -> None:
    problem = PROBLEMS["func3c"]
    plain = run(problem, "func3c", "random", 0, Setting(False, 12, 1))
    assert plain.picks == np.minimum.accumulate(plain.picks).tolist() and len(plain.picks) == 12
    assert plain.believed == {} and plain.duplicates == 0
    wild = run(replace(problem, noise=100.0), "func3c", "random", 0, Setting(True, 12, 1))
    assert wild.picks != np.minimum.accumulate(wild.picks).tolist()


def test_a_run_can_be_repeated_also_with_trials_at_the_same_time() -> None:
    problem, setting = PROBLEMS["hart6m"], Setting(True, 13, 4)
    first, second = (run(problem, "hart6m", "thompson", 1, setting) for _ in range(2))
    assert first.picks == second.picks and first.believed == second.believed != {}
    assert first.picks != run(problem, "hart6m", "thompson", 2, setting).picks


def test_runs_are_stored_and_not_repeated(tmp_path: Path) -> None:
    file, page = tmp_path / "runs.jsonl", tmp_path / "page.html"
    order = ["sampler", "--samplers", "thompson:draw,random", "--problems", "hart6m", "--trials", "11", "--seeds", "2"]
    order += ["--keep", str(file), "--plot", str(page)]
    first = CliRunner().invoke(app, order, catch_exceptions=False).stdout
    text = file.read_text()
    runs = list(stored_results(file, Run.from_json))
    assert len(runs) == 4 and json.dumps(asdict(runs[0])) == text.splitlines()[0]
    assert CliRunner().invoke(app, order, catch_exceptions=False).stdout == first
    assert file.read_text() == text and "hart6m" in page.read_text() and "Plotly.newPlot" in page.read_text()
    assert "hart6m" in first and "thompson:draw" in first and "(believed)" in first and "Mann-Whitney" in first
    assert max(map(len, first.splitlines())) <= 80


def made(name: str, losses: list[float]) -> list[Run]:
    return [Run("func3c", name, k, False, 1, [loss], {}, 0, 0.1) for k, loss in enumerate(losses)]


def test_tables_say_who_is_better() -> None:
    good, bad = np.linspace(0, 1, 20), np.linspace(0.5, 2, 20)
    runs = made("thompson", good.tolist()) + made("tpe", bad.tolist())
    selection = Selection(runs, PROBLEMS, ["func3c"], ["thompson", "tpe"], range(20), Setting(False, 1, 1))
    ours, theirs = tables(selection)[0].rows
    assert theirs["against"] == f"better, p={mannwhitneyu(good + 0.7221, bad + 0.7221).pvalue:.2g}"
    low, middle, high = np.quantile(good + 0.7221, (0.25, 0.5, 0.75))
    assert ours["regret"] == f"{middle:.3g} [{low:.2g}, {high:.2g}]" and ours["against"] == ""
    assert "tpe" in figure(selection)
    assert tables(replace(selection, seeds=()))[0].note == "no runs"
    assert mann_whitney(good, good) == pytest.approx(1, abs=0.01) and mann_whitney(np.ones(3), np.ones(3)) == 1


def test_problems_of_two_objectives_have_no_posterior_mean() -> None:
    runs = [replace(each, believed={1: 0.5}) for each in made("thompson", [0.1, 0.2])]
    runs += [replace(each, problem="zdt1", believed={}) for each in runs]
    selection = Selection(runs, PROBLEMS, ["func3c", "zdt1"], ["thompson"], range(2), Setting(False, 1, 1))
    rows = [(row["problem"], row["sampler"]) for row in tables(selection)[0].rows]
    assert rows == [("func3c", "thompson"), ("func3c", "thompson (believed)"), ("zdt1", "thompson")]


def test_a_run_knows_the_seconds_of_its_evaluations() -> None:
    for workers in (1, 4):
        output = run(TUNING["branches"], "branches", "thompson:costs", 0, Setting(False, 14, workers))
        assert len(output.spent) == 14 and (np.diff(output.spent) > 0).all() and output.spent[-1] <= 14 * 8.0
    assert run(PROBLEMS["func3c"], "func3c", "random", 0, Setting(False, 3, 1)).spent == []
    for problem in TUNING.values():
        trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
        loss, seconds = problem.evaluate(trial)
        assert seconds == trial.user_attrs.get("seconds") and np.isfinite(loss)
        assert (problem.cost is None) if seconds is None else seconds > 0


def test_runs_from_before_seconds_were_stored_are_read() -> None:
    (run,) = made("tpe", [1.0])
    old = {name: value for name, value in asdict(run).items() if name != "spent"}
    assert Run.from_json(old) == run
    selection = Selection([run], PROBLEMS, ["func3c"], ["tpe"], range(1), Setting(False, 1, 1))
    assert seconds_tables(selection) == [] and str(tables(selection)[0].rows[0]["regret"]).startswith("1.72")


def test_regrets_are_compared_at_equal_seconds() -> None:
    def timed(name: str, seconds: float) -> list[Run]:
        spent = [seconds * j for j in (1, 2, 3, 4)]
        return [Run("branches", name, k, False, 1, [4.0, 3.0, 2.0, 1.0], {}, 0, 0.1, spent) for k in range(3)]

    runs = timed("thompson", 1.0) + timed("tpe", 3.0)
    chosen = Selection(runs, TUNING, ["branches"], ["thompson", "tpe"], range(3), Setting(False, 4, 1))
    equal, shares = seconds_tables(chosen)
    # all of them have spent 4 s: the first has ended by then, the second has one trial
    assert [row["seconds"] for row in equal.rows] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    for name, medians in (("tpe", "444"), ("thompson", "431")):
        result = [row["regret"] for row in equal.rows if row["sampler"] == name]
        assert result == [f"{value} [{value}, {value}]" for value in medians]
    assert [row["against"] for row in equal.rows][:2] == ["", "p=1"]
    assert [row["branches"] for row in shares.rows] == [1.0, pytest.approx(1 / 3)]
    assert seconds_tables(replace(chosen, runs=runs[:3], names=["tpe"])) == []


def test_quick_and_overhead() -> None:
    output = CliRunner().invoke(app, ["sampler", "--quick", "--samplers", "random,tpe"], catch_exceptions=False).stdout
    assert "func3c" in output and "hart6m" in output
    assert list(overhead_table(["random"], (5,)).rows[0]) == ["sampler", "n=5"]
    wrong = CliRunner().invoke(app, ["sampler", "--problems", "hart6"], catch_exceptions=False)
    assert wrong.exit_code == 2 and "unknown problem 'hart6'. Did you mean 'hart6m'" in wrong.stderr


@pytest.mark.thorough
def test_ranking_problems_train_rankers(letor_folds: dict[str, Path], tmp_path: Path) -> None:
    for name, folder in letor_folds.items():
        (tmp_path / name).symlink_to(folder)
    reported, tuning = problems(tmp_path)
    assert "api-search" in reported and {"func3c", "hart6m"} < set(reported) and not set(reported) & set(tuning)
    for name in ("mq2008", "ohsumed"):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(reported[name].loss, n_trials=3)
        assert all(0.1 < trial.value < 0.95 for trial in study.trials if trial.value is not None)
