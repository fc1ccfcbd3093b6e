"""Tests of features by query: what is kept of training data, exact levels, and what is found."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import ks_2samp, rankdata, ttest_ind

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.drift.quality import differences, largest_difference, moved
from ranktune.tuner.drift.reference import MAX_CELLS, MAX_FEATURES, STATISTICS, Reference

LENGTH = 6


def correlated(generator: np.random.Generator, count: int, features: int = 3) -> Floats:
    """Return features whose correlation between two documents of a query is .8."""
    common, own = (generator.normal(size=(count, n, features)) for n in (1, LENGTH))
    return np.asarray(np.sqrt(0.8) * common + np.sqrt(0.2) * own).reshape(-1, features)


def queries_of(X: Floats) -> Queries:
    return Queries.from_arrays(X, np.arange(len(X)) % 2, group=[LENGTH] * (len(X) // LENGTH))


def model_of(features: int) -> LinearModel:
    return LinearModel(np.ones(features), solver="RankSVM")


def pair(X: Floats, new: Floats) -> tuple[Reference, Reference]:
    model = model_of(X.shape[1])
    before = Reference.of(model, queries_of(X))
    return before, Reference.of(model, queries_of(new), before)


def test_statistics_are_those_of_midranks_by_query() -> None:
    generator = np.random.default_rng(0)
    X = generator.integers(0, 9, size=(8 * LENGTH, 2)).astype(float)
    X[generator.random(len(X)) < 0.2, 1] = np.nan
    found = Reference.of(model_of(2), queries_of(X)).by_query.reshape(8, STATISTICS, 2)
    for j in range(2):
        known = ~np.isnan(X[:, j])
        place = np.full(len(X), 0.5)
        place[known] = (rankdata(X[known, j]) - 0.5) / known.sum()
        own = place.reshape(8, LENGTH)
        absent = (~known).reshape(8, LENGTH).mean(axis=1)
        expected = [own.mean(axis=1), np.abs(own - 0.5).mean(axis=1), own.std(axis=1), absent]
        np.testing.assert_allclose(found[:, :, j].T, expected, atol=1e-5)


def test_the_unit_of_a_feature_does_not_matter() -> None:
    X, new = (correlated(np.random.default_rng(seed), 40) for seed in (0, 1))
    plain, other = pair(X, new), pair(np.exp(3.0 * X), np.exp(3.0 * new))
    for one, another in zip(plain, other, strict=True):
        np.testing.assert_array_equal(one.by_query, another.by_query)
    assert [each.q for each in moved(*plain)] == [each.q for each in moved(*other)]


def test_what_is_kept_is_read_again_and_damage_is_noticed(tmp_path: Path) -> None:
    X = correlated(np.random.default_rng(0), 30)
    X[::7, 2] = np.nan
    kept = Reference.of(model_of(3), queries_of(X))
    kept.write(tmp_path / "reference.npz")
    found = Reference.read(tmp_path / "reference.npz")
    assert (found.names, found.total) == (kept.names, 30)
    for name in ("values", "below", "to", "moments", "by_query"):
        np.testing.assert_array_equal(getattr(found, name), getattr(kept, name))
    content = (tmp_path / "reference.npz").read_bytes()
    (tmp_path / "reference.npz").write_bytes(content[:-9])
    with pytest.raises(Damaged):
        Reference.read(tmp_path / "reference.npz")


def test_of_very_many_features_those_that_occur_most_are_kept() -> None:
    count, generator = 100_000, np.random.default_rng(0)
    always = np.full((1800, 2), [5, count - 1])
    columns = np.hstack([generator.integers(6, count - 1, size=(1800, 20)), always])
    X = scipy.sparse.coo_array((np.ones(columns.size), (np.repeat(np.arange(1800), 22), columns.ravel())))
    queries = Queries.from_arrays(X.tocsr(), np.arange(1800) % 2, group=[2] * 900)
    kept = Reference.of(model_of(count), queries)
    assert len(kept.names) == MAX_FEATURES and {"feature 6", f"feature {count}"} <= set(kept.names)
    assert kept.by_query.size <= MAX_CELLS and kept.total == 900


def test_the_p_value_is_that_of_all_divisions_of_the_queries() -> None:
    generator = np.random.default_rng(4)
    before, now = pair(correlated(generator, 5, 2), correlated(generator, 3, 2) + 0.7)
    standard, observed = differences(before, now)
    sums = [np.abs(standard[list(chosen)].sum(axis=0)).max() for chosen in combinations(range(8), 3)]
    exact = np.mean(np.array(sums) >= np.abs(standard[:3].sum(axis=0)).max() * (1 - 1e-9))
    assert 0.02 < exact < 0.9
    assert largest_difference(before, now, generator, 0.005) == pytest.approx(exact, abs=0.03)
    assert np.abs(observed).max() > 1.0


def test_p_values_of_a_feature_are_those_of_students_t() -> None:
    generator = np.random.default_rng(2)
    before, now = pair(correlated(generator, 30), correlated(generator, 20) + np.array([0.0, 0.3, 2.0]))
    found = {each.feature: each for each in moved(before, now)}
    p = ttest_ind(now.by_query, before.by_query).pvalue.reshape(STATISTICS, 3)
    for j, name in enumerate(before.names):  # nothing is missing, so that three statistics vary
        assert found[name].p == pytest.approx(min(1.0, 3 * np.nanmin(p[:, j])), rel=1e-6)
    assert found["feature 3"].q <= 0.05 < found["feature 1"].q


@pytest.mark.parametrize("change", ["higher", "wider", "dealt", "missing", "constant"])
def test_every_kind_of_change_is_found_and_named(change: str) -> None:
    generator = np.random.default_rng(3)
    X, new = correlated(generator, 300), correlated(generator, 300)
    column = new[:, 1]
    changed = {
        "higher": column + 0.6,
        "wider": 1.5 * column,
        "dealt": generator.permutation(column),  # the same distribution, whatever the query
        "missing": np.where(generator.random(len(column)) < 0.1, np.nan, column),
        "constant": np.full(len(column), 0.1),
    }
    new[:, 1] = changed[change]
    before, now = pair(X, new)
    assert largest_difference(before, now, generator, 0.05) <= 0.002
    (only,) = (each for each in moved(before, now) if each.q <= 0.05)
    assert (only.feature, only.constant) == ("feature 2", change == "constant")
    assert sum(only.before) == pytest.approx(1.0, abs=1e-3) == sum(only.now)
    assert np.abs(np.cumsum(only.before) - np.cumsum(only.now)).max() <= only.distance + 0.01
    assert not any(each.now for each in moved(before, now) if each.feature != only.feature)
    if change == "higher":
        assert only.shift == pytest.approx((new[:, 1].mean() - X[:, 1].mean()) / X[:, 1].std())
        assert only.distance == pytest.approx(ks_2samp(X[:, 1], new[:, 1]).statistic, abs=0.04)
    if change == "missing":
        assert only.missing == pytest.approx(0.1, abs=0.03) and only.missing_before == 0.0


def test_nothing_has_moved_where_nothing_varies() -> None:
    before, now = pair(np.ones((60, 2)), np.ones((60, 2)))
    assert largest_difference(before, now, np.random.default_rng(0), 0.05) == 1.0
    assert all(each.p == 1.0 and each.shift is None and not each.constant for each in moved(before, now))
