"""
How many queries does a test need?
==================================

A mean over queries is uncertain: other queries would give another one. :func:`ranktune.evaluate` gives a 95 percent interval,
by a bootstrap over queries. Four times the queries halve it.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
ranker = RankSVM().fit(split.train.select(np.arange(300)))
rest = split.train.select(np.arange(300, split.train.n_queries))
order = np.random.default_rng(0).permutation(rest.n_queries)

# %%
# The same model on ever more test queries. The samples contain each other, so that the means approach each other.
sizes = [10, 20, 40, 80, 160, 320, rest.n_queries]
intervals = []
for size in sizes:
    sample = rest.select(np.sort(order[:size]))
    value = ranktune.evaluate(ranker.predict(sample), sample)["metrics"]["ndcg@10"]
    intervals.append([value["mean"], *value["interval"]])
mean, low, high = np.array(intervals).T

figure, axes = plt.subplots(figsize=(7, 4))
axes.errorbar(sizes, mean, yerr=[mean - low, high - mean], fmt="o", capsize=4)
axes.axhline(mean[-1], color="grey", linestyle=":", label="mean over all queries")
axes.set_xscale("log")
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.minorticks_off()
axes.set(
    xlabel="test queries",
    ylabel="NDCG@10 with 95 % interval",
    title="One model, more and more test queries",
)
axes.legend()
figure.tight_layout()
