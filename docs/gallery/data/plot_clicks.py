"""
Clicks are grades after a correction
====================================

What is shown first is clicked most, relevant or not. Divide the clicks of a rank by the share of users who look at it, and
their mean is the relevance again: a grade that is any number, which RankTune takes as it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import RidgeRanker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
train, test = split.train, split.test
metric = ranktune.parse_metric("ndcg@10")
generator = np.random.default_rng(0)

# %%
# Simulated users see the order of BM25. They look at rank r with probability 1 / r, and click what they looked at with
# probability 0.05, 0.5 or 0.9 by its true grade.
bm25 = train.features[:, list(train.feature_names).index("bm25")]
order = np.lexsort([-bm25, train.query_of_document])
rank = np.empty(train.n_documents)
rank[order] = np.concatenate([np.arange(1, length + 1) for length in train.lengths])
looked = 1 / rank
relevance = np.array([0.05, 0.5, 0.9])[train.grades.astype(int)]


def trained_on(grades: np.ndarray) -> float:
    """Return NDCG@10 by true grades, on test queries, of a model that was trained on other grades."""
    queries = ranktune.Queries.from_arrays(train.features, grades, group=train.lengths)
    return metric.mean(RidgeRanker().fit(queries).predict(test), test)


# %%
# The grade of a document is its share of clicks in n searches, as it is or divided by the share of looks.
searches = [1, 3, 10, 30, 100, 300, 1000]
clicked, corrected = [], []
for n in searches:
    share = generator.binomial(n, looked * relevance) / n
    clicked.append(trained_on(share))
    corrected.append(trained_on(share / looked))

figure, axes = plt.subplots(figsize=(7, 4))
axes.semilogx(searches, corrected, "s-", label="clicks divided by the share of looks")
axes.semilogx(searches, clicked, "o-", label="clicks as they are")
axes.axhline(trained_on(train.grades), color="grey", linestyle=":", label="true grades")
axes.set(
    xlabel="searches of each query",
    ylabel="NDCG@10 by true grades, test queries",
    title="Learning from clicks",
)
axes.legend()
figure.tight_layout()

# %%
# More searches do not help the model that learns from clicks as they are: it learns to repeat BM25. The corrected grades
# come to what true grades give.
