"""
One ranking, many metrics
=========================

What is best depends on how far users read. NDCG rewards good documents at the top, recall asks what share was found at all,
precision what share of the list is relevant.
"""

import matplotlib.pyplot as plt

import ranktune
from ranktune import RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
test = split.test
rankings = {
    "RankSVM": RankSVM().fit(split.train).predict(test),
    "BM25": test.features[:, list(test.feature_names).index("bm25")],
}

# %%
# :func:`ranktune.parse_metric` takes the name of a metric with its cutoff.
cutoffs = [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50]
figure, panels = plt.subplots(1, 3, figsize=(7, 3.2), sharey=True)
for axes, name in zip(panels, ("ndcg", "recall", "precision"), strict=True):
    for label, scores in rankings.items():
        values = [ranktune.parse_metric(f"{name}@{k}").mean(scores, test) for k in cutoffs]
        axes.plot(cutoffs, values, "o-", markersize=4, label=label)
    axes.set(xlabel="cutoff k", title=f"{name}@k", ylim=(0, 1.02))
panels[0].set_ylabel("mean over test queries")
panels[0].legend(loc="lower right")
figure.tight_layout()

# %%
# Recall of both ends at 1, since every query has 50 documents here. Precision falls, since few of them are relevant.
