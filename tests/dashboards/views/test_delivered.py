"""The delivered model on the Overview: its parameters, commands that run, and the settings that apply."""

import shlex
from pathlib import Path

import numpy as np

import ranktune
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.overview import panels
from tests.support.commands import called, write_letor
from tests.support.engine_samples import graded


def test_what_the_page_says_to_run_runs(tmp_path: Path) -> None:
    known = graded(20, 0, noise=1.5)
    data = write_letor(tmp_path / "data.txt", known.features.tolist(), known.grades, known.query_of_document)
    result = ranktune.tune(str(data), solvers=("RidgeRanker", "RankSVM"), trials=3, home=tmp_path / "h", jobs=1)
    shown = {panel.key: panel for panel in panels(open_study(Path(result.folder)))}
    model = {str(row[0]): row[1] for row in shown["model"].table.rows}
    assert model["solver"] == result.best.solver
    facts = {str(row[0]): row[1] for row in shown["data"].table.rows}
    assert facts["features"] == 5 and facts["queries"] == 16 and facts["test queries"] == 4
    use = {str(row[0]): str(row[1]) for row in shown["use"].table.rows}
    for what in ("score documents", "compare it with the ranking of today", "explain an order", "see the formats"):
        words = shlex.split(use[what].replace("DATA", str(data)).replace("QUERY", "3").replace("NAME", "1"))
        done = called(*words[1:])
        assert done.exit_code == 0, (words, done.output)
    assert len(eval(use["score documents in Python"], {"ranktune": ranktune, "X": np.zeros((2, 5))})) == 2
    settings = {str(row[0]) for row in shown["settings"].table.rows}
    assert "solvers" in settings and not settings & {"outer", "permutations"}
