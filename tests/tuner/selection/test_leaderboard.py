"""Rows of the leaderboard: means over splits, verdicts, what may be taken instead, what validation promises."""

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.selection.estimate import estimate
from ranktune.tuner.selection.finals import Candidate, Finalist
from ranktune.tuner.selection.leaderboard import leaderboard
from ranktune.tuner.selection.rows import ALIKE, BETTER, BLEND, CHOSEN, FIRST, WORSE, alternatives
from ranktune.tuner.statistics.comparisons import holm
from tests.tuner.selection.test_candidates import candidate


def entry(solver: str, vali: float, test: Floats) -> Finalist:
    model = LinearModel(weights=np.array([1.0, 0.0]), solver=solver, parameters={})
    return Finalist(candidate(solver, np.full(4, vali)), {"map": test}, None, model, 0.01, 0.1)


def test_over_several_splits_the_first_row_is_what_choosing_on_each_gives() -> None:
    a, b = np.array([0.2, 0.4]), np.array([0.6, 0.8])
    splits = [[entry("A", 0.9, a), entry("B", 0.8, b)], [entry("B", 0.7, b), entry("A", 0.6, a)]]
    rows = leaderboard(splits, "map", np.random.default_rng(0))
    assert [row.solver for row in rows] == [CHOSEN, "A", "B"]
    assert [row.test.mean if row.test else None for row in rows] == pytest.approx([(0.3 + 0.7) / 2, 0.3, 0.7])
    assert [row.nonzeros for row in rows] == [1, 1, 1]
    assert rows[0].p_value is None
    assert rows[0].trials == 20


def test_a_solver_that_failed_on_a_split_has_no_mean_row() -> None:
    test = np.array([0.5, 0.5])
    splits = [[entry("A", 0.9, test), entry("B", 0.8, test)], [entry("A", 0.7, test)]]
    assert [row.solver for row in leaderboard(splits, "map", np.random.default_rng(0))] == [CHOSEN, "A"]


def spread(mean: float, seed: int, n: int = 80) -> Floats:
    """Values whose queries are as difficult for all, and differ by a little noise."""
    difficulty = np.random.default_rng(0).uniform(-0.2, 0.2, n)
    return mean + difficulty + 0.02 * np.random.default_rng(seed).normal(size=n)


def compared(**tests: float) -> list[Finalist]:
    return [entry(name, 0.5, spread(mean, seed)) for seed, (name, mean) in enumerate(tests.items(), start=1)]


def test_verdicts_are_against_the_chosen_and_corrected() -> None:
    rows = leaderboard([compared(A=0.5, B=0.4, C=0.5, D=0.6)], "map", np.random.default_rng(0))
    assert [row.verdict for row in rows] == [FIRST, WORSE, ALIKE, BETTER]
    p_values = [row.p_value for row in rows]
    assert [row.p_holm for row in rows] == pytest.approx(holm(p_values))
    assert rows[0].difference is None
    assert rows[1].difference is not None
    assert rows[1].difference.low < rows[1].difference.mean < rows[1].difference.high < 0.0


def test_without_test_queries_fresh_folds_are_compared() -> None:
    results: list[Finalist] = []
    for name, mean in (("A", 0.7), ("B", 0.4)):
        model = LinearModel(weights=np.ones(2), solver=name)
        results.append(
            Finalist(candidate(name, np.full(3, 0.5), spread(mean, len(results))), {}, None, model, 0.01, 0.1)
        )
    rows = leaderboard([results], "map", np.random.default_rng(0))
    assert rows[1].verdict == WORSE
    assert rows[1].difference is not None
    assert rows[1].difference.mean == pytest.approx(-0.3, abs=0.02)


def test_a_blend_has_no_validation_score_of_trials() -> None:
    blend = Finalist(
        candidate(BLEND, np.empty(0), spread(0.6, 1)), {}, None, LinearModel(np.ones(2), solver=BLEND), 0.01, 0.1
    )
    (row,) = leaderboard([[blend]], "map", np.random.default_rng(0))
    assert row.vali is None
    assert row.again is not None
    assert row.is_blend


def test_the_smallest_and_the_fastest_are_among_those_not_told_apart() -> None:
    sizes = {"A": (5, 3.0), "B": (1, 0.1), "C": (2, 2.0), "D": (4, 1.0)}
    tests = {"A": 0.5, "B": 0.3, "C": 0.5, "D": 0.5}
    results: list[Finalist] = []
    for name, (nonzeros, microseconds) in sizes.items():
        model = LinearModel(weights=np.repeat([1.0, 0.0], [nonzeros, 6 - nonzeros]), solver=name)
        own = spread(tests[name], nonzeros)
        results.append(Finalist(candidate(name, own, own), {"map": own}, None, model, microseconds, 0.1))
    taken = alternatives(leaderboard([results], "map", np.random.default_rng(0)))
    assert taken["smallest"] == "C"


def test_the_estimate_of_a_blend_is_among_what_was_scored_again() -> None:
    trials = {k: spread(0.5, k) for k in range(6)}
    single = candidate("A", trials[0], spread(0.5, 10), number=0)
    blend = candidate(BLEND, np.empty(0), spread(0.55, 11))
    result = estimate(blend, [single, blend], trials, dict.fromkeys(trials, "A"), np.random.default_rng(0))
    assert result.low < 0.55 < result.high
    assert blend.rescored is not None
    assert result.mean == pytest.approx(float(blend.rescored.mean()), abs=0.01)


def test_the_estimate_of_a_blend_of_trials_is_that_of_its_members_luck() -> None:
    """Two solvers are equally good in all their trials: the best of each is lucky, and so is their blend."""
    off = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        difficulty = generator.uniform(0.3, 0.7, 80)
        trials = {k: difficulty + 0.1 * generator.normal(size=80) for k in range(40)}
        solvers = {k: "A" if k < 20 else "B" for k in trials}
        best = [max(own, key=lambda k: float(trials[k].mean())) for own in (range(20), range(20, 40))]
        members = tuple(candidate(solvers[k], trials[k], number=k) for k in best)
        values = np.mean([trials[k] for k in best], axis=0)
        blend = Candidate(BLEND, {"A": 0.5, "B": 0.5}, float(values.mean()), values, 0, members=members)
        result = estimate(blend, [*members, blend], trials, solvers, np.random.default_rng(0))
        assert result.mean < float(values.mean())
        off.append(result.mean - float(difficulty.mean()))
    assert abs(float(np.mean(off))) < 0.005
