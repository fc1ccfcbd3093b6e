"""
Two stages: rescore the first documents only
============================================

A cheap model ranks all documents, and the full model only the first ones of its ranking, the window. How large must the
window be?
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import LambdaMART, RidgeRanker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
train, test = split.train, split.test
metric = ranktune.parse_metric("ndcg@10")
cheap = [j for j, name in enumerate(train.feature_names) if name.startswith("bm25")]

# %%
# The first stage has the BM25 features alone, and learns the order of the full model.
full = LambdaMART().fit(train)
targets = ranktune.Queries.from_arrays(
    train.features[:, cheap], full.predict(train), group=train.lengths
)
first = RidgeRanker().fit(targets).predict(test.features[:, cheap])
scores = full.predict(test)


def staged(window: int) -> np.ndarray:
    """Return scores with which the first documents of each query are ordered by the full model, the others follow."""
    order = np.lexsort([-first, test.query_of_document])
    place = np.empty(test.n_documents, dtype=int)
    place[order] = np.concatenate([np.arange(length) for length in test.lengths])
    return np.where(place < window, scores - scores.min() + 1, -place)


# %%
# The larger the window, the nearer to the full model, and the more documents are rescored.
windows = [1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 50]
figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(
    windows, [metric.mean(staged(window), test) for window in windows], "o-", label="two stages"
)
axes.axhline(
    metric.mean(scores, test), color="grey", linestyle=":", label="full model on all documents"
)
axes.axhline(metric.mean(first, test), color="C1", linestyle="--", label="first stage alone")
axes.set(
    xlabel="window: documents a query that are rescored",
    ylabel="NDCG@10 on test queries",
    title="Two stages",
)
axes.legend()
figure.tight_layout()

# %%
# Search engines score the first documents by an exported model: :doc:`/howto/serving` says what the window is called
# there.
