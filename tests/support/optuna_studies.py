"""Studies of Optuna that have run some trials."""

from collections.abc import Callable
from typing import Any

import optuna


def optimised(objective: Callable[[optuna.Trial], Any], n_trials: int, **created: Any) -> optuna.Study:
    """Return a study with these arguments of `create_study` after so many trials."""
    study = optuna.create_study(**created)
    study.optimize(objective, n_trials=n_trials)
    return study
