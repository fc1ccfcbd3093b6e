from dataclasses import replace

import numpy as np
import optuna
import pytest
from scipy.stats import mannwhitneyu
from typer.testing import CliRunner

from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.search.problems import PROBLEMS
from ranktune.studies.benchmarks.search.programs import FRONTS, hypervolume
from ranktune.studies.benchmarks.search.regret import ProblemSetting, SearchRun, Selection, table
from ranktune.studies.benchmarks.search.samplers import run


def test_minima_of_the_synthetic_problems() -> None:
    best = {"x0": 0.2017, "x1": 10 ** (4 * (0.15 - 1)), "x2": 0.4769, "x3": 0.2753, "c1": "r", "c2": "p"}
    value = PROBLEMS["hart6m"].loss(optuna.trial.FixedTrial(best))  # type: ignore[arg-type]
    assert PROBLEMS["hart6m"].minimum == pytest.approx(-3.0391) and -3.0391 < value < -2.9
    camel = {"x1": 0.0898, "x2": -0.7126, "h1": "b", "h2": "b", "h3": "a"}
    value = PROBLEMS["func3c"].loss(optuna.trial.FixedTrial(camel))  # type: ignore[arg-type]
    assert value == pytest.approx(-0.7221, abs=1e-4)  # 7 / 10 of the camel's -1.0316


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
    steps = {f"x{j}": (step + 0.5) / 6 for j, step in enumerate((1, 4, 2, 5, 3))}
    for problem, params in (
        (PROBLEMS["layers"], network),
        (PROBLEMS["stairs"], steps),
        (PROBLEMS["levy20"], {f"x{j}": 1.0 for j in range(20)}),
    ):
        assert problem.loss(optuna.trial.FixedTrial(params)) == pytest.approx(problem.minimum, abs=1e-12)  # type: ignore[arg-type]


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
    result = run(problem, name, "thompson", 0, ProblemSetting(14, 2))
    assert (np.diff(result.picks) <= 0).all() and problem.minimum < result.picks[-1] <= 0.0


def made(name: str, losses: list[float]) -> list[SearchRun]:
    return [SearchRun("func3c", name, k, 1, [loss]) for k, loss in enumerate(losses)]


def test_tables_say_who_is_better() -> None:
    good, bad = np.linspace(0, 1, 20), np.linspace(0.5, 2, 20)
    runs = made("thompson", good.tolist()) + made("tpe", bad.tolist()) + made("equal", good.tolist())
    names = ["thompson", "tpe", "equal"]
    chosen = Selection({run.key: run for run in runs}, PROBLEMS, ["func3c"], names, range(20), ProblemSetting(1, 1))
    ours, theirs, equal = table(chosen).rows
    assert theirs["against"] == f"better, p={mannwhitneyu(good + 0.7221, bad + 0.7221).pvalue:.2g}"
    low, middle, high = np.quantile(good + 0.7221, (0.25, 0.5, 0.75))
    assert ours["regret"] == f"{middle:.3g} [{low:.2g}, {high:.2g}]" and ours["against"] == ""
    assert equal["against"] == "p=1" and table(replace(chosen, seeds=())).note == "no runs"


def test_a_wrong_name_is_explained() -> None:
    wrong = CliRunner().invoke(app, ["sampler", "--problems", "hart6"], catch_exceptions=False)
    assert wrong.exit_code == 2 and "unknown problem 'hart6'. Did you mean 'hart6m'" in wrong.stderr
