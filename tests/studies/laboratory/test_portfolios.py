"""The portfolios of the solvers: what the table adds to them, and the file that studies read."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from ranktune.studies.benchmarks.task_table.rows import Checkpoint, Row
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.analysis import by_task
from ranktune.studies.laboratory.configurations import configurations, name_of
from ranktune.studies.laboratory.portfolios import Addition, addition, changed, taken, written
from ranktune.tuner.study.declaration import Study
from tests.studies.laboratory.test_guard import TABLE

GENERATOR = np.random.default_rng(0)
SHIPPED = files("ranktune.tuner.samplers").joinpath("portfolio.json")


def test_a_portfolio_gets_what_helps_on_forms_that_were_left_out() -> None:
    every = configurations(("RankSVM", "ListNet"), 3)
    extra = {solver: next(e for e in reversed(every) if e["solver"] == solver) for solver in ("RankSVM", "ListNet")}
    rows = []
    for seed in (*range(12), *range(36, 48)):
        for params in every:
            values = 0.5 + 0.01 * GENERATOR.random(40)
            # The last of RankSVM is better on every task, that of ListNet on the tasks of one form alone.
            if params in extra.values():
                values = values + (0.1 if params == extra["RankSVM"] or seed % 12 == 0 else -0.1)
            points = (Checkpoint(1.0, 0.1, float(values.mean()), float(values.mean())),)
            rows.append(Row(f"drawn-{seed}", name_of(params), 1.0, points, values, values))
    table = by_task(rows)
    learn, confirm = ([f"drawn-{seed}" for seed in seeds] for seeds in (range(12), range(36, 48)))
    known = [addition(table, solver, every, learn, confirm) for solver in ("RankSVM", "ListNet")]
    svm, net = known
    assert svm is not None and net is not None
    assert svm.params == extra["RankSVM"] and svm.helps
    np.testing.assert_allclose([svm.learn.mean(), svm.left_out.mean(), svm.confirm.mean()], 0.1, atol=0.01)
    assert net.params == extra["ListNet"] and net.learn.max() > 0.09 and net.left_out.max() < 0.01
    text = json.loads(written([svm], "made by"))
    assert text["portfolios"]["RankSVM"] == [{}, changed(svm.params)]
    space = Study(solvers=["RankSVM"]).union_space()
    assert space.configuration("RankSVM", changed(svm.params)) == svm.params
    assert addition(table, "RidgeRanker", every, learn, confirm) is None


def test_what_takes_too_long_is_not_added() -> None:
    gains_of = np.array([0.01, 0.02])
    cheap, dear = (Addition({"solver": "ListNet"}, gains_of, gains_of, gains_of, s, 1.0) for s in (0.1, 0.4))
    assert taken([dear, cheap]) == [cheap]
    assert taken([replace(dear, left_out=-gains_of), cheap]) == [cheap]


def test_the_portfolios_of_studies_are_those_that_the_table_gives(tmp_path: Path) -> None:
    output = tmp_path / "portfolio.json"
    result = CliRunner().invoke(app, ["portfolio", "--keep", str(TABLE), "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert json.loads(output.read_text())["portfolios"] == json.loads(SHIPPED.read_text())["portfolios"]
