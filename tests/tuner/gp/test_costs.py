import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.acquisition import MIN_SECONDS, MIN_TRIALS, Acquisition, ImprovementPerCost, LogCost
from ranktune.tuner.gp.encoding import Axis, SpaceEncoding
from ranktune.tuner.gp.proposal import ObservedTrials, propose
from ranktune.tuner.samplers.registry import make_sampler
from tests.support.gp_samples import Bowl, check_gradient

CUBE = SpaceEncoding((Axis("x"), Axis("y"), Axis("c", choices=3)))


def sampled(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Rows, and seconds that grow with x and depend on the category."""
    rows = CUBE.from_unit(np.random.default_rng(seed).random((n, 3)))
    return rows, np.exp(3 * rows[:, 0] + np.array([0.0, 1.0, 2.0])[rows[:, 2].astype(int)])


def test_it_learns_what_is_dear() -> None:
    rows, seconds = sampled(40)
    cost = LogCost.of(CUBE.embed(rows), seconds)
    assert cost is not None
    asked, expected = sampled(200, 1)
    assert np.corrcoef(cost.values(CUBE.embed(asked)), np.log(expected))[0, 1] > 0.99
    assert np.abs(cost.values(CUBE.embed(asked)) - np.log(expected)).max() < 0.5


def test_it_stays_between_the_cheapest_and_the_dearest() -> None:
    rows, seconds = sampled(8)
    cost = LogCost.of(CUBE.embed(rows), seconds)
    assert cost is not None
    result = cost.values(CUBE.embed(sampled(500, 1)[0]))
    assert result.min() >= np.log(seconds.min()) - 1e-12 and result.max() <= np.log(seconds.max()) + 1e-12


def test_few_or_strange_seconds() -> None:
    rows, seconds = sampled(20)
    E = CUBE.embed(rows)
    assert LogCost.of(E, np.where(np.arange(20) < MIN_TRIALS - 1, seconds, np.nan)) is None
    assert LogCost.of(E, np.zeros(20)) is None and LogCost.of(E[:0], seconds[:0]) is None
    equal = LogCost.of(E, np.full(20, 7.0))
    assert equal is not None and equal.values(E) == pytest.approx(np.log(7.0))
    instant = LogCost.of(E, np.full(20, 1e-9))
    assert instant is not None and instant.values(E) == pytest.approx(np.log(MIN_SECONDS))
    same = LogCost.of(np.repeat(E[:1], 20, axis=0), seconds)
    assert same is not None and np.isfinite(same.values(E)).all()


def test_improvement_per_cost_has_the_gradient_of_its_values() -> None:
    rows, seconds = sampled(12)
    cost = LogCost.of(CUBE.embed(rows), seconds)
    assert cost is not None
    bowl = Bowl(np.full(5, 0.3))
    acquisition_function: Acquisition = ImprovementPerCost(bowl, cost, 0.7)
    E = CUBE.embed(sampled(50, 3)[0])
    values, gradients = acquisition_function.values_and_gradients(E)
    np.testing.assert_allclose(values, acquisition_function.values(E))
    np.testing.assert_allclose(values, bowl.values(E) - 0.7 * cost.values(E))
    check_gradient(acquisition_function.values, gradients, E, 1e-6, atol=1e-6)


def test_of_two_corners_as_good_the_cheap_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gains are symmetric about the middle of x, seconds are not."""
    monkeypatch.setattr(proposal, "share_after", lambda *_: 0.0)  # the trust region is in one of the corners
    line = SpaceEncoding((Axis("x"), Axis("y")))
    rows = line.from_unit(np.random.default_rng(0).random((30, 2)))
    rows = np.vstack([rows, np.column_stack([1 - rows[:, 0], rows[:, 1]])])
    gains, seconds = -np.abs(np.abs(rows[:, 0] - 0.5) - 0.35), np.exp(6 * rows[:, 0])
    trials = ObservedTrials(rows, gains, np.ones(60), np.empty((0, 2)), seconds=seconds)
    cheap = {
        power: sum(propose(line, trials, rows, np.random.default_rng(s), power=power).row[0] < 0.5 for s in range(20))
        for power in (0.0, 1.0)
    }
    assert cheap[1.0] >= 17 and 3 <= cheap[0.0] <= 17


def costly(known: bool) -> optuna.Study:
    study = optuna.create_study(direction="maximize")
    generator = np.random.default_rng(0)
    for k in range(20):
        x = float(generator.random())
        attrs: dict[str, object] = {"seconds": 1.0 + 9 * x} if known else {"seconds": ["?", float("nan"), -1.0][k % 3]}
        distributions: dict[str, optuna.distributions.BaseDistribution] = {
            "x": optuna.distributions.FloatDistribution(0, 1)
        }
        state = TrialState.FAIL if k % 7 == 6 else TrialState.COMPLETE
        value = None if state == TrialState.FAIL else -((x - 0.5) ** 2)
        study.add_trial(
            create_trial(state=state, value=value, params={"x": x}, distributions=distributions, user_attrs=attrs)
        )
    return study


@pytest.mark.parametrize("known", [False, True])
def test_costs_that_nobody_tells_change_nothing(known: bool) -> None:
    def suggested(costs: bool) -> float:
        study = costly(known)
        study.sampler = make_sampler("thompson", seed=0, number=20, costs=costs)
        return float(study.ask({"x": optuna.distributions.FloatDistribution(0, 1)}).params["x"])

    assert (suggested(True) == suggested(False)) is not known
