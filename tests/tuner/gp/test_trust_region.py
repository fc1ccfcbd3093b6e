"""The trust region: how large it is after which trials, what lies in it, and that the search stays there."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.acquisition import (
    FIRST_COUNTED,
    FORGETTING,
    INITIAL_SIDE,
    MAX_SHARE,
    MIN_IMPROVEMENT,
    MIN_SHARE,
    MIN_SIDE,
    NEAR,
    PRIOR_IMPROVEMENTS,
    PRIOR_TRIALS,
    TrustRegion,
    share_after,
    side_after,
)
from ranktune.tuner.gp.encoding import Axis, AxisRule, AxisRules, SpaceEncoding, covered
from ranktune.tuner.gp.proposal import ObservedTrials, propose
from ranktune.tuner.gp.search import maximise
from tests.support.gp_samples import Bowl

NUMBERS = (Axis("x"), Axis("y"), Axis("whole", 0, 200, step=1))
CUBE = SpaceEncoding((*NUMBERS, Axis("a", choices=4), Axis("b", choices=3), Axis("c", choices=5)))
RULES = AxisRules((AxisRule(1, 0, (0.0, 2.0)), AxisRule(2, 0, (1.0,)), AxisRule(3, 0, (1.0,))))
CONDITIONAL = SpaceEncoding((Axis("kind", choices=3), Axis("x"), Axis("y"), Axis("c", choices=4), Axis("z")), RULES)


def rows_of(encoding: SpaceEncoding, count: int = 500, seed: int = 0) -> Floats:
    return encoding.from_unit(np.random.default_rng(seed).random((count, len(encoding.axes))))


def region_of(encoding: SpaceEncoding, side: float, seed: int = 1) -> TrustRegion:
    generator = np.random.default_rng(seed)
    return TrustRegion.around(
        encoding, rows_of(encoding, 1, seed)[0], side, generator.uniform(0.3, 3.0, len(encoding.varying))
    )


class TestSide:
    @pytest.mark.parametrize("patience", [1, 3, 9])
    def test_it_follows_improvements_beyond_the_spread_of_what_came_before(self, patience: int) -> None:
        steps = np.random.default_rng(0).choice([-1.0, 2e-4, 1e-2, 0.5], 200)
        gains, sides = np.cumsum(np.append(steps, np.full(20 * patience, -0.01))), {side_after(np.empty(0), patience)}
        side, best, failures = INITIAL_SIDE, -np.inf, 0
        for k, gain in enumerate(gains):
            failures = 0 if gain > best + MIN_IMPROVEMENT * (np.std(gains[:k]) if k else 0.0) else failures + 1
            side = min(2 * side, INITIAL_SIDE) if not failures else side
            best = max(best, gain)
            if failures == patience:
                side, failures = side / 2 if side / 2 >= MIN_SIDE else INITIAL_SIDE, 0
            sides.add(side_after(gains[: k + 1], patience))
            assert side_after(1000.0 * gains[: k + 1] - 5.0, patience) == side
        assert side == side_after(gains, patience) and max(sides) == INITIAL_SIDE and min(sides) < 2 * MIN_SIDE

    @pytest.mark.parametrize("size", [1e308, 1e-308])
    def test_absurd_gains(self, size: float) -> None:
        assert side_after(size * np.array([1.0, -1.0, 0.5, 0.0, -0.5]), 4) == INITIAL_SIDE / 2


class TestShare:
    def test_it_is_a_half_until_something_is_known(self) -> None:
        for n in range(FIRST_COUNTED + 1):
            assert share_after(CUBE, rows_of(CUBE, n), np.arange(float(n))) == 0.5

    def test_it_is_that_of_the_rates(self) -> None:
        generator = np.random.default_rng(3)
        rows, gains = rows_of(CUBE, 50, 3), np.cumsum(generator.normal(size=50))
        rows[20::2] = CUBE.snap(np.clip(rows[19] + 0.02 * generator.normal(size=(15, 6)), 0, [1, 1, 1, 3, 2, 4]))
        E = CUBE.embed(rows)
        unit = 3 / 6 + 3 / 4 + 2 / 3 + 4 / 5
        counts = {True: [PRIOR_IMPROVEMENTS, PRIOR_TRIALS], False: [PRIOR_IMPROVEMENTS, PRIOR_TRIALS]}
        for k in range(FIRST_COUNTED, 50):
            best = int(np.argmax(gains[:k]))
            near = bool(((E[k] - E[best]) ** 2).sum() <= NEAR * unit)
            weight = FORGETTING ** (49 - k)
            counts[near][0] += weight * (gains[k] > gains[best] + MIN_IMPROVEMENT * np.std(gains[:k]))
            counts[near][1] += weight
        near_rate, far_rate = (counts[near][0] / counts[near][1] for near in (True, False))
        expected = np.clip(near_rate / (near_rate + far_rate), MIN_SHARE, MAX_SHARE)
        assert share_after(CUBE, rows, gains) == pytest.approx(expected)
        assert share_after(CUBE, rows, 1000.0 * gains - 5.0) == pytest.approx(expected)


@pytest.mark.parametrize("encoding", [CUBE, CONDITIONAL])
@pytest.mark.parametrize("side", [INITIAL_SIDE, 0.3, MIN_SIDE])
class TestRegion:
    def test_rows_moved_into_it_are_in_it_and_those_in_it_stay(self, encoding: SpaceEncoding, side: float) -> None:
        region, generator = region_of(encoding, side), np.random.default_rng(2)
        rows = rows_of(encoding)
        inside = region.within(rows, generator)
        assert not region.holds(rows).all() and region.holds(inside).all()
        assert region.holds(region.centre[None]).all()
        np.testing.assert_array_equal(region.within(inside, generator), inside)
        assert region.holds(region.spread(rows, generator)).all()

    def test_a_larger_set_contains_the_smaller_set(self, encoding: SpaceEncoding, side: float) -> None:
        region, generator = region_of(encoding, side), np.random.default_rng(2)
        smaller = region_of(encoding, 0.5 * side)
        assert region.holds(smaller.spread(rows_of(encoding), generator)).all()

    def test_it_is_filled_from_end_to_end(self, encoding: SpaceEncoding, side: float) -> None:
        region = region_of(encoding, side)
        rows = region.spread(rows_of(encoding, 4000), np.random.default_rng(2))
        width = region.high - region.low
        numbers = np.isfinite(width)
        np.testing.assert_allclose(rows[:, numbers].min(axis=0), region.low[numbers], atol=0.02 * width[numbers].max())
        np.testing.assert_allclose(rows[:, numbers].max(axis=0), region.high[numbers], atol=0.02 * width[numbers].max())


def test_at_most_so_many_categories_differ() -> None:
    counts = []
    for side in (INITIAL_SIDE, 0.4, MIN_SIDE):
        region = region_of(CUBE, side)
        rows = region.within(rows_of(CUBE), np.random.default_rng(0))
        counts.append((rows != region.centre)[:, 3:].sum(axis=1).max())
    assert counts == [2, 1, 1]


def test_what_decides_on_other_parameters_stays_and_what_is_inactive_is_free() -> None:
    middle = np.array([1.0, 0.5, 0.5, 2.0, 0.5])  # x is inactive
    region = TrustRegion.around(CONDITIONAL, middle, MIN_SIDE, np.ones(5))
    rows = region.spread(rows_of(CONDITIONAL), np.random.default_rng(0))
    assert (rows[:, 0] == 1.0).all() and np.ptp(rows[:, 1]) > 0.9
    assert np.ptp(rows[:, 2]) <= MIN_SIDE + 1e-9 and np.ptp(rows[:, 4]) <= MIN_SIDE + 1e-9


def test_it_is_longer_along_what_matters_less() -> None:
    region = TrustRegion.around(
        CUBE, np.array([0.5, 0.5, 0.5, 0, 0, 0]), 0.3, np.array([16.0, 1.0, 1.0, 9.0, 9.0, 9.0])
    )
    width = (region.high - region.low)[:3]
    assert width[1] == pytest.approx(4 * width[0]) and np.prod(width) == pytest.approx(0.3**3)


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_what_is_best_in_it(seed: int) -> None:
    """Of a bowl, which adds up over parameters: the number nearest to the top's, and the categories of the top."""
    top, region = rows_of(CUBE, 1, seed + 50)[0], region_of(CUBE, 0.3, seed)
    bowl, generator = Bowl(CUBE.embed(top[None])[0]), np.random.default_rng(seed)
    result = maximise(bowl, CUBE, region.centre[None], None, generator, region)
    np.testing.assert_allclose(result[:2], np.clip(top, region.low, region.high)[:2], atol=1e-4)
    assert (result != region.centre)[3:].sum() == min(region.changes, int((top != region.centre)[3:].sum()))
    assert region.holds(result[None])[0] or abs(result[2] - np.clip(top[2], region.low[2], region.high[2])) <= 1 / 201


def test_where_all_of_it_is_taken_the_search_goes_on_elsewhere() -> None:
    encoding = SpaceEncoding((Axis("whole", 0, 9999, step=1), Axis("c", choices=2)))
    middle = encoding.snap(np.array([[0.5, 0.0]]))[0]
    region = TrustRegion.around(encoding, middle, MIN_SIDE, np.ones(2))
    all_rows = np.array([[place, c] for place in encoding.axes[0].grid() for c in (0.0, 1.0)])
    taken = all_rows[region.holds(all_rows)]
    row = maximise(
        Bowl(encoding.embed(middle[None])[0]), encoding, middle[None], taken, np.random.default_rng(0), region
    )
    assert not covered(row[None], taken)[0] and not region.holds(row[None])[0]


class TestProposals:
    @staticmethod
    def trials(n: int = 25) -> ObservedTrials:
        rows = rows_of(CUBE, n)
        gains = -((rows[:, 0] - 0.3) ** 2) - (rows[:, 1] - 0.6) ** 2 - 0.3 * (rows[:, 3] != 1) - 0.1 * rows[:, 2]
        return ObservedTrials(rows, gains, np.ones(n), np.empty((0, 6)))

    def test_they_stay_close_where_they_look_closely(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trials = self.trials()
        away = {}
        for use_trust_region in (0.0, 1.0):
            monkeypatch.setattr(proposal, "share_after", lambda *_, s=use_trust_region: s)
            monkeypatch.setattr(proposal, "side_after", lambda gains, patience: MIN_SIDE)
            made = [propose(CUBE, trials, None, np.random.default_rng(seed)) for seed in range(12)]
            away[use_trust_region] = np.array([np.abs(trials.rows - p.row)[:, :2].max(axis=1).min() for p in made])
            assert [p.widely for p in made] == [use_trust_region == 0.0] * 12
        assert away[1.0].max() < 0.2 and np.median(away[1.0]) < np.median(away[0.0])

    def test_expected_improvement_several_objectives_and_small_spaces_look_everywhere(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(proposal, "share_after", lambda *_: 1.0)
        monkeypatch.setattr(proposal, "side_after", None)  # whoever calls it fails
        trials, generator = self.trials(), np.random.default_rng(0)
        assert propose(CUBE, trials, None, generator, "ei").gain is not None
        propose(CUBE, replace(trials, more=(trials.rows[:, 0],)), None, generator)
        propose(CUBE, replace(trials, constraints=(trials.rows[:, 0] - 0.5,)), None, generator)
        small = SpaceEncoding((Axis("whole", 0, 20, step=1), Axis("c", choices=2)))
        rows = rows_of(small, 8)
        assert (
            propose(small, ObservedTrials(rows, rows[:, 0], np.ones(8), np.empty((0, 2))), None, generator).gain
            is not None
        )
        timed = replace(trials, seconds=1.0 + trials.rows[:, 0])
        for power in (0.0, 0.3):
            with pytest.raises(TypeError, match="not callable"):
                propose(CUBE, timed, None, generator, power=power)
