"""
A path of C from one fit
========================

:class:`ranktune.solvers.RankSVM` fits a whole path of its strength C at little more than the cost of one value: each fit
starts where the last one ended. A trial of a study takes the best of the path.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")
values = np.logspace(-6, 1, 15)
curve = [
    (
        C,
        metric.mean(ranker.predict(split.train), split.train),
        metric.mean(ranker.predict(split.vali), split.vali),
    )
    for C, ranker in RankSVM(scaling="standard").fit_path(split.train, values)
]
strengths, train, vali = np.array(curve).T

figure, axes = plt.subplots(figsize=(7, 4))
axes.semilogx(strengths, train, "o-", label="training queries")
axes.semilogx(strengths, vali, "s-", label="validation queries")
axes.set(xlabel="C", ylabel="NDCG@10", title="RankSVM on api-search")
axes.legend()
figure.tight_layout()

# %%
# The strength that validation queries prefer:
print(f"best C {strengths[vali.argmax()]:.2g}, NDCG@10 {vali.max():.4f} on the validation queries")
