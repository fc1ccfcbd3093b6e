"""The main job on real data, end to end: what is chosen is as good as it must be."""

from pathlib import Path
from typing import Any

import pytest

import ranktune

FEW = {"trials": 4, "solvers": ("RankSVM", "RidgeRanker"), "jobs": 1}
"""What a minute is enough for; what is published is reached by linear rankers too."""


@pytest.mark.parametrize(
    "options", [FEW, pytest.param({"trials": 30, "jobs": 2}, marks=pytest.mark.slow)], ids=["few trials", "many trials"]
)
@pytest.mark.parametrize(("data", "at_least"), [("MQ2008", 0.225), ("OHSUMED", 0.43)])
def test_five_folds_reach_what_is_published(
    letor_folds: dict[str, Path], tmp_path: Path, data: str, at_least: float, options: dict[str, Any]
) -> None:
    """Published under LETOR's conventions on MQ2008: RankSVM-Struct 0.2279, AdaRank-NDCG 0.2307, RankBoost 0.2255."""
    result = ranktune.tune(letor_folds[data], also=["ndcg@10:letor"], seed=0, home=tmp_path, **options)
    assert [fold.name for fold in result.folds] == [f"Fold{k}" for k in range(1, 6)]
    assert result.trials == 5 * options["trials"]
    assert result.test_metrics["ndcg@10:letor"] >= at_least


def test_the_embedded_data_beats_bm25_by_far(tmp_path: Path) -> None:
    result = ranktune.tune(solvers=["BestFeature", "LambdaMART"], trials=3, home=tmp_path, jobs=1)
    assert result.test_metrics["ndcg@10"] >= 0.80
    single = next(row for row in result.leaderboard if row.solver == "BestFeature")
    assert single.test is not None
    assert single.test.mean < result.test_metrics["ndcg@10"] - 0.05
    assert single.p_value is not None
    assert single.p_value < 0.01
