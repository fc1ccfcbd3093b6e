"""
A sparse model costs little
===========================

An L1 penalty sets weights to exactly 0. Features without a weight need not be computed when the model serves.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import L1, OWLQN, PairwiseLogistic, Ranker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")
strengths = np.logspace(-3, 0, 9)

used, quality = [], []
for strength in strengths:
    ranker = Ranker(PairwiseLogistic(), None, L1(strength), OWLQN(), scaling="standard").fit(
        split.train
    )
    used.append(np.count_nonzero(ranker.coef_))
    quality.append(metric.mean(ranker.predict(split.vali), split.vali))

# %%
# Each point is one strength of the penalty.
figure, axes = plt.subplots(figsize=(7, 4))
points = axes.scatter(used, quality, c=np.log10(strengths), cmap="viridis", zorder=3)
axes.plot(used, quality, color="0.7")
figure.colorbar(points, label="log10 of the strength")
axes.set(
    xlabel="features with a weight",
    ylabel="NDCG@10 on validation queries",
    title="Pairwise logistic loss with L1",
)
figure.tight_layout()

# %%
# The curve flattens to the right: the last features add little. ``ranktune tune --within 'features<=10'`` searches the best
# model of so many features, see :doc:`/howto/constraints`.
