"""Parallel coordinates: each trial once, at the places of its values, interrupted where a parameter does not apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ranktune.dashboards.analysis.coordinates import MAX_PARAMETERS, panel
from ranktune.dashboards.analysis.solver_trials import solvers_of
from tests.support.study_samples import study_data, traces, trials_of


def lines(traces: list[dict[str, Any]], axes: int) -> dict[str, list[float | None]]:
    """The heights of each line by its text."""
    results = {}
    for trace in traces:
        for start in range(0, len(trace["x"]), axes + 1):
            part = slice(start, start + axes)
            assert trace["x"][part] == list(range(axes)) and trace["x"][start + axes] is None
            assert len(set(trace["text"][part])) == 1
            results[trace["text"][start]] = trace["y"][part]
    return results


@pytest.mark.parametrize("solver", ["RankSVM", "ElasticRank", "LambdaMART"])
def test_a_line_passes_each_axis_at_the_value_of_the_trial(solver: str, tmp_path: Path) -> None:
    trials = trials_of([solver], 23)
    (solver_trials,) = solvers_of(study_data(tmp_path, [("", trials, None)], solvers=[solver]))
    names = solver_trials.ranked[:MAX_PARAMETERS]
    shown = panel(solver_trials, 0)
    drawn = lines(traces(shown), len(names) + 1)
    assert len(drawn) == 23
    heights = {trial.number: next(y for text, y in drawn.items() if text.startswith(f"trial {trial.number}:"))
               for trial in trials}  # fmt: skip
    assert all(y is None or 0.0 <= y <= 1.0 for line in heights.values() for y in line)
    for k, name in enumerate(names):
        having = [trial for trial in trials if name in trial.params]
        assert {trial.number for trial in having} == {n for n, line in heights.items() if line[k] is not None}
        if not solver_trials.is_choice(name):
            by_value = sorted(having, key=lambda trial: float(str(trial.params[name])))
            own_heights = [float(str(heights[trial.number][k])) for trial in by_value]
            assert own_heights == sorted(own_heights)
    best = max(trials, key=lambda trial: trial.value or 0.0)
    assert heights[best.number][-1] == 1.0
    assert shown.table.rows[0][0] == best.number
    assert f"trial {best.number}:" in traces(shown)[-1]["text"][-1]  # the best are drawn last


def test_equal_values_are_in_the_middle(tmp_path: Path) -> None:
    from dataclasses import replace

    trials = tuple(replace(trial, value=0.5) for trial in trials_of(["RankSVM"], 4))
    (solver_trials,) = solvers_of(study_data(tmp_path, [("", trials, None)], solvers=["RankSVM"]))
    shown = panel(solver_trials, 0)
    drawn = lines(traces(shown), len(solver_trials.ranked[:MAX_PARAMETERS]) + 1)
    assert [line[-1] for line in drawn.values()] == [0.5] * 4
