"""The optimiser's view: allocation, belief along parameters, noise."""

import numpy as np
import pytest

from ranktune.dashboards.views.optimiser import DRAWS, panels
from ranktune.tuner.gp.proposal import ACQUISITIONS
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.belief import Observation, fit_belief
from tests.support.study_samples import named, number, numbers, study_data, traces, trials_of


@pytest.mark.parametrize("count", [1, 7, 40, 777])
def test_every_trial_is_counted_once_where_it_went(count: int) -> None:
    trials = trials_of(count, failing=5)
    table = panels(study_data(trials, sampler="random"))[0].table
    for solver in {trial.solver for trial in trials}:
        often = [row[2] for row in table.rows if row[0] == solver]
        assert sum(often) == sum(t.solver == solver for t in trials)
    assert len(set(table["Trials"])) <= 20


def test_slices_are_what_the_surrogate_predicts() -> None:
    trials = trials_of(40)
    data = study_data(trials)
    shown = panels(data)
    best = max(trials, key=lambda t: t.value or 0.0)
    slices = named(shown, "belief")
    assert {panel.table.columns[0] for panel in slices} == set(best.params)

    belief = fit_belief(
        data.study.union_space(), [Observation(t.flat_params, t.value, (t.error_of_mean or 0.0) ** 2) for t in trials]
    )
    assert belief is not None
    for panel in slices:
        name = f"{best.solver}.{panel.table.columns[0]}"
        predicted = belief.slice(best.flat_params, name, DRAWS, data.study.seed)
        np.testing.assert_allclose(numbers(row[1] for row in panel.table.rows), predicted.mean, rtol=1e-5)
        half = [(number(row[3]) - number(row[2])) / 2 for row in panel.table.rows]
        np.testing.assert_allclose(half, 1.96 * predicted.sd, atol=2e-6)
        means = next(trace for trace in traces(panel) if trace["name"] == "Mean")
        assert means["y"] == [row[1] for row in panel.table.rows]
        assert len([trace for trace in traces(panel) if trace["name"].startswith("Draw")]) == DRAWS
        star = next(trace for trace in traces(panel) if trace["name"] == "best trial")
        assert star["y"] == [pytest.approx(best.value, rel=1e-5)]


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_notes_say_what_a_suggestion_maximises(acquisition: str) -> None:
    data = study_data(trials_of(12), acquisition=acquisition)
    notes = " ".join(panel.note for panel in named(panels(data), "belief"))
    assert ("one function sampled" in notes) == (acquisition == "thompson")
    assert ("expected improvement" in notes) == (acquisition in ("ei", "mixed"))
    assert ("expected cost" in notes) == (acquisition != "thompson")


def test_noise_compares_each_trial_with_what_the_others_say() -> None:
    trials = trials_of(30, failing=10)
    result = panels(study_data(trials))
    shown = named(result, "noise")[0]
    assert [row[0] for row in shown.table.rows] == [t.number + 1 for t in trials if t.value is not None]
    for row in shown.table.rows:
        assert number(row[5]) == pytest.approx(number(row[2]) - number(row[3]), abs=2e-6)
    assert sum(len(trace["x"]) for trace in traces(shown)) == len(shown.table.rows)


def test_samplers_without_a_surrogate_say_so() -> None:
    shown = panels(study_data(trials_of(30), sampler="tpe"))
    assert len(shown) == 2
    assert "tpe" in shown[1].note
    assert shown[1].figure is None
    few, enough = (panels(study_data(trials_of(count)))[1] for count in (POLICY.search.startup - 1, 12))
    assert "too few for a surrogate model" in few.note and few.figure is None and enough.figure is not None
