"""A better trial that is not delivered: the progress, the terminal, the report and Python say so alike."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.data.queries import Queries
from tests.support.commands import ended, write_letor
from tests.support.engine_samples import graded
from tests.support.reports import payload_of

SHORT = ("--folds", "2", "--sampler", "random", "--test", "test.txt", "--name", "s", "--seed", "2")


def curved(count: int, seed: int) -> Queries:
    """Queries whose grades fall with the distance of a feature from 0, which linear models cannot learn."""
    X = np.random.default_rng(seed).normal(size=(count * 12, 5))
    return Queries.from_arrays(X, np.digitize(X[:, 1] - X[:, 0] ** 2, [0, 1]), qid=np.repeat(np.arange(count), 12))


def write(queries: Queries, path: str) -> None:
    write_letor(Path(path), queries.features.tolist(), queries.grades, queries.query_of_document)


@pytest.mark.parametrize(
    ("data", "limit", "solvers", "trials", "reason"),
    [
        (curved, "bytes<=200", ("RankSVM", "LambdaMART"), 4, "it does not keep the limits of the study"),
        (partial(graded, noise=1.5), "features<=3", ("GBDTRanker",), 8, "it leads by less than its standard error"),
    ],
    ids=["limit", "margin"],
)
def test_why_the_best_trial_is_not_delivered(
    data: Callable[[int, int], Queries], limit: str, solvers: tuple[str, ...], trials: int, reason: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(data(40, 2), "train.txt")
    write(data(30, 99), "test.txt")
    chosen = [word for solver in solvers for word in ("--solver", solver)]
    assert ended(monkeypatch, "tune", "train.txt", "--within", limit, "--trials", str(trials), *chosen, *SHORT) == 0
    result = ranktune.resume("s")
    best = max(trial.value for trial in result.optuna_study.trials if trial.value is not None)
    assert reason in result.set_aside and f"{best:.4f}, was set aside for the" in result.set_aside
    assert ended(monkeypatch, "show", "s", "--wide") == 0 and result.set_aside in capsys.readouterr().out
    panels = payload_of(Path("ranktune-runs/s/report.html").read_text())["views"][0]["panels"]
    shown = {panel["key"]: str(panel["table"]["rows"]) for panel in panels}
    assert result.set_aside in shown["details"] and "Gain of tuning" in shown["details"]
    assert f"Use {result.best.solver}" in shown["conclusion"]
    limits = {"bytes": result.best.bytes, "features": result.best.nonzeros}
    name, most = limit.split("<=")
    assert (limits[name] or 0) <= float(most)
    if name == "bytes" and result.tuning is not None:
        assert result.tuning.default == "RankSVM", "the default of LambdaMART does not keep the limit"
