"""
Trees need more queries than weights
====================================

The learning curve of a ranker: its quality on the same test queries, by the number of queries that it was trained on.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART, RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")
sizes = [10, 20, 40, 80, 160, 320, 640, split.train.n_queries]

# %%
# Small samples differ much from each other: each size is drawn three times, and the band shows the lowest and the highest.
figure, axes = plt.subplots(figsize=(7, 4))
for ranker in (RankSVM(), LambdaMART()):
    values = np.empty((3, len(sizes)))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(split.train.n_queries)
        for k, size in enumerate(sizes):
            ranker.fit(split.train.select(np.sort(order[:size])))
            values[seed, k] = metric.mean(ranker.predict(split.test), split.test)
    axes.semilogx(sizes, values.mean(axis=0), "o-", label=type(ranker).__name__)
    axes.fill_between(sizes, values.min(axis=0), values.max(axis=0), alpha=0.2)
axes.set(
    xlabel="training queries",
    ylabel="NDCG@10 on test queries",
    title="Learning curves on api-search",
)
axes.legend()
figure.tight_layout()

# %%
# With few queries the linear model is ahead, with many the trees. A curve that still rises says that more queries would help
# more than more trials.
