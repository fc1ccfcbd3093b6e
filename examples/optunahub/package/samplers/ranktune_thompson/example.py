"""Minimise a function of a number and a choice with RankTune's sampler."""

from pathlib import Path

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return a value that is least at x = 2 with the choice "b"."""
    x = trial.suggest_float("x", -5.0, 5.0)
    return (x - 2.0) ** 2 + {"a": 1.0, "b": 0.0}[trial.suggest_categorical("kind", ["a", "b"])]


if __name__ == "__main__":
    registry = Path(__file__).parents[2]  # once it is registered: optunahub.load_module("samplers/ranktune_thompson")
    module = optunahub.load_local_module("samplers/ranktune_thompson", registry_root=str(registry))
    study = optuna.create_study(sampler=module.ThompsonSampler(seed=0))
    study.optimize(objective, n_trials=30)
    print(study.best_trial.value, study.best_trial.params)
