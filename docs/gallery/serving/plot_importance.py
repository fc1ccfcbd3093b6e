"""
Which features matter
=====================

The importance of a feature is what the metric loses when its values are shuffled among the documents of each query. It
exists for every kind of model. Features that say the same share their importance: each can stand in for the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
model = LambdaMART().fit(split.train).as_model(feature_names=split.train.feature_names)

# %%
# :func:`ranktune.explain` gives the loss of each feature with its interval over queries; here on 100 test queries.
explanation = ranktune.explain(model, split.test, max_queries=100, repeats=3)
first = explanation["features"][:12]
loss = np.array([row["loss"] for row in first])
limits = np.array([row["interval"] for row in first]).T

figure, axes = plt.subplots(figsize=(7, 4.5))
axes.errorbar(
    loss,
    [row["feature"] for row in first],
    xerr=[loss - limits[0], limits[1] - loss],
    fmt="o",
    capsize=3,
)
axes.axvline(0, color="black", linewidth=1)
axes.invert_yaxis()
axes.set(
    xlabel="loss of NDCG@10 if the feature is shuffled, 95 % interval",
    title="The twelve features that matter most",
)
figure.tight_layout()
print(f"{len(explanation['features'])} features are used, {explanation['unused']} are not")
