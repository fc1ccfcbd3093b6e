"""
Compare on the same queries
===========================

Queries differ in how hard they are, and both models meet the same ones. The difference of two models on the same queries is
therefore known much better than the difference of two means: a paired test finds what two intervals hide.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import LogisticRanker, RankSVM, RidgeRanker, SVRRanker
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
test = split.test
metric = ranktune.parse_metric("ndcg@10")
best = RankSVM().fit(split.train).predict(test)

# %%
# The interval of the difference to RankSVM: once as if the two models had been tested on different queries, once paired by
# :func:`ranktune.compare`.
figure, axes = plt.subplots(figsize=(7, 4))
names = []
for k, ranker in enumerate((RidgeRanker(), SVRRanker(), LogisticRanker())):
    scores = ranker.fit(split.train).predict(test)
    paired = ranktune.compare(scores, best, test)
    ours, theirs = metric.per_query(scores, test), metric.per_query(best, test)
    half = 1.96 * np.sqrt(np.nanvar(ours) / len(ours) + np.nanvar(theirs) / len(theirs))
    axes.errorbar(paired.difference, k - 0.12, xerr=half, fmt="o", color="C1", capsize=4)
    limits = [[paired.difference - paired.low], [paired.high - paired.difference]]
    axes.errorbar(paired.difference, k + 0.12, xerr=limits, fmt="s", color="C0", capsize=4)
    names.append(f"{type(ranker).__name__}\np = {paired.p_randomisation:.4f}")
axes.axvline(0, color="black", linewidth=1)
axes.set_yticks(range(len(names)), names)
axes.plot([], [], "o-", color="C1", label="two samples of queries")
axes.plot([], [], "s-", color="C0", label="paired by query")
axes.set(
    xlabel="NDCG@10 less that of RankSVM, 95 % interval",
    ylabel="",
    title="The same differences, two intervals",
)
figure.legend(loc="lower center", ncols=2)
figure.tight_layout(rect=(0, 0.08, 1, 1))

# %%
# An interval beside 0 is a significant difference. Whoever makes many comparisons corrects the p values, as the column
# ``p Holm`` of a leaderboard does.
