"""Random search beyond the random trials: laws of the simulation, and how close it comes to real random search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.dashboards.analysis import tuning_value
from ranktune.dashboards.analysis.beliefs import observations
from ranktune.dashboards.analysis.tuning_value import (
    MIN_TRIALS,
    Expected,
    best_in_random_orders,
    expected_random_search,
    function_values,
    path_directions,
)
from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.registry import build
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.belief import fit_belief
from tests.support.page_studies import concluded
from tests.support.study_samples import (
    HOSTILE,
    along,
    number,
    raced,
    sampled,
    simulated_metric,
    study_data,
    traces,
    trial,
    trials_of,
)

SOLVERS = ("LambdaRank", "RankSVM")
BUDGET, STARTUP = 30, POLICY.search.startup


def study_of(folder: Path, *splits: Sequence[Trial], trials: int = BUDGET, sampler: str = "thompson") -> StudyData:
    named = [(f"Fold{k}" if len(splits) > 1 else "", split, None) for k, split in enumerate(splits)]
    return study_data(folder, named, solvers=SOLVERS, trials=trials, sampler=sampler)


def known_of(data: StudyData) -> list[Floats]:
    return [tuning_value.random_search(split, len(data.solvers), data.study.sampler) for split in data.splits]


def predicted(data: StudyData, budget: int = BUDGET) -> Expected:
    result = expected_random_search(data, known_of(data), budget)
    assert result is not None
    return result


def panel_of(data: StudyData) -> Panel:
    return next(panel for panel in build("overview", data) if panel.key == "worth")


def optimised(seed: int, level: float = 0.5) -> list[Trial]:
    """Return trials of which the first are random and each later one is the best of many random ones, with noise."""
    generator = np.random.default_rng(seed)
    results = list(trials_of(SOLVERS, STARTUP, seed, level))
    for k in range(STARTUP, BUDGET):
        solver = SOLVERS[k % 2]
        configuration = max(
            (sampled(solver, generator) for _ in range(20)), key=lambda params: simulated_metric(params, generator)
        )
        results.append(trial(k, solver, configuration, simulated_metric(configuration, generator, level)))
    return results


STUDIES: dict[str, Callable[[], Sequence[Trial]]] = {
    "plain": lambda: trials_of(SOLVERS, BUDGET),
    "failing": lambda: trials_of(SOLVERS, BUDGET, failing=3),
    "raced": lambda: raced(trials_of(SOLVERS, BUDGET)),
    "along": lambda: along(along(trials_of(SOLVERS, BUDGET), "C"), "l1"),
    "optimised": lambda: optimised(0),
    "running": lambda: trials_of(SOLVERS, MIN_TRIALS + 2),
}


@pytest.mark.parametrize("name", STUDIES)
def test_it_goes_on_where_the_known_part_ends_and_never_falls(name: str, tmp_path: Path) -> None:
    data = study_of(tmp_path, STUDIES[name]())
    (known,) = known_of(data)
    result = predicted(data)
    last = len(known) - 1
    for curve in (result.mean, result.low, result.high):
        assert len(curve) == BUDGET and np.isnan(curve[:last]).all()
        assert curve[last] == known[-1]
        assert (np.diff(curve[last:]) >= -1e-15).all()
    assert (result.low[last:] <= result.mean[last:] + 1e-15).all()
    assert (result.low[last:] <= result.high[last:]).all()  # the mean may be above both: where few runs find better
    assert result.mean[-1] > known[-1]  # twenty more have a chance


def test_it_is_the_same_every_time_and_changes_with_the_seed(tmp_path: Path) -> None:
    data = study_of(tmp_path, trials_of(SOLVERS, BUDGET))
    first, second = predicted(data), predicted(data)
    other = predicted(replace(data, study=replace(data.study, seed=1)))
    for value, repeated_value in zip(vars(first).values(), vars(second).values(), strict=True):
        np.testing.assert_array_equal(value, repeated_value)
    assert other.mean[-1] != first.mean[-1]
    assert other.mean[-1] == pytest.approx(first.mean[-1], abs=0.2 * (first.high[-1] - first.low[-1]))


def test_a_larger_budget_reaches_more(tmp_path: Path) -> None:
    data = study_of(tmp_path, trials_of(SOLVERS, BUDGET))
    short, long = predicted(data, BUDGET), predicted(data, 5 * BUDGET)
    assert long.mean[-1] > short.mean[-1]
    np.testing.assert_allclose(long.mean[:BUDGET], short.mean, rtol=1e-12)
    assert len(predicted(data, 10**6).mean) == len(known_of(data)[0]) + tuning_value.MAX_TRIALS_AHEAD


def test_folds_are_averaged_from_where_the_first_of_them_is_not_known(tmp_path: Path) -> None:
    high = trials_of(SOLVERS, BUDGET, seed=1, level=0.7)
    missing = [t for t in trials_of(SOLVERS, BUDGET) if t.number not in (6, 7)]  # its blind draws are two fewer
    data = study_of(tmp_path, missing, high)
    series = known_of(data)
    assert [len(known) for known in series] == [8, 10]
    both = predicted(data)
    assert np.isnan(both.mean[:7]).all() and both.mean[7] == pytest.approx((series[0][7] + series[1][7]) / 2)
    alone = [predicted(study_of(tmp_path, t)).mean[-1] for t in (missing, high)]
    assert both.mean[-1] == pytest.approx(np.mean(alone), abs=0.003)
    few = study_of(tmp_path, missing, high[: MIN_TRIALS - 1])
    assert expected_random_search(few, known_of(few), BUDGET) is None


def test_nothing_is_simulated_without_a_surrogate(tmp_path: Path) -> None:
    trials = trials_of(SOLVERS, BUDGET)
    states = {
        "nothing": study_of(tmp_path, ()),
        "no split": study_data(tmp_path, [], solvers=SOLVERS, trials=BUDGET),
        "few": study_of(tmp_path, trials[: MIN_TRIALS - 1]),
        "constant": study_of(tmp_path, [replace(t, value=0.5) for t in trials]),
        "failed": study_of(tmp_path, [replace(t, value=None, error="no") for t in trials]),
        "random": study_of(tmp_path, trials, sampler="random"),
        "others": study_of(tmp_path, [replace(t, solver=HOSTILE[0]) for t in trials]),
    }
    for name, data in states.items():
        assert expected_random_search(data, known_of(data), BUDGET) is None, name
        panel = panel_of(data)
        assert "random search, expected" not in panel.table.columns, name
        assert "simulates" not in panel.note, name
    short = study_of(tmp_path, trials, trials=2)
    assert expected_random_search(short, known_of(short), 2) is None  # the defaults are all there will be


def test_random_orders_have_the_mean_of_the_best_of_draws_without_replacement() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(40, 200))
    runs = best_in_random_orders(values, 40, 0.0, generator)
    assert runs.shape == (tuning_value.ORDERS * 200, 40)
    np.testing.assert_array_equal(runs[:200, -1], values.max(axis=0))
    for m in (1, 5, 20):
        exact = np.mean([tuning_value.expected_best(np.sort(column), m) for column in values.T])
        assert runs[:, m - 1].mean() == pytest.approx(exact, abs=0.06)
    assert best_in_random_orders(values, 20, 1.0, generator)[:, -1].mean() > runs[:, 19].mean() + 0.3  # luck counts


def test_paths_count_with_the_best_on_them(tmp_path: Path) -> None:
    plain = trials_of(SOLVERS, BUDGET)
    walked = along(plain, "C", (0.25, 0.5, 1.0))
    assert path_directions(plain) == {} and path_directions(walked) == {"RankSVM.C": True}
    assert path_directions(along(plain, "C", (4.0, 2.0, 1.0))) == {"RankSVM.C": False}
    seldom = [t if k % 8 == 1 else replace(t, path=(), path_parameter="") for k, t in enumerate(walked)]
    assert path_directions(seldom) == {}
    data = study_of(tmp_path, plain)
    seen = [observation for observation, _ in observations(plain)]
    belief = fit_belief(data.study.union_space(), seen)
    assert belief is not None
    single = function_values(belief, {}, 64, np.random.default_rng(0))
    for rises in (True, False):
        best = function_values(belief, {"RankSVM.C": rises}, 64, np.random.default_rng(0))
        solver = np.random.default_rng(0).random((64, len(belief.encoding.axes)))[:, 0]
        svm = solver >= 0.5
        np.testing.assert_allclose(best[~svm], single[~svm], atol=1e-9)
        assert (best[svm] >= single[svm] - 1e-5).all() and (best[svm] > single[svm] + 1e-5).any()  # single precision


@pytest.mark.thorough
def test_it_predicts_what_random_search_reaches_when_it_is_run(tmp_path: Path) -> None:
    errors, inside, spreads = [], [], []
    for seed in range(20):
        data = study_of(tmp_path, optimised(seed))
        result = predicted(data)
        blind = [t.value for t in data.splits[0].trials[:STARTUP] if t.value is not None]
        values = [t.value for t in trials_of(SOLVERS, 4000, 1000 + seed) if t.value is not None]
        ahead = np.array(values).reshape(-1, BUDGET - STARTUP).max(axis=1)  # 200 real searches of what is left
        reached = np.maximum(max(blind), ahead)
        errors.append(abs(result.mean[-1] - reached.mean()))
        inside.append(np.mean((result.low[-1] <= reached) & (reached <= result.high[-1])))
        spreads.append(np.std(values))
    assert np.mean(errors) < 0.04 * np.mean(spreads)
    assert np.mean(inside) > 0.8  # nominally 0.9


def test_luck_is_no_gain(tmp_path: Path) -> None:
    gains, generator = [], np.random.default_rng(0)
    for seed in range(20):
        trials = trials_of(SOLVERS, BUDGET, seed)
        noise = 0.5 + 0.01 * generator.normal(size=BUDGET)  # whatever is tried
        data = study_of(tmp_path, [replace(t, value=float(v)) for t, v in zip(trials, noise, strict=True)])
        gains.append(noise.max() - predicted(data).mean[-1])
    assert abs(np.mean(gains)) < 0.25 * 0.01


def test_the_panel_says_what_is_predicted_and_what_was_gained(tmp_path: Path) -> None:
    data = study_of(tmp_path, optimised(1))
    panel, prediction = panel_of(data), predicted(data)
    assert panel.table.columns[4:] == ("random search, expected", "expected low", "expected high")
    last = panel.table.rows[-1]
    assert last[0] == BUDGET and last[4] == prediction.mean[-1] and last[5] == prediction.low[-1]
    gain = number(last[1]) - prediction.mean[-1]
    assert (
        f"After {BUDGET} trials random search is expected to reach {prediction.mean[-1]:.4f}" in panel.note
        and "was not run" in panel.note
    )
    assert f"tuning {'gained' if gain >= 0 else 'is'} {abs(gain):.4f}" in panel.note
    names = [trace["name"] for trace in traces(panel)]
    assert {"random search", "random search, expected", "its 90 % band"} <= set(names)


def test_in_brief_nothing_is_simulated_and_the_command_that_does_is_named(tmp_path: Path) -> None:
    data = study_of(tmp_path, optimised(1))
    brief = panel_of(replace(data, brief=True))
    assert "random search, expected" in panel_of(data).table.columns
    assert "random search, expected" not in brief.table.columns and f"`ranktune report {data.name}`" in brief.note


def test_a_study_that_runs_is_compared_where_it_is(tmp_path: Path) -> None:
    data = study_of(tmp_path, trials_of(SOLVERS, 20))
    panel, prediction = panel_of(data), predicted(data)
    assert panel.table.rows[-1][:2] == [BUDGET, None] and panel.table.rows[-1][4] == prediction.mean[-1]
    assert f"after the 20 trials so far {prediction.mean[19]:.4f}" in panel.note
    timed = replace(data, study=replace(data.study, timeout=60.0))
    assert panel_of(timed).table.rows[-1][0] == 20  # nobody knows how many there will be


def test_nothing_is_said_about_random_search_from_a_few_random_trials(tmp_path: Path) -> None:
    few = [replace(t, number=t.number + STARTUP - 6) for t in trials_of(SOLVERS, BUDGET) if t.number >= 2]
    trials = [*trials_of(SOLVERS, 2), *few]  # the defaults, then 4 trials that were drawn at random
    note = panel_of(study_of(tmp_path, [replace(t, number=k if k < 2 else k + 4) for k, t in enumerate(trials)])).note
    assert "drawn at random" not in note and "expected to reach" not in note and "gained" not in note.split(".")[0]
    enough = panel_of(study_of(tmp_path, trials_of(SOLVERS, BUDGET))).note
    assert "of the 8 trials that were drawn at random" in enough


def test_a_finished_study_says_what_tuning_gained_on_test_and_none_where_it_did_not(tmp_path: Path) -> None:
    data = study_of(tmp_path, trials_of(SOLVERS, BUDGET))
    gain = {"default": "RankSVM", "gain": 0.0123, "gain_interval": [-0.001, 0.026], "p_value": 0.07}
    finished = replace(data, result=concluded("s") | {"tuning": gain})
    note = panel_of(finished).note
    assert note.startswith(
        "Gain of tuning on test: +0.0123 (-0.0010 to +0.0260) over the best of the solvers' defaults (RankSVM)."
    )
    none = {"default": "RankSVM", "gain": None, "gain_interval": None, "p_value": None}
    note = panel_of(replace(data, result=concluded("s") | {"tuning": none})).note
    assert note.startswith("Gain of tuning: none, the model is the best of the solvers' defaults (RankSVM).")
