"""
A small copy of a large model
=============================

:func:`ranktune.solvers.distil` learns the scores of a model with fewer trees. A copy has more to learn from than a model that
is trained on grades: every document has its own score, and few documents have a grade above 0.
"""

import matplotlib.pyplot as plt

import ranktune
from ranktune.solvers import LambdaMART, distil
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
metric = ranktune.parse_metric("ndcg@10")
large = (
    LambdaMART(trees=300, leaves=16)
    .fit(split.train)
    .as_model(feature_names=split.train.feature_names)
)

# %%
# For each number of trees, a copy of the large model and a model that is trained on the grades.
counts = [5, 10, 20, 40, 80]
copies, trained = [], []
for trees in counts:
    copies.append(
        metric.mean(distil(large, split.train, trees=trees).predict(split.test), split.test)
    )
    trained.append(
        metric.mean(
            LambdaMART(trees=trees, leaves=16).fit(split.train).predict(split.test), split.test
        )
    )

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(counts, copies, "o-", label="copies of the large model")
axes.plot(counts, trained, "s-", label="trained on the grades")
axes.axhline(
    metric.mean(large.predict(split.test), split.test),
    color="grey",
    linestyle=":",
    label="large model, 300 trees",
)
axes.set(xlabel="trees", ylabel="NDCG@10 on test queries", title="Few trees")
axes.legend()
figure.tight_layout()
