"""
What the best model costs
=========================

Features have a price: some are stored with the document, others need a second system for each query. A study with
``costs`` and ``within`` finds the best model for a budget. Several budgets give the front of quality and cost.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
train, vali, test = (
    split.train.select(np.arange(300)),
    split.vali.select(np.arange(150)),
    split.test,
)

# %%
# Suppose that BM25 scores cost 1 each, TF-IDF 5, what counts mentions 20, and everything else 2.
costs = {name: 2 for name in train.feature_names}
costs |= {name: 1 for name in costs if name.startswith("bm25")} | {
    name: 5 for name in costs if name.startswith("tfidf")
}
costs |= {name: 20 for name in costs if name.startswith("mention")}
budgets = [5, 10, 20, 40, 80]
with tempfile.TemporaryDirectory() as home:
    study = {
        "vali": vali,
        "test": test,
        "solvers": "RidgeRanker",
        "trials": 2,
        "costs": costs,
        "home": home,
        "jobs": 1,
    }
    rows = [
        ranktune.tune(train, within=f"cost<={budget}", name=f"budget-{budget}", **study).best
        for budget in budgets
    ]

# %%
# The cost of a model is what the features with a weight cost together.
figure, axes = plt.subplots(figsize=(7, 4))
values = np.array([[row.test.mean, row.test.low, row.test.high] for row in rows]).T
spread = [values[0] - values[1], values[2] - values[0]]
axes.errorbar([row.cost for row in rows], values[0], yerr=spread, fmt="o-", capsize=3)
axes.axvline(sum(costs.values()), color="grey", linestyle=":", label="all features")
axes.set_xscale("log")
axes.set(
    xlabel="cost of the features",
    ylabel="NDCG@10 on test queries, 95 % interval",
    title="Quality by budget",
)
axes.legend(loc="lower right")
figure.tight_layout()
