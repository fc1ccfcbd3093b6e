"""
A category becomes one feature a value
======================================

A column of text whose values recur, such as a brand, becomes a feature for each value. Dates become ages. Both happen while
a table is read, and the model file keeps how.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import ranktune
from ranktune.docs.shop import write_shop

with tempfile.TemporaryDirectory() as folder:
    write_shop(Path(folder))
    queries = ranktune.read(Path(folder) / "shop.csv", qid="search", grade="bought", drop="sku,day")
print(queries.feature_names)

# %%
# The log of this invented shop prefers one brand. The weights of a linear model show which, since all four features are 0
# or 1.
ranker = ranktune.RankSVM().fit(queries)
weights = dict(zip(queries.feature_names, ranker.coef_, strict=True))
brands = {name: weight for name, weight in weights.items() if name.startswith("brand=")}

figure, axes = plt.subplots(figsize=(7, 3))
axes.barh(list(brands), list(brands.values()), height=0.6)
axes.axvline(0, color="black", linewidth=1)
axes.set(
    xlabel="weight: what the value adds to the score",
    ylabel="",
    title="The brands in a model of the shop's log",
)
figure.tight_layout()
