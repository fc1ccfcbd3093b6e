"""
A model of the search finds good configurations sooner
======================================================

Random search forgets what it saw. :class:`ranktune.tuner.ThompsonSampler` fits a Gaussian process to the finished trials and
suggests what could be better. It is a sampler for any study of Optuna.
"""

import matplotlib.pyplot as plt
import numpy as np
import optuna

from ranktune.tuner import ThompsonSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)
TRIALS, SEEDS = 40, 5


def loss(trial: optuna.Trial) -> float:
    """Return the function of Rosenbrock in three variables, on a logarithmic scale. Its minimum is at (1, 1, 1)."""
    x = np.array([trial.suggest_float(f"x{j}", -2.0, 2.0) for j in range(3)])
    return float(np.log10(0.1 + np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)))


# %%
# The best value so far, as the mean of five seeds; the band has the lowest and the highest.
samplers = {
    "random search": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "ThompsonSampler": lambda seed: ThompsonSampler(seed=seed),
}
figure, axes = plt.subplots(figsize=(7, 4))
for name, sampler in samplers.items():
    best = np.empty((SEEDS, TRIALS))
    for seed in range(SEEDS):
        study = optuna.create_study(sampler=sampler(seed))
        study.optimize(loss, n_trials=TRIALS)
        best[seed] = np.minimum.accumulate([trial.value for trial in study.trials])
    axes.plot(range(1, TRIALS + 1), best.mean(axis=0), label=name)
    axes.fill_between(range(1, TRIALS + 1), best.min(axis=0), best.max(axis=0), alpha=0.2)
axes.set(
    xlabel="trials",
    ylabel="lowest value so far (log10)",
    title="Rosenbrock's function of three variables",
)
axes.legend()
figure.tight_layout()

# %%
# The first ten trials are quasi-random; then the curves part. Further comparisons are on :doc:`/benchmarks/index`.
