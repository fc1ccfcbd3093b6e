"""
A score that only falls with the price
======================================

Shops want a cheaper product never to rank lower for being cheaper. ``monotone`` keeps a model to that. The effect of a
feature is how the score changes when the feature of a document changes and all else stays.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART
from ranktune.docs.shop import write_shop

with tempfile.TemporaryDirectory() as folder:
    write_shop(Path(folder))
    queries = ranktune.read(Path(folder) / "shop.csv", qid="search", grade="bought", drop="sku,day")

# %%
# Two models of the same log, one of them with the constraint.
figure, axes = plt.subplots(figsize=(7, 4))
for label, monotone in {"free": None, "monotone={'price': -1}": {"price": -1}}.items():
    data = queries if monotone is None else queries.constrained(monotone)
    model = LambdaMART(trees=200).fit(data).as_model(feature_names=queries.feature_names)
    curves = ranktune.explain(model, queries, effect_of="price")["effects"]
    points = np.array(
        [[point["value"], point["effect"]] for point in curves if point["value"] is not None]
    )
    axes.plot(points[:, 0], points[:, 1], drawstyle="steps-post", label=label)
axes.set_xscale("log")
axes.set(
    xlabel="price",
    ylabel="effect on the score",
    title="The effect of the price in two models of the shop's log",
)
axes.legend()
figure.tight_layout()
