"""
Loss, penalty and optimizer chosen by Thompson sampling
=======================================================

:class:`ranktune.Ranker` is composed of a loss, a weight of pairs, a penalty and an optimizer. The preset ``elasticrank``
searches them with a Gaussian process: each suggestion maximises one function that is drawn from it.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers.data.api_search.dataset import load_split

MARKS = "os^Dv*<>ph"

split = load_split()
train = split.train.select(np.arange(150))
with tempfile.TemporaryDirectory() as home:
    result = ranktune.tune(
        train, vali=split.vali, home=home, preset="elasticrank", plan="split", trials=20
    )
    trials = [trial for trial in result.optuna_study.trials if trial.value is not None]

# %%
# Each point is a trial: its colour shows the loss, its shape the optimizer. The line is the best score so far. Trials far
# below it are not shown.


def part(trial, name):
    """Return a part of the composition, whose name may have a condition in brackets."""
    return next(
        (str(v) for key, v in trial.params.items() if key.partition("[")[0] == f"Ranker.{name}"),
        "none",
    )


losses = sorted({part(trial, "loss") for trial in trials})
optimizers = sorted({part(trial, "optimizer") for trial in trials})
figure, axes = plt.subplots(figsize=(7, 4), num="composition", layout="constrained")
for number, trial in enumerate(trials, 1):
    colour = f"C{losses.index(part(trial, 'loss'))}"
    axes.plot(number, trial.value, MARKS[optimizers.index(part(trial, "optimizer"))], color=colour)
axes.step(
    range(1, len(trials) + 1),
    np.maximum.accumulate([t.value for t in trials]),
    where="post",
    color="grey",
)
for k, loss in enumerate(losses):
    axes.plot([], [], "o", color=f"C{k}", label=loss.replace("_", " "))
for k, optimizer in enumerate(optimizers):
    axes.plot([], [], MARKS[k], color="grey", label=optimizer.replace("_", " "))
best = max(trial.value for trial in trials)
axes.set(ylim=(best - 0.05, best + 0.005), xlim=(0, len(trials) + 1))
axes.set(
    xlabel="trials", ylabel="NDCG@10 on validation queries", title="A study of Ranker on api-search"
)
figure.legend(loc="outside right upper", fontsize=8)

# %%
# The first trials are the defaults and quasi-random points. Then the model prefers compositions that were good, and
# tries others where it is uncertain. :doc:`/explanation/optimiser` explains how.
