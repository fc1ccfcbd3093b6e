"""
Noisy rankings make the objective of boosting smooth
====================================================

LambdaMART weights a pair of documents by what NDCG would change if the two swapped places. This weight jumps where a document
passes another one. Its mean over noisy rankings does not, and pairs that are close count although no swap has occurred yet.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import GBDTRanker, LambdaMART
from ranktune.solvers.boosting.objectives import QueryError, SmoothedPairs
from ranktune.solvers.data.api_search.dataset import load_split
from ranktune.solvers.losses.smoothed.weights import changes

# %%
# One query of eight documents. The first has grade 2, and its score moves past those of the others.
grades = np.array([2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
others = np.array([2.4, 1.7, 0.9, 0.3, -0.5, -1.2, -2.1])
positions = np.linspace(-4, 4, 161)
gain = 2**grades - 1
ideal = np.sort(gain)[::-1] @ (1 / np.log2(np.arange(2, 10)))
noise = np.random.default_rng(0).gumbel(size=(3000, 8))


def by_metric(ranks):
    """Return the change of NDCG if the first document and another one swap places."""
    discount = 1 / np.log2(2 + ranks)
    return abs(gain - gain[0]) * abs(discount - discount[:, :1]) / ideal


def by_neighbours(ranks):
    """Return the difference of the grades of neighbours, times 0.85 for each rank above them."""
    near = abs(ranks - ranks[:, :1]) == 1
    return near * abs(grades - grades[0]) * 0.85 ** np.minimum(ranks, ranks[:, :1])


# %%
# The weight of a pair is its mean over rankings: the one of the scores, or many of the scores with Gumbel noise.
losses = {
    "lambdarank": (by_metric, np.zeros((1, 8))),
    "smoothed": (by_metric, noise),
    "yetirank": (by_neighbours, noise),
}
weights = {name: np.empty((len(positions), 8)) for name in losses}
scores = np.array([[position, *others] for position in positions])
for name, (weight, shifts) in losses.items():
    for k in range(len(positions)):
        ranks = (-(scores[k] + shifts)).argsort(axis=1).argsort(axis=1)
        weights[name][k] = weight(ranks).mean(axis=0)

figure, panels = plt.subplots(1, 3, num="objective-weights", figsize=(9, 3.4), sharex=True)
for axes, name in zip(panels, losses, strict=True):
    for other, style in ((1, "-"), (4, "--"), (7, ":")):
        label = f"with the document at {others[other - 1]:g}"
        axes.plot(positions, weights[name][:, other], style, label=label)
    unit = "NDCG" if losses[name][0] is by_metric else "grades"
    axes.set(xlabel="score of the document", ylabel=f"weight ({unit})", title=name, ylim=(0, None))
figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3)
figure.tight_layout(rect=(0, 0.09, 1, 1))

# %%
# The gradient of a document sums over its pairs. Squared error is a line: it also pulls down a document that is first
# already. With the ten noisy rankings of a round, the gradient of a smoothed metric is around its mean.
sign = np.sign(grades[0] - grades)
slope = sign / (1 + np.exp(sign * (scores[:, :1] - scores)))
pushes = {name: (weights[name] * slope).sum(axis=1) for name in losses}
query = ranktune.Queries.from_arrays(np.zeros((8, 1)), grades, group=[8])
error = QueryError(query, grades)
pushes["squared error"] = np.array([-error.derivatives(s)[0][0] for s in scores])

figure, (left, right) = plt.subplots(1, 2, num="objective-gradients", figsize=(9, 3.6))
for (name, push), style in zip(pushes.items(), ("-", "-", "-", "--"), strict=True):
    left.plot(positions, push / abs(push).max(), style, label=name)
left.axhline(0, color="grey", linestyle=":")
left.set(
    xlabel="score of the document", ylabel="push upwards, largest = 1", title="Gradient by loss"
)
left.set_ylim(-1.2, 1.1)
left.legend(fontsize=9, loc="lower left")

ndcg = changes(query, ranktune.parse_metric("ndcg@10"), gain, 8)
for samples, style, label in ((10, ".", "a round, 10 rankings"), (3000, "-", "3,000 rankings")):
    objective = SmoothedPairs(query, ndcg, samples, seed=0)
    push = [-objective.derivatives(s, number)[0][0] for number, s in enumerate(scores)]
    right.plot(positions, push, style, label=label, color="C1", alpha=0.6 if samples == 10 else 1)
right.set(
    xlabel="score of the document", ylabel="push upwards", title="smoothed: what a round draws"
)
right.legend(fontsize=9)
figure.tight_layout()

# %%
# On the example data, with the same trees and penalty, the losses over noisy rankings begin lower. After some thirty rounds
# they are close to lambdarank.
split = load_split()
metric = ranktune.parse_metric("ndcg@10")
rounds = [1, 2, 4, 8, 12, 18, 25, 35, 50, 70, 100, 150]
small = {"trees": rounds[-1], "leaves": 8}
rankers = {name: LambdaMART(loss=name, **small) for name in losses}
rankers["squared error"] = GBDTRanker(**small)
figure, axes = plt.subplots(num="objective-rounds", figsize=(7, 4))
for (name, ranker), style in zip(rankers.items(), ("-", "-", "-", "--"), strict=True):
    path = ranker.fit_path(split.train, rounds)
    curve = [metric.mean(fitted.predict(split.vali), split.vali) for _, fitted in path]
    axes.semilogx(rounds, curve, style, label=name)
axes.set(
    xlabel="rounds", ylabel="NDCG@10 on validation queries", title="Trees of 8 leaves, one seed"
)
axes.legend()
figure.tight_layout()

# %%
# :doc:`/explanation/boosting` has the formulas, and the results of a benchmark on many tasks.
