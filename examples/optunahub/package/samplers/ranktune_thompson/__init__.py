"""RankTune's sampler for Optuna, in the layout of OptunaHub's registry."""

from ranktune import ThompsonSampler

__all__ = ["ThompsonSampler"]
