"""Studies made by hand for tests of views: trials with known answers, evidence and models, without running anything."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.dashboards.figures.panels import Cell, Panel
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Choice, Float, Int, Value, is_active
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import solver_class
from ranktune.tuner.selection.evidence import Evidence, QueryDocuments
from ranktune.tuner.selection.results import Result, SplitResult
from ranktune.tuner.selection.rows import LeaderboardRow
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.study.declaration import Study

PAIR = ("LambdaRank", "RankSVM")
"""The solvers where none are named."""
HOSTILE = (
    "<script>alert(1)</script>",
    "<b>bold</b> & <a href='javascript:alert(1)'>x</a>",
    "'\"; DROP TABLE trials; --",
    "long " * 2000,
    "\u202eright to left\u2066",
    "two\nlines\tand\x00nul",
    "%{x} $\\alpha$ &lt;i&gt;",
    "",
)


def number(cell: Cell) -> float:
    """Return what a cell of a table holds, which must be a number."""
    assert isinstance(cell, int | float) and not isinstance(cell, bool), f"{cell!r} is not a number"
    return float(cell)


def numbers(cells: Iterable[Cell]) -> Floats:
    """Return the cells of a row or a column, each of which must be a number."""
    return np.array([number(cell) for cell in cells], dtype=np.float64)


def figure_of(panel: Panel) -> dict[str, Any]:
    """Return the figure of a panel, which must have one."""
    assert panel.figure is not None, panel.key
    return panel.figure


def traces(panel: Panel) -> list[dict[str, Any]]:
    """Return what is drawn in the figure of a panel."""
    return list(figure_of(panel)["data"])


def keyed(panels: Iterable[Panel], key: str) -> Panel:
    """Return the panel of this key."""
    (found,) = [panel for panel in panels if panel.key == key]
    return found


def named(panels: Iterable[Panel], start: str) -> list[Panel]:
    """Return the panels whose keys begin so."""
    return [panel for panel in panels if panel.key.startswith(start)]


def sampled(solver: str, generator: np.random.Generator) -> dict[str, Value]:
    """Return a random configuration of a solver, active parameters only."""
    params: dict[str, Value] = {}
    for parameter in solver_class(solver).space:
        if not is_active(parameter, params):
            continue
        match parameter:
            case Choice():
                params[parameter.name] = parameter.choices[int(generator.integers(len(parameter.choices)))]
            case Int():
                params[parameter.name] = int(generator.integers(parameter.low, parameter.high + 1))
            case Float(log=True):
                params[parameter.name] = float(np.exp(generator.uniform(np.log(parameter.low), np.log(parameter.high))))
            case Float():
                params[parameter.name] = float(generator.uniform(parameter.low, parameter.high))
    return params


def trial(number: int, solver: str, params: dict[str, Value], value: float | None, **more: Any) -> Trial:
    """Return a finished trial; failed where value is None."""
    fields: dict[str, Any] = {
        "error_of_mean": None if value is None else 0.02,
        "means": {} if value is None else {"ndcg@10": value},
        "seconds": 0.5 + 0.01 * number,
        "nonzeros": None if value is None else float(1 + number % 46),
        "microseconds": None if value is None else 0.1 + 0.01 * (number % 17),
        "bytes": None if value is None else float(12 * (1 + number % 46)),
        "begun": 1.7e9 + number,
        "ended": 1.7e9 + number + 0.5,
        "worker": "1",
        "restarts": 0,
        "error": "it did not converge" if value is None else None,
        "warnings": (),
    }
    return Trial(number=number, solver=solver, params=params, value=value, **(fields | more))


def simulated_metric(params: dict[str, Value], generator: np.random.Generator, level: float = 0.5) -> float:
    """Return a value that depends on a strength (l1, else C, else alpha) alone, with a little noise."""
    strength = next((params[name] for name in ("l1", "C", "alpha") if name in params), 1.0)
    return level - 0.01 * (math.log10(number(strength)) + 3.0) ** 2 + float(generator.normal(scale=0.002))


def trials_of(
    count: int, solvers: Sequence[str] = PAIR, *, seed: int = 0, level: float = 0.5, failing: int = 0
) -> tuple[Trial, ...]:
    """Return count random trials of the solvers in turn; every failing-th fails (0: none does)."""
    generator = np.random.default_rng(seed)
    results = []
    for number in range(count):
        solver = solvers[number % len(solvers)]
        params = sampled(solver, generator)
        fails = failing > 0 and number % failing == failing - 1
        results.append(trial(number, solver, params, None if fails else simulated_metric(params, generator, level)))
    return tuple(results)


def raced(trials: Sequence[Trial], every: int = 3) -> tuple[Trial, ...]:
    """Return trials of which every so manyth was stopped early, unless it is the first of its solver.

    The estimate of each is above all complete values: none of them may ever be the best.
    """
    highest = max((t.value for t in trials if t.value is not None), default=0.0)
    begun: set[str] = set()
    results = []
    for k, trial in enumerate(trials):
        stops = trial.value is not None and trial.solver in begun and k % every == every - 1
        if trial.value is not None:
            begun.add(trial.solver)
        part = k % 4 + 1
        more: dict[str, Any] = {"stopped": f"fold {part} of 5", "error_of_estimate": 0.004, "parts": (0.4,) * part}
        results.append(replace(trial, value=highest + 0.1, **more) if stops else trial)
    return tuple(results)


def along(trials: Sequence[Trial], name: str, factors: Sequence[float] = (0.25, 0.5, 1.0, 2.0)) -> tuple[Trial, ...]:
    """Return trials that went along a parameter, where they have it: the values are its multiples, 1.0 the best."""
    results = []
    for trial in trials:
        at = trial.params.get(name)
        if trial.value is None or not isinstance(at, float):
            results.append(trial)
            continue
        path = tuple((at * f, trial.value - 0.01 * abs(math.log2(f))) for f in factors)
        results.append(replace(trial, path_parameter=name, path=path))
    return tuple(results)


def evidence_of(labels: Sequence[str] = PAIR, n_queries: int = 40, seed: int = 0, metric: str = "ndcg@10") -> Evidence:
    """Return per-query values of models that get worse by label, three queries closely, one that the metric skips."""
    generator = np.random.default_rng(seed)
    common = generator.beta(2, 2, n_queries)
    values = np.stack(
        [np.clip(common - 0.03 * k + generator.normal(0, 0.1, n_queries), 0, 1) for k in range(len(labels))]
    )
    values[:, ::7] = values[0, ::7]  # ties
    values[:, 3] = np.nan
    closely = []
    for q in (1, 2, 5):
        n = 4 + q
        scores = {label: tuple(generator.normal(size=n).tolist()) for label in labels}
        documents = tuple(f"document {i}" for i in range(n))
        closely.append(QueryDocuments(f"q{q}", documents, tuple(float(g) for g in generator.integers(0, 3, n)), scores))
    queries = tuple(f"q{q}" for q in range(n_queries))
    return Evidence("test", tuple(labels), ("",) * len(labels), queries, {metric: values}, tuple(closely))


def linear_model(
    path: Path, weights: Sequence[float], names: Sequence[str] | None = None, solver: str = "RankSVM"
) -> Path:
    """Write a linear model and return its path."""
    model = LinearModel(np.array(weights, dtype=float), solver, feature_names=None if names is None else tuple(names))
    model.save(path)
    return path


def study_data(
    trials: Sequence[Trial] = (),
    /,
    evidence: Evidence | None = None,
    *,
    models: dict[str, Path] | None = None,
    **more: Any,
) -> StudyData:
    """Return a study of one split, which has no name; models: label -> file."""
    files = {("", label): file for label, file in (models or {}).items()}
    return study_of_splits([("", trials, evidence)], models=files, **more)


def study_of_splits(
    splits: Sequence[tuple[str, Sequence[Trial], Evidence | None]],
    *,
    solvers: Sequence[str] = PAIR,
    result: Result | None = None,
    models: dict[tuple[str, str], Path] | None = None,
    folder: Path = Path("nowhere"),
    **fields: Any,
) -> StudyData:
    """Return a study of splits (name, trials, evidence); models: (split, label) -> file."""
    study = Study(name="sample", data="somewhere", solvers=tuple(solvers), **fields)
    results = tuple(
        SplitData(
            name,
            folder / name,
            tuple(replace(trial, split=name) if name else trial for trial in trials),
            evidence,
            {label: file for (split, label), file in (models or {}).items() if split == name},
        )
        for name, trials, evidence in splits
    )
    return StudyData(folder, study, results, result)


def row_of(label: str, k: int = 0, value: float = 0.5, **changes: Any) -> LeaderboardRow:
    """Return row k of a leaderboard, the chosen one first."""
    mean = value - 0.01 * k
    row = LeaderboardRow(
        solver=label, params={}, vali=Interval(mean, value - 0.05, value + 0.05), again=None,
        test=Interval(mean, value - 0.06, value + 0.06),
        difference=Interval(-0.01 * k, -0.01 * k - 0.02, 0.02) if k else None, p_value=0.04 * k if k else None,
        p_holm=0.08 * k if k else None, against=None, verdict="not told apart" if k else "chosen",
        nonzeros=10.0 + 3 * k, bytes=120.0 + 36 * k, microseconds=0.2 + k, seconds=1.0 + k, trials=10,
    )  # fmt: skip
    return replace(row, **changes)


def concluded(
    name: str = "sample", labels: Sequence[str] = PAIR, splits: Sequence[str] = ("",), value: float = 0.5, **more: Any
) -> Result:
    """Return the result of a study whose leaderboard has these labels, the chosen first."""
    rows = tuple(row_of(label, k, value) for k, label in enumerate(labels))
    split: dict[str, Any] = {
        "leaderboard": rows, "estimate": Interval(0.48, 0.43, 0.53), "expected_on_test": None,
        "test_metrics": {"ndcg@10": value}, "trials": 20, "failures": (), "model": f"{name}/model.json",
    }  # fmt: skip
    folds = tuple(SplitResult(name=each, **split) for each in splits) if len(splits) > 1 else ()
    about: dict[str, Any] = {
        "study": name,
        "data": "somewhere",
        "metric": "ndcg@10",
        "seconds": 12.5,
        "folder": name,
        "folds": folds,
    }
    return Result(**{**about, **split, **more})


def conditions() -> dict[str, StudyData]:
    """Return a study in each state that a view must survive, by what it is."""
    trials = trials_of(40, failing=9)
    five = [(f"Fold{k}", trials_of(24, seed=k, level=0.4 + 0.03 * k), evidence_of(PAIR, 30, k)) for k in range(1, 6)]
    return {
        "nothing": study_data(),
        "no split": study_of_splits([]),
        "one": study_data(trials[:1], trials=30),
        "failures": study_data([trial(k, PAIR[0], {}, None) for k in range(5)]),
        "raced": study_data(along(along(raced(trials), "C"), "l1")),
        "running": study_data(trials),
        "finished": study_data(trials, evidence_of(), result=concluded()),
        "folds": study_of_splits(five, result=concluded()),
        "one fold of five": study_of_splits([five[0], *((name, (), None) for name, _, _ in five[1:])]),
    }
