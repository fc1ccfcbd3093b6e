"""
Boosting ends when validation queries gain no more
==================================================

Each round of boosting adds a tree. On the training queries every tree helps. On other queries the curve flattens: soon with
a large learning rate, late with a small one.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
train, vali = split.train.select(np.arange(400)), split.vali
metric = ranktune.parse_metric("ndcg@10")
rounds = [1, 2, 4, 8, 12, 18, 25, 35, 50, 70, 100, 140, 200, 300]

# %%
# :meth:`~ranktune.solvers.LambdaMART.fit_path` yields the model after each of these rounds, from one fit.
figure, axes = plt.subplots(figsize=(7, 4))
for color, rate in (("C0", 0.05), ("C1", 0.3)):
    curve = np.array(
        [
            (metric.mean(ranker.predict(train), train), metric.mean(ranker.predict(vali), vali))
            for _, ranker in LambdaMART(trees=300, learning_rate=rate).fit_path(train, rounds)
        ]
    )
    axes.semilogx(
        rounds, curve[:, 0], "--", color=color, label=f"learning rate {rate}, training queries"
    )
    axes.semilogx(
        rounds, curve[:, 1], color=color, label=f"learning rate {rate}, validation queries"
    )
axes.set(xlabel="rounds", ylabel="NDCG@10", title="LambdaMART trained on 400 queries")
axes.legend(fontsize=9)
figure.tight_layout()

# %%
# Validation queries given to ``fit`` end boosting early; ``patience`` says after how many rounds without improvement.
ranker = LambdaMART(trees=300, learning_rate=0.3, patience=30).fit(train, vali=vali)
print(f"{ranker.rounds_[0]} rounds are kept of 300")
