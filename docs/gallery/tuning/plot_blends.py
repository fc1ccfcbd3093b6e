"""
Models that err on different queries are better together
========================================================

A blend is a weighted sum of the scores of models. Trees and weights make different errors, so that a part of them cancels.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART, RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")

# %%
# Scores of different models have different scales: each is divided by its standard deviation first.
parts = []
for ranker in (RankSVM(), LambdaMART()):
    scores = ranker.fit(split.train).predict(split.test)
    parts.append(scores / scores.std())
shares = np.linspace(0, 1, 21)
blends = [(1 - share) * parts[0] + share * parts[1] for share in shares]
values = [metric.mean(scores, split.test) for scores in blends]

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(shares, values, "o-")
axes.set(
    xlabel="share of LambdaMART, the rest is RankSVM",
    ylabel="NDCG@10 on test queries",
    title="Blends of two models",
)
figure.tight_layout()

# %%
# Where do they differ? A point is a query; the further from the diagonal, the more another model helps.
linear, trees = (metric.per_query(scores, split.test) for scores in parts)
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.scatter(linear, trees, s=14, alpha=0.5)
axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
axes.set(
    xlabel="NDCG@10 of RankSVM",
    ylabel="NDCG@10 of LambdaMART",
    title="The test queries",
    aspect="equal",
)
figure.tight_layout()
