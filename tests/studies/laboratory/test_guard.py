"""Rules of a study are no worse than stored, on the tasks of the table that confirm."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.names import STANDARD
from ranktune.studies.benchmarks.results import BenchmarkResult
from ranktune.studies.laboratory.simulating import (
    CONFIRM,
    SimulationPlan,
    known_tasks,
    simulated,
    task_means,
    worst_decile,
)
from ranktune.studies.laboratory.suggestions import DecisionRules
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "benchmarks" / "results"
TABLE, STORED = FOLDER / "tasks.npz", FOLDER / "laboratory" / "simulation.json"
SECONDS, SEEDS = 60.0, range(4)
RESAMPLES, ERRORS = 1000, 2.0
"""Bootstrap samples of tasks, and the standard errors of a difference above which it is worse."""

FIGURES: Mapping[str, Callable[[Floats], float]] = {
    "mean regret": lambda values: float(values.mean()),
    "worst decile": worst_decile,
    "share harmed": lambda values: float(values.mean()),
}


def worse(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> list[str]:
    """The figures that became worse by more than the noise of the tasks; values by task, in the same order."""
    generator = np.random.default_rng(0)
    result = []
    for name, figure in FIGURES.items():
        old, new = before[name], after[name]
        samples = generator.integers(len(old), size=(RESAMPLES, len(old)))
        noise = np.std([figure(new[places]) - figure(old[places]) for places in samples])
        difference = figure(new) - figure(old)
        if difference > ERRORS * noise + 1e-5:
            result.append(f"{name}: {figure(old):.4f} became {figure(new):.4f}, noise {noise:.4f}")
    return result


def by_figure(regret: Mapping[str, float], harmed: Mapping[str, float]) -> dict[str, Floats]:
    values = np.array([regret[task] for task in sorted(regret)])
    return {
        "mean regret": values,
        "worst decile": values,
        "share harmed": np.array([harmed[task] for task in sorted(harmed)]),
    }


def stored_figures(path: Path) -> dict[str, Floats]:
    rows = BenchmarkResult.read(path).tables[-1].rows
    regret, harmed = ({str(row["task"]): float(str(row[name])) for row in rows} for name in ("regret", "harmed"))
    return by_figure(regret, harmed)


def test_what_is_worse_is_told_from_noise() -> None:
    generator = np.random.default_rng(1)
    regret, harmed = generator.exponential(0.01, 36), generator.binomial(6, 0.05, 36) / 6.0
    before = {"mean regret": regret, "worst decile": regret, "share harmed": harmed}
    shifted = np.where(np.arange(36) % 2, regret + 0.004, regret - 0.0005)
    assert worse(before, before) == []
    assert worse(before, before | {"mean regret": generator.permutation(regret)}) == []
    assert [text.partition(":")[0] for text in worse(before, before | {"mean regret": shifted})] == ["mean regret"]
    assert worse(before, before | {"worst decile": regret * 1.5})[0].startswith("worst decile")
    assert worse(before, before | {"share harmed": np.minimum(harmed + 0.2, 1.0)})[0].startswith("share harmed")
    assert worse(before | {"mean regret": shifted}, before) == []


@pytest.mark.thorough
def test_studies_are_no_worse_than_stored() -> None:
    """The file of the stored figures has the command that makes them."""
    tasks = known_tasks(TABLE, CONFIRM, STANDARD)
    (studies,) = simulated(tasks, SimulationPlan([SECONDS], SEEDS), [DecisionRules()])
    assert len(studies) == len(tasks) * len(SEEDS)
    after = by_figure(task_means(studies, "regret"), task_means(studies, "is_harmed"))
    assert worse(stored_figures(STORED), after) == []
