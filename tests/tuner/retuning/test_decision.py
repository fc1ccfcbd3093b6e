"""Keep, refit or replace: laws, and how often nothing is kept where nothing moved."""

import numpy as np
import pytest

from ranktune.tuner.retuning.decision import KEEP, REFIT, REPLACE, RetuneDecision, decide


def decided(refit: float, replaced: float, seed: int = 0, n: int = 200, noise: float = 0.1) -> RetuneDecision:
    generator = np.random.default_rng(seed)
    old = generator.random(n)
    contenders = {
        REFIT: old + refit + noise * generator.normal(size=n),
        REPLACE: old + replaced + noise * generator.normal(size=n),
    }
    return decide(old, contenders, generator)


@pytest.mark.parametrize(
    ("refit", "replaced", "decision"),
    [(0.0, 0.0, KEEP), (-0.1, -0.1, KEEP), (0.1, 0.0, REFIT), (0.0, 0.1, REPLACE), (0.05, 0.1, REPLACE)],
)
def test_what_is_better_with_evidence_is_taken(refit: float, replaced: float, decision: str) -> None:
    verdict = decided(refit, replaced)
    assert verdict.decision == decision
    taken = verdict.contenders.get(decision)
    assert taken is None or taken.comparison.low > 0.0
    assert all(2 * each.p_holm >= each.comparison.p_randomisation for each in verdict.contenders.values())


def test_where_nothing_moved_the_model_is_kept() -> None:
    kept = [decided(0.0, 0.0, seed, n=60).decision == KEEP for seed in range(25)]
    assert np.mean(kept) >= 0.95


def test_without_a_common_query_the_model_is_kept() -> None:
    nothing = np.full(5, np.nan)
    verdict = decide(nothing, {REFIT: np.ones(5)}, np.random.default_rng(0))
    assert verdict.decision == KEEP and verdict.contenders[REFIT].as_dict()["difference"] is None
