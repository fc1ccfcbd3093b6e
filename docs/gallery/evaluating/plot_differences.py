"""
Two rankings, query by query
============================

A mean says little about which queries gain. :func:`ranktune.compare` tests the paired differences; the picture shows them.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
test = split.test
ranker = RankSVM(C=0.01, scaling="standard").fit(split.train)
model = ranker.predict(test)
bm25 = test.features[:, list(test.feature_names).index("bm25")]
print(ranktune.compare(model, bm25, test))

# %%
# Sorted differences of NDCG@10. Most queries gain, some lose.
metric = ranktune.parse_metric("ndcg@10")
difference = np.sort(metric.per_query(model, test) - metric.per_query(bm25, test))
difference = difference[np.isfinite(difference)]
figure, axes = plt.subplots(figsize=(7, 4))
axes.bar(range(len(difference)), difference, width=1.0, color=np.where(difference < 0, "C3", "C0"))
axes.axhline(difference.mean(), color="black", linewidth=1, label=f"mean {difference.mean():+.3f}")
axes.set(xlabel="test query, sorted", ylabel="difference of NDCG@10", title="RankSVM less BM25")
axes.legend()
figure.tight_layout()
