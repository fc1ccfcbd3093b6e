"""Racing: what is stopped would hardly have come out ahead, what is far behind is stopped, estimates are unbiased."""

import math

import numpy as np
import pytest

from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.racing import (
    GrowthRace,
    estimate_in_full,
    is_significantly_worse,
    still_racing,
)

LEVEL, QUERIES, FOLDS = POLICY.race.level, 150, 5


def ndcg_like(generator: np.random.Generator, level: float, hardness: np.ndarray, noise: float = 0.12) -> np.ndarray:
    """Values in [0, 1] with much in common between models, many of them equal: as NDCG by query is."""
    values = np.clip(level + hardness + noise * generator.standard_normal(len(hardness)), 0.0, 1.0)
    return np.where(hardness < -0.3, 0.0, values)


def stopped_at(values: np.ndarray, incumbent: np.ndarray, order: np.ndarray, weights: np.ndarray | None = None) -> int:
    """The fold after which a trial is stopped when the queries are dealt in that order, 0 for never."""
    for fold in range(1, FOLDS):
        partial = np.full(QUERIES, np.nan)
        known = order[: fold * QUERIES // FOLDS]
        partial[known] = values[known]
        if is_significantly_worse(partial, incumbent, FOLDS - 1, weights=weights):
            return fold
    return 0


@pytest.mark.parametrize(
    ("spread", "is_weighted"),
    [
        (0.0, False),
        *(pytest.param(*case, marks=pytest.mark.thorough) for case in ((0.01, False), (0.05, False), (0.0, True))),
    ],
)
def test_the_best_of_a_study_is_stopped_more_seldom_than_stated(spread: float, is_weighted: bool) -> None:
    """Studies of 30 configurations whose order is drawn, each raced against the best before it.

    The true best is the one that scores most on all queries. By design it is stopped in at most LEVEL of studies;
    That of a finite number of studies may lie three standard errors above.
    """
    generator = np.random.default_rng(7)
    studies, lost = 500, 0
    for _ in range(studies):
        hardness = 0.3 * generator.standard_normal(QUERIES)
        models = [ndcg_like(generator, 0.5 + spread * generator.standard_normal(), hardness) for _ in range(30)]
        weights = np.exp(generator.standard_normal(QUERIES)) if is_weighted else None
        means = [np.average(values, weights=weights) for values in models]
        order = generator.permutation(QUERIES)
        incumbent = 0
        for place in range(1, 30):
            if stopped_at(models[place], models[incumbent], order, weights):
                lost += place == np.argmax(means)
            elif means[place] > means[incumbent]:
                incumbent = place
    assert lost / studies <= LEVEL + 3.0 * np.sqrt(LEVEL * (1 - LEVEL) / studies)


def test_an_equal_trial_is_stopped_at_about_the_stated_level_and_not_far_below() -> None:
    """The bound is no empty one: of trials that end a hair ahead, some are stopped, at most LEVEL of them."""
    generator = np.random.default_rng(3)
    trials, stopped = 4000, 0
    for _ in range(trials):
        hardness = 0.3 * generator.standard_normal(QUERIES)
        incumbent, values = (ndcg_like(generator, 0.5, hardness) for _ in range(2))
        values = values + (incumbent.mean() - values.mean()) + 1e-9
        stopped += stopped_at(values, incumbent, generator.permutation(QUERIES)) > 0
    assert 0.2 * LEVEL < stopped / trials <= LEVEL + 3.0 * np.sqrt(LEVEL / trials)


def test_what_is_far_behind_is_stopped_after_the_first_fold_and_what_is_ahead_never() -> None:
    generator = np.random.default_rng(1)
    hardness = 0.3 * generator.standard_normal(QUERIES)
    incumbent, worse = ndcg_like(generator, 0.6, hardness), ndcg_like(generator, 0.3, hardness)
    order = generator.permutation(QUERIES)
    assert stopped_at(worse, incumbent, order) == 1
    assert stopped_at(incumbent, worse, order) == 0
    assert stopped_at(incumbent, incumbent, order) == 0


def test_nothing_is_stopped_once_all_is_evaluated_or_where_too_few_differ() -> None:
    incumbent = np.linspace(0.5, 1.0, 40)
    assert not is_significantly_worse(incumbent - 0.4, incumbent, 4)
    few = np.where(np.arange(40) < 20, incumbent - np.where(np.arange(40) < 5, 0.4, 0.0), np.nan)
    assert not is_significantly_worse(few, incumbent, 4)
    assert is_significantly_worse(
        np.where(np.arange(40) < 20, incumbent - 0.1 - 0.01 * np.sin(incumbent * 50), np.nan), incumbent, 4
    )


def test_queries_that_the_metric_skips_do_not_count() -> None:
    generator = np.random.default_rng(5)
    hardness = 0.2 * generator.standard_normal(QUERIES)
    incumbent, values = ndcg_like(generator, 0.6, hardness), ndcg_like(generator, 0.4, hardness)
    values[QUERIES // 2 :] = np.nan
    skipped = generator.random(QUERIES) < 0.3
    blank = np.where(skipped, np.nan, incumbent), np.where(skipped, np.nan, values)
    known = ~skipped
    estimate, plain = estimate_in_full(blank[1], blank[0]), estimate_in_full(values[known], incumbent[known])
    assert (estimate.value, estimate.variance) == pytest.approx((plain.value, plain.variance), rel=1e-12)
    assert is_significantly_worse(blank[1], blank[0], 4) == is_significantly_worse(values[known], incumbent[known], 4)


def test_a_path_is_cut_after_the_last_that_may_still_be_the_best() -> None:
    generator = np.random.default_rng(2)
    hardness = 0.2 * generator.standard_normal(QUERIES)
    incumbent, good, bad = (ndcg_like(generator, level, hardness) for level in (0.6, 0.6, 0.2))
    half = np.arange(QUERIES) < QUERIES // 2
    good, bad = (np.where(half, values, np.nan) for values in (good, bad))
    assert still_racing([bad, good], 1, incumbent, 4) == 2
    assert still_racing([good, bad, bad], 0, incumbent, 4) == 1
    assert still_racing([bad, bad], 0, incumbent, 4) == 0
    assert still_racing([bad, bad], 0, None, 4) == 2
    assert still_racing([good, bad], 0, None, 4) == 1
    assert still_racing([bad], 0, None, 4) == 1


def test_the_estimate_in_full_is_unbiased_and_as_sure_as_it_says() -> None:
    generator = np.random.default_rng(11)
    hardness = 0.3 * generator.standard_normal(QUERIES)
    incumbent, values = ndcg_like(generator, 0.6, hardness), ndcg_like(generator, 0.55, hardness)
    errors, variances = [], []
    for _ in range(2000):
        known = generator.permutation(QUERIES)[: QUERIES // FOLDS]
        partial = np.full(QUERIES, np.nan)
        partial[known] = values[known]
        estimate = estimate_in_full(partial, incumbent)
        errors.append(estimate.value - values.mean())
        variances.append(estimate.variance)
    assert abs(np.mean(errors)) < 4.0 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(variances) == pytest.approx(np.var(errors), rel=0.15)
    assert np.std(errors) < 0.5 * np.std([values[generator.permutation(QUERIES)[:30]].mean() for _ in range(500)])


def growing(limit: float, rounds: int, speed: float) -> float:
    """A learning curve whose gain from one doubling of the rounds to the next becomes less."""
    return limit - 0.3 * math.pow(rounds, -speed)


def rounds_of_race(limit: float, speed: float, incumbent: np.ndarray, generator: np.random.Generator) -> int:
    """The rounds after which growing is stopped, 0 for never; what differs between queries differs at all rounds."""
    candidate = incumbent - incumbent.mean() + 0.1 * generator.standard_normal(len(incumbent))
    race = GrowthRace(incumbent, 512, 0.25)
    for rounds in range(1, 513):
        if race.is_look(rounds) and race.is_lost(candidate - candidate.mean() + growing(limit, rounds, speed)):
            return rounds
    return 0


@pytest.mark.parametrize("speed", [0.3, 0.7, 1.5])
def test_growth_that_would_win_is_seldom_stopped_and_hopeless_growth_soon(speed: float) -> None:
    generator = np.random.default_rng(3)
    lost, late = 0, []
    for _ in range(200):
        incumbent = np.clip(0.6 + 0.25 * generator.standard_normal(QUERIES), 0.0, 1.0)
        winning = incumbent.mean() + 0.3 * 512**-speed + 0.001
        lost += rounds_of_race(winning, speed, incumbent, generator) > 0
        late.append(rounds_of_race(winning - 0.35, speed, incumbent, generator))
    assert lost <= LEVEL * 200
    assert all(2 * POLICY.race.first_steps / 0.25 <= rounds < 512 for rounds in late)


def test_without_an_incumbent_growth_is_never_looked_at() -> None:
    race = GrowthRace(None, 512, 0.25)
    assert not any(race.is_look(rounds) for rounds in range(1, 600))


def test_small_learning_rates_are_looked_at_later() -> None:
    first = [
        next(r for r in range(1, 999) if GrowthRace(np.ones(9), 999, rate).is_look(r)) for rate in (0.4, 0.1, 0.02)
    ]
    assert first == [10, 40, 200]


def test_weights_say_which_queries_decide() -> None:
    generator = np.random.default_rng(2)
    incumbent = np.full(100, 0.5)
    values = incumbent + np.repeat([0.1, -0.1], 50) + 0.01 * generator.standard_normal(100)
    partial = np.where(np.arange(100) % 2 == 0, values, np.nan)
    query_weights = np.repeat([1.0, 20.0], 50)
    assert not is_significantly_worse(partial, incumbent, 1)
    assert is_significantly_worse(partial, incumbent, 1, weights=query_weights)
    assert not is_significantly_worse(partial, incumbent, 1, weights=query_weights[::-1])
    estimate = estimate_in_full(partial, incumbent, query_weights)
    known = ~np.isnan(partial)
    assert estimate.value == pytest.approx(np.average(partial[known], weights=query_weights[known]))


def test_a_few_queries_of_large_weight_stop_no_trial() -> None:
    """Eight queries differ, but one of them has nearly all the weight: its difference says little of the others."""
    incumbent, values = np.full(40, 0.5), np.full(40, np.nan)
    values[:20] = 0.4 + 0.01 * np.arange(20) / 20
    weights = np.ones(40)
    assert is_significantly_worse(values, incumbent, 1, weights=weights)
    weights[3] = 1e6
    assert not is_significantly_worse(values, incumbent, 1, weights=weights)


def test_the_growth_of_a_model_is_raced_by_weight() -> None:
    incumbent, query_weights = np.full(40, 0.5), np.repeat([1.0, 30.0], 20)
    noise = 0.01 * np.random.default_rng(4).standard_normal(40)
    for weights, lost in ((query_weights, True), (query_weights[::-1], False)):
        race = GrowthRace(incumbent, bound=1024, rate=0.1, weights=weights)
        values = 0.5 + np.repeat([0.2, -0.2], 20)
        assert not race.is_lost(values + noise)  # of the first look the gain is not known
        assert race.is_lost(values) is lost
