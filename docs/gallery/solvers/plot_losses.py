"""
Linear rankers differ in their loss
===================================

All solvers here learn one weight per feature. They differ in what they minimise: the error of single grades
(pointwise), of pairs of documents (pairwise), or of whole rankings (listwise).
"""

import matplotlib.pyplot as plt

import ranktune
from ranktune.solvers import BestFeature, ListNet, LogisticRanker, RankSVM, RidgeRanker, SVRRanker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
rankers = {
    "BestFeature (one feature)": BestFeature(),
    "RidgeRanker (pointwise)": RidgeRanker(),
    "SVRRanker (pointwise)": SVRRanker(),
    "LogisticRanker (pointwise)": LogisticRanker(),
    "RankSVM (pairwise)": RankSVM(),
    "ListNet (listwise)": ListNet(),
}

# %%
# Every ranker has its defaults. :func:`ranktune.evaluate` gives the mean over the test queries and its 95 percent
# interval.
names, means, low, high = [], [], [], []
for name, ranker in rankers.items():
    scores = ranker.fit(split.train).predict(split.test)
    result = ranktune.evaluate(scores, split.test)["metrics"]["ndcg@10"]
    names.append(name)
    means.append(result["mean"])
    low.append(result["mean"] - result["interval"][0])
    high.append(result["interval"][1] - result["mean"])

figure, axes = plt.subplots(figsize=(7, 3.6))
axes.errorbar(means, names, xerr=[low, high], fmt="o", capsize=4)
axes.invert_yaxis()
axes.set(xlabel="NDCG@10 on test queries, with 95 % interval", title="Linear rankers on api-search")
figure.tight_layout()

# %%
# The intervals of the linear models overlap: which of them is better needs a paired test, see
# :doc:`/examples/evaluating/plot_paired`. That all of them beat the best single feature is plain.
