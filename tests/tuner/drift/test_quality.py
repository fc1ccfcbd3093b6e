"""The metric on new queries beside that of a study: other computations of its tests, and its rates."""

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.drift.quality import ExpectedQuality, Quality, quality
from ranktune.tuner.statistics.measured import Interval

ESTIMATE = Interval(0.5, 0.4, 0.6)
GENERATOR = np.random.default_rng(0)
OLD, NEW = GENERATOR.beta(2, 1, 200), GENERATOR.beta(2, 1.4, 90)


def found(
    new: Floats, ids: list[str], known: ExpectedQuality, rate: float = 0.05, weights: Floats | None = None
) -> Quality:
    return quality("ndcg@10", ids, new, weights, known, ESTIMATE, rate)


def known(values: Floats = OLD, part: str = "test") -> ExpectedQuality:
    return ExpectedQuality.of(part, [f"q{k}" for k in range(len(values))], values, None, ESTIMATE)


def test_other_queries_are_compared_by_welchs_t() -> None:
    result = found(NEW, [f"new{k}" for k in range(len(NEW))], known())
    assert result.p == pytest.approx(ttest_ind(NEW, OLD, equal_var=False, alternative="less").pvalue)
    assert result.difference == pytest.approx(NEW.mean() - OLD.mean()) and result.paired == 0
    assert [each.value for each in result.worst] == sorted(NEW)[:10]


def test_the_same_queries_are_paired_where_that_is_more_precise() -> None:
    new = OLD[:90] - 0.01 + 0.02 * GENERATOR.normal(size=90)
    ids = [f"q{k}" for k in range(90)]
    result = found(new, ids, known())
    assert result.p == pytest.approx(ttest_rel(new, OLD[:90], alternative="less").pvalue) and not result.holds
    assert result.paired == 90
    losses = [each.before - each.value for each in result.worst if each.before is not None]
    assert losses == sorted(losses, reverse=True) and losses[0] == pytest.approx((OLD[:90] - new).max())
    unrelated = found(NEW, ids, known())  # numbers that mean other queries each day
    assert unrelated.paired == 0


def test_queries_that_a_metric_skips_do_not_count() -> None:
    new = np.append(NEW, np.nan)
    result = found(new, [f"new{k}" for k in range(len(new))], known(np.append(OLD, np.nan)))
    assert (result.queries, result.skipped) == (len(NEW), 1)
    assert result.p == pytest.approx(ttest_ind(NEW, OLD, equal_var=False, alternative="less").pvalue)


def test_a_query_of_weight_two_moves_the_mean_as_two_queries_do() -> None:
    weights = np.where(np.arange(len(NEW)) < 30, 2.0, 1.0)
    result = found(NEW, [f"new{k}" for k in range(len(NEW))], known(), weights=weights)
    assert result.mean == pytest.approx(np.append(NEW, NEW[:30]).mean())


def test_validation_queries_count_as_the_estimate_which_is_corrected() -> None:
    of_vali = known(part="vali")
    assert of_vali.mean == 0.5 < OLD.mean()
    assert of_vali.values.mean() == pytest.approx(0.5) and of_vali.error == pytest.approx(0.2 / (2 * 1.96))


def test_a_gain_is_no_alarm_and_equal_values_are_none() -> None:
    ids = [f"q{k}" for k in range(len(OLD))]
    assert found(OLD + 0.2, ids, known()).holds
    same = found(OLD, ids, known())
    assert (same.p, same.holds, same.worst) == (1.0, True, ())


def test_the_loss_that_is_found_on_four_days_of_five() -> None:
    generator, ids = np.random.default_rng(1), [f"new{k}" for k in range(400)]
    one = found(generator.normal(0.6, 0.25, 400), ids, known(generator.normal(0.6, 0.25, 900)))
    assert one.detectable == pytest.approx(2.486 * 0.25 * np.sqrt(1 / 400 + 1 / 900), rel=0.05)
