"""
Documents without a judgement
=============================

Documents that old rankings showed have been judged. A new ranking shows others, which have no grade. Counting them as
irrelevant, as most tools do, lowers the value of the new ranking; leaving them out compares both on known grades.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
test = split.test
metric = ranktune.parse_metric("ndcg@10")
bm25 = test.features[:, list(test.feature_names).index("bm25")]
model = RankSVM().fit(split.train).predict(test)

# %%
# Suppose that the first documents by BM25 were judged, and no others.
rank = np.concatenate(
    [np.argsort(np.argsort(-bm25[a:b])) for a, b in zip(test.starts, test.starts[1:], strict=False)]
)
query = test.query_of_document
depths = [2, 3, 5, 8, 12, 20, 30, 50]
curves = {"as irrelevant": [], "left out": []}
for depth in depths:
    judged = rank < depth
    irrelevant = ranktune.Queries.from_arrays(
        test.features, np.where(judged, test.grades, 0), qid=query
    )
    left = ranktune.Queries.from_arrays(
        test.features[judged], test.grades[judged], qid=query[judged]
    )
    curves["as irrelevant"].append(metric.mean(model, irrelevant) - metric.mean(bm25, irrelevant))
    curves["left out"].append(metric.mean(model[judged], left) - metric.mean(bm25[judged], left))

figure, axes = plt.subplots(figsize=(7, 4))
for (label, values), marker in zip(curves.items(), "os", strict=True):
    axes.plot(depths, values, f"{marker}-", label=f"documents without judgment {label}")
axes.axhline(curves["left out"][-1], color="grey", linestyle=":", label="all documents judged")
axes.axhline(0, color="black", linewidth=1)
axes.set(
    xlabel="documents a query that are judged, by BM25",
    ylabel="NDCG@10, model less BM25",
    title="The gain of a new model that incomplete judgments show",
)
axes.legend()
figure.tight_layout()

# %%
# Both hide a part of the gain, since what was found deep in the list has no grade. Without the unjudged documents less is
# hidden.
