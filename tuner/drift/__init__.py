"""Whether new data are still those that a study was tuned on, and its model still as good as promised."""

from ranktune.tuner.drift.watching import Drift, watch

__all__ = ["Drift", "watch"]
