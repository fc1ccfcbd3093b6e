from itertools import pairwise
from typing import Literal

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from ranktune.solvers.core.space import Choice, Float, When
from ranktune.tuner.gp.proposal import ObservedTrials
from ranktune.tuner.samplers.history import TrialHistory, read, seen_distributions
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.spaces import active

X = {"x": FloatDistribution(0.0, 1.0)}


def add(
    study: optuna.Study, x: float, value: float | None, state: TrialState = TrialState.COMPLETE, **more: object
) -> None:
    study.add_trial(create_trial(state=state, value=value, params={"x": x}, distributions=X, **more))  # type: ignore[arg-type]


def now(study: optuna.Study) -> FrozenTrial:
    number = study.ask().number
    return study.trials[number]


def history(study: optuna.Study, space: dict[str, BaseDistribution] | None = None) -> TrialHistory:
    return read(study, now(study), X if space is None else space)


def test_infinite_values_count_as_the_worst_and_best_finite_ones() -> None:
    study = optuna.create_study(direction="minimize")
    for value in (float("inf"), 1.0, 2.0, float("-inf")):
        add(study, 0.5, value)
    assert history(study).trials.gains.tolist() == [-2.0, -1.0, -2.0, -1.0]


def test_only_infinite_values_are_as_good_as_none() -> None:
    study = optuna.create_study()
    add(study, 0.5, float("inf"))
    assert history(study).completed == 0


@pytest.mark.parametrize(("reported", "expected"), [(0.5, 0.5), (99.0, 3.0), (float("nan"), None), (None, None)])
def test_a_pruned_trial_counts_with_its_last_report_but_no_better_than_the_median(
    reported: float | None, expected: float | None
) -> None:
    study = optuna.create_study(direction="maximize")
    for value in (1.0, 3.0, 5.0):
        add(study, 0.2, value)
    steps = {} if reported is None else {0: 7.0, 4: reported}
    add(study, 0.9, None, TrialState.PRUNED, intermediate_values=steps)
    assert history(study).trials.gains[3:].tolist() == ([] if expected is None else [expected])


def test_variances_are_relative_to_about_their_median() -> None:
    study = optuna.create_study()
    for variance in (0.01, 0.02, 0.08, 1e9, 0.0, "?", None):
        add(study, 0.5, 1.0, user_attrs={} if variance is None else {"variance": variance})
    # the median of those given is (0.02 + 0.08) / 2, next to 1 / 16
    assert history(study).trials.noise.tolist() == pytest.approx([0.16, 0.32, 1.28, 100.0, 1.0, 1.0, 1.0])


def test_variances_of_trials_stay_while_others_are_added() -> None:
    """The hyperparameters are fitted again only where a trial that they were fitted to is another."""
    study, generator = optuna.create_study(), np.random.default_rng(0)
    seen = []
    for _ in range(40):
        add(study, generator.random(), 1.0, user_attrs={"variance": generator.uniform(0.02, 0.04)})
        seen.append(history(study).trials.noise.tolist())
    assert sum(after[:-1] != before for before, after in pairwise(seen)) <= 2


def test_running_trials_are_pending_with_what_they_asked_for_and_what_was_suggested_to_them() -> None:
    study = optuna.create_study()
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    study.add_trial(create_trial(value=0.0, params={"x": 0.5, "y": 0.5}, distributions=space))
    study.ask(space)
    study.ask({"x": space["x"]})
    seen = history(study, space)
    assert np.isnan(seen.trials.pending).tolist() == [[False, False], [False, True]] and seen.running == {1, 2}
    suggested = read(study, now(study), space, suggested={0: {"x": 9.0}, 2: {"y": 0.25}, 3: {"x": 0.5, "y": 0.75}})
    assert suggested.trials.pending[1:, 1].tolist() == [0.25, 0.75] and suggested.trials.rows.tolist() == [[0.5, 0.5]]


def test_the_current_trial_is_not_in_its_history() -> None:
    study = optuna.create_study()
    trial = study.ask(dict(X))
    assert len(read(study, study.trials[trial.number], X).tried) == 0


def test_ranges_that_changed_take_the_latest_and_keep_what_was_seen() -> None:
    study = optuna.create_study()
    add(study, 0.9, 1.0)
    wider = FloatDistribution(0.0, 3.0)
    study.add_trial(create_trial(value=2.0, params={"x": 1.5}, distributions={"x": wider}))
    assert seen_distributions(study.trials) == {"x": wider}
    np.testing.assert_allclose(history(study, {"x": wider}).trials.rows[:, 0], [0.3, 0.5])
    narrow = FloatDistribution(0.0, 1.0)
    np.testing.assert_allclose(history(study, {"x": narrow}).trials.rows[:, 0], [0.9, 1.5])


def test_params_are_of_the_types_that_optuna_wants() -> None:
    space: dict[str, BaseDistribution] = {
        "f": FloatDistribution(0, 1), "i": IntDistribution(1, 9), "c": CategoricalDistribution((None, True, 2.5, "a")),
    }  # fmt: skip
    seen = history(optuna.create_study(), space)
    rows = seen.encoding.from_unit(np.random.default_rng(0).random((40, 3)))
    for row in rows:
        params = seen.params(row)
        assert type(params["f"]) is float and type(params["i"]) is int
        assert params["c"] in (None, True, 2.5, "a")
        assert seen.encoding.axes[0].encode(np.array([params["f"]]))[0] == pytest.approx(row[0])
    assert {type(seen.params(row)["c"]) for row in rows} == {type(None), bool, float, str}


def test_declared_conditions_say_what_is_active() -> None:
    space = UnionSpace(
        {
            "A": (Choice("p", ("l1", "l2"), "l2"), Float("r", 0, 1, 0.5, when=When("p", ("l1",)))),
            "B": (Float("C", 0.1, 10, 1.0, log=True),),
        }
    )
    study = optuna.create_study()
    declared = read(study, now(study), space.distributions, space)
    for row in declared.encoding.masked(declared.encoding.from_unit(np.random.default_rng(0).random((50, 4)))):
        assert list(declared.params(row)) == active(space, declared.params(row))


def test_noise_is_relative_to_that_of_most_trials() -> None:
    study = optuna.create_study()
    for k, variance in enumerate([4.0, 4.0, 4.0, 8.0]):
        add(study, k / 10, float(k), user_attrs={"variance": variance})
    assert history(study).trials.noise.tolist() == [1.0, 1.0, 1.0, 2.0]


def test_an_estimate_that_tells_how_sure_it_is_counts_as_it_is() -> None:
    def history_with(direction: Literal["minimize", "maximize"], sign: float, attrs: dict[str, object]) -> TrialHistory:
        study = optuna.create_study(direction=direction)
        for k, value in enumerate((1.0, 3.0, 5.0)):
            add(study, k / 10, sign * value)
        steps = {0: 0.0, 3: sign * 9.0}
        add(study, 0.9, None, TrialState.PRUNED, intermediate_values=steps, user_attrs=attrs)
        add(study, 0.8, None, TrialState.FAIL)
        return history(study)

    for direction, sign in (("maximize", 1.0), ("minimize", -1.0)):
        sure = history_with(direction, sign, {"partial_variance": 0.25})  # type: ignore[arg-type]
        assert sure.trials.gains.tolist() == [1.0, 3.0, 5.0, 9.0, 1.0]
        assert sure.trials.noise.tolist() == [1.0, 1.0, 1.0, 1.0, 4.0]
        assert np.asarray(sure.trials.extra).tolist() == [0.0, 0.0, 0.0, 0.25, 0.0]
        assert (sure.completed, sure.informed, len(sure.tried)) == (3, 4, 5)
    for nonsense in ({}, {"partial_variance": -1.0}, {"partial_variance": "much"}, {"partial_variance": float("nan")}):
        unsure = history_with("maximize", 1.0, nonsense)  # type: ignore[arg-type]
        assert unsure.trials.gains.tolist() == [1.0, 3.0, 5.0, 3.0, 1.0] and unsure.informed == 3
        assert unsure.trials.noise.tolist() == [1.0, 1.0, 1.0, 4.0, 4.0] and not np.any(unsure.trials.extra)


def test_the_window_keeps_what_belongs_together() -> None:
    study = optuna.create_study()
    for k in range(12):
        add(study, k / 12, float(k % 5))
        more = {"intermediate_values": {0: k % 4}, "user_attrs": {"partial_variance": k + 1.0}}
        add(study, k / 12 + 0.01, None, TrialState.PRUNED, **more)
    trials = history(study).trials
    whole = {tuple(row): extra for row, extra in zip(trials.rows.tolist(), np.asarray(trials.extra), strict=True)}
    few = trials.within(7)
    assert [whole[tuple(row)] for row in few.rows.tolist()] == np.asarray(few.extra).tolist() and len(few.gains) == 7


def test_the_window_keeps_the_best_that_keep_the_constraints() -> None:
    rows = np.arange(30.0)[:, None]
    gains, violated = np.where(rows[:, 0] < 5.0, 1.0, 2.0), np.where(rows[:, 0] < 5.0, -1.0, 1.0)
    few = ObservedTrials(
        rows, gains, np.ones(30), np.empty((0, 1)), constraints=(violated, np.full(30, np.nan))
    ).within(10)
    assert few.rows[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 25.0, 26.0, 27.0, 28.0, 29.0]
    assert few.allowed.tolist() == [True] * 5 + [False] * 5


def test_trials_that_were_read_before_are_read_as_at_once() -> None:
    space: dict[str, BaseDistribution] = {**X, "c": CategoricalDistribution("ab")}
    grown = optuna.create_study(direction="maximize")
    for k, state in enumerate((TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.COMPLETE) * 3):
        attributes = {"seconds": 1.0 + k, "variance": 0.1 + k % 3, "partial_variance": 0.5}
        reports = {1: 0.1 * k} if state == TrialState.PRUNED else {}
        value = float(k) if state == TrialState.COMPLETE else None
        add(grown, k / 12, value, state, user_attrs=attributes, intermediate_values=reports)
        grown.ask({"c": space["c"]})  # a running trial changes until it ends
        at_once = optuna.create_study(direction="maximize")
        at_once.add_trials(grown.get_trials())
        again, once = (read(study, None, space) for study in (grown, at_once))
        for name in ("rows", "gains", "noise", "pending", "extra", "seconds"):
            assert np.array_equal(getattr(again.trials, name), getattr(once.trials, name), equal_nan=True), name
        assert np.array_equal(again.tried, once.tried, equal_nan=True)
    assert np.array_equal(read(grown, None, X).trials.rows, again.trials.rows[:, :1])  # of other distributions, anew
