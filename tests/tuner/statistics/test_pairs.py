"""Every pair of models against the comparison of that pair alone."""

from __future__ import annotations

import numpy as np
import pytest

from ranktune.tuner.statistics.comparisons import compare_splits, holm, pairwise


def splits_of(models: int, *sizes: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    results = [np.round(generator.random((models, n)) - 0.08 * np.arange(models)[:, None], 1) for n in sizes]
    for values in results:
        values[:, 1] = np.nan
    return results


@pytest.mark.parametrize(("sizes", "is_weighted"), [((30,), False), ((20, 35), False), ((20, 35), True)])
def test_pairs_are_what_comparing_them_alone_gives(sizes: tuple[int, ...], is_weighted: bool) -> None:
    splits = splits_of(4, *sizes)
    weights = [np.linspace(0.1, 2.0, values.shape[1]) for values in splits] if is_weighted else None
    result = pairwise(splits, np.random.default_rng(1), weights)
    assert [(pair.a, pair.b) for pair in result] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for pair in result:
        sides = [v[pair.a] for v in splits], [v[pair.b] for v in splits]
        expected = compare_splits(*sides, np.random.default_rng(2), weights=weights)
        assert pair.difference == pytest.approx(expected.difference)
        assert (pair.wins, pair.ties, pair.losses) == (expected.wins, expected.ties, expected.losses)
        assert pair.p == pytest.approx(expected.p_randomisation, abs=0.025)
    assert [pair.p_holm for pair in result] == holm([pair.p for pair in result])


def test_equal_models_are_never_told_apart_and_clear_ones_always_are() -> None:
    base = np.random.default_rng(0).random(40)
    same, better = pairwise([np.stack([base, base])], np.random.default_rng(0))[0], None
    better = pairwise([np.stack([base + 0.5, base])], np.random.default_rng(0))[0]
    assert same.p == same.p_holm == 1.0
    assert (same.wins, same.ties, same.losses) == (0, 40, 0)
    assert better.p_holm is not None
    assert better.p_holm < 0.001
    assert better.difference == pytest.approx(0.5)


def test_one_model_has_no_pair_and_skipped_queries_tell_nothing() -> None:
    assert pairwise([np.ones((1, 5))], np.random.default_rng(0)) == []
    nothing = pairwise([np.full((2, 5), np.nan)], np.random.default_rng(0))[0]
    assert np.isnan(nothing.difference)
    assert nothing.p is None
    assert nothing.p_holm is None
