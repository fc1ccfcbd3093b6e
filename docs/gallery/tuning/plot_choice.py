"""
The winner of validation is not the winner of test
==================================================

Many models are compared on the same validation queries, and the best one is chosen. Its validation score is too high on
average, and on other queries it is lower.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import RidgeRanker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")
vali, test = split.vali.select(np.arange(60)), split.test

# %%
# The models: 80 ridge regressions, each on half of the features, drawn at random. There are 60 validation queries.
generator = np.random.default_rng(0)
scores = []
for _ in range(80):
    columns = np.sort(generator.permutation(vali.n_features)[: vali.n_features // 2])
    ranker = RidgeRanker().fit(split.train.with_columns(columns))
    scores.append(
        [metric.mean(ranker.predict(part.with_columns(columns)), part) for part in (vali, test)]
    )
on_vali, on_test = np.array(scores).T
best = on_vali.argmax()

# %%
# Differences to the mean of all models: validation queries and test queries are not equally hard.
x, y = on_vali - on_vali.mean(), on_test - on_test.mean()
figure, axes = plt.subplots(figsize=(7, 4.5))
axes.scatter(x, y, s=18, label="a model")
axes.scatter(x[best], y[best], s=80, color="C3", marker="D", label="best of validation")
ends = [x.min(), x.max()]
axes.plot(ends, ends, color="grey", linestyle=":", label="as good on test as on validation")
axes.set(
    xlabel="NDCG@10 on validation queries, less the mean",
    ylabel="NDCG@10 on test queries, less the mean",
    title="80 models on 60 validation queries",
)
axes.legend()
figure.tight_layout()

# %%
# The best of validation lies below the dotted line: it is better than the mean, but by less than validation promised.
# A study corrects its estimate for that, see :doc:`/explanation/choosing`.
print(f"ahead of the mean by {x[best]:.3f} on validation queries, by {y[best]:.3f} on test queries")
