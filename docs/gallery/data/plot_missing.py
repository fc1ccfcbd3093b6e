"""
Missing values need no repair
=============================

A missing value is not 0. RankTune keeps it as missing: trees send it to the better side of each split, linear solvers learn
what a missing value adds to the score. ``missing="zero"`` reads it as 0, as many tools do.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART, RankSVM

# %%
# Products are bought that match the search and have good ratings. A rating is between 1 and 5, and some have none.
generator = np.random.default_rng(0)
QUERIES, LENGTH = 300, 12
rows = QUERIES * LENGTH
match, rating = generator.gamma(2, 1, rows), generator.normal(4, 0.6, rows).clip(1, 5)
wish = match + 2 * (rating - 4) + generator.normal(0, 0.5, rows)
grades = np.digitize(wish, np.quantile(wish, [0.7, 0.9]))
metric = ranktune.parse_metric("ndcg@10")


def quality(ranker, share: float, filled: bool) -> float:
    """Return NDCG@10 on test queries where a share of the ratings is missing."""
    missing = np.random.default_rng(1).random(rows) < share
    X = np.column_stack([match, np.where(missing, 0.0 if filled else np.nan, rating)])
    queries = ranktune.Queries.from_arrays(X, grades, group=[LENGTH] * QUERIES)
    train, test = queries.select(np.arange(200)), queries.select(np.arange(200, QUERIES))
    return metric.mean(ranker.fit(train).predict(test), test)


# %%
# More and more ratings are missing, in training and in test queries alike.
shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
figure, axes = plt.subplots(figsize=(7, 4))
for color, ranker in (("C0", RankSVM()), ("C1", LambdaMART())):
    name = type(ranker).__name__
    axes.plot(
        shares,
        [quality(ranker, share, False) for share in shares],
        "o-",
        color=color,
        label=f"{name}, kept",
    )
    axes.plot(
        shares,
        [quality(ranker, share, True) for share in shares],
        "o:",
        color=color,
        label=f"{name}, read as 0",
    )
axes.set(
    xlabel="share of ratings that is missing",
    ylabel="NDCG@10 on test queries",
    title="Missing ratings",
)
axes.legend()
figure.tight_layout()

# %%
# A linear model takes 0 for a very bad rating, and loses much. Trees can split 0 off, since no rating is 0; a price or an age
# of 0 would mislead them too.
