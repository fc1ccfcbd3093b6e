"""
Pair weights decide which ranks matter
======================================

A pairwise loss counts every pair of documents alike, also those far down the list that nobody sees. Pair weights count a
pair by what the metric would lose if the two documents changed places.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import L2, DeltaNDCG, PairwiseLogistic, Ranker, Uniform

# %%
# Two of 40 documents are what was searched for (grade 3): they match the query. Of the others half are acceptable
# (grade 1): they are popular. A linear model cannot have both orders at once.
generator = np.random.default_rng(0)
QUERIES, LENGTH = 400, 40
grades = np.tile([3, 3] + [1] * 19 + [0] * 19, QUERIES)
match = generator.normal(np.where(grades == 3, 1.5, 0.0))
popularity = generator.normal(np.where(grades == 1, 1.0, -0.5))
X = np.column_stack([match, popularity])
queries = ranktune.Queries.from_arrays(
    X, grades, group=[LENGTH] * QUERIES, feature_names=["match", "popularity"]
)
train, test = queries.select(np.arange(200)), queries.select(np.arange(200, QUERIES))

# %%
# The loss, the penalty and the optimizer are the same for both.
metrics = {"NDCG@10": "ndcg@10", "share of all pairs\nthat are right": "pairwise"}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 4))
for k, (name, weight) in enumerate(
    {"every pair counts 1": Uniform(), "weighted for NDCG@10": DeltaNDCG(10)}.items()
):
    ranker = Ranker(PairwiseLogistic(), weight, L2(0.001), "gradient_steps", scaling="standard")
    scores = ranker.fit(train).predict(test)
    left.bar(np.arange(2) + 0.4 * (k - 0.5), ranker.coef_, width=0.4, label=name)
    values = [ranktune.parse_metric(metric).mean(scores, test) for metric in metrics.values()]
    right.bar(np.arange(2) + 0.4 * (k - 0.5), values, width=0.4)
left.set_xticks([0, 1], ["match", "popularity"])
left.set(xlabel="feature", ylabel="weight", title="What is learned")
right.set_xticks([0, 1], list(metrics))
right.set(xlabel="metric", ylabel="mean over test queries", title="Quality of the ranking")
figure.legend(loc="lower center", ncols=2)
figure.tight_layout(rect=(0, 0.07, 1, 1))

# %%
# With all pairs alike, more pairs are right. With pair weights, the first ranks are better.
