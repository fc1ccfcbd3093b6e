"""
Why one document ranks above another
====================================

The difference of two scores is the sum of the contributions of the features. For trees they are the Shapley values of the
difference.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune import LambdaMART
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
model = LambdaMART().fit(split.train).as_model(feature_names=split.train.feature_names)
explanation = ranktune.explain(model, split.test, query=split.test.query_ids[0])
first, second = explanation["documents"]
print(
    f"query {explanation['query']}: {first['id']} ({first['score']:.3f}) above {second['id']} ({second['score']:.3f})"
)

# %%
# From the score of the one to the score of the other, the largest contributions first. The rest is one step.
contributions = {each["feature"]: each["contribution"] for each in explanation["contributions"]}
names = list(contributions)[:9]
steps = [contributions[name] for name in names]
steps.append(explanation["difference"] - sum(steps))
names.append(f"{len(contributions) - 9} others")
ends = second["score"] + np.cumsum(steps)

figure, axes = plt.subplots(figsize=(7, 4.5))
axes.barh(
    names,
    steps,
    left=ends - steps,
    color=["C0" if step > 0 else "C3" for step in steps],
    height=0.7,
)
axes.axvline(
    second["score"], color="black", linestyle=":", label=f"{second['id']}, rank {second['rank']}"
)
axes.axvline(
    first["score"], color="black", linestyle="--", label=f"{first['id']}, rank {first['rank']}"
)
axes.invert_yaxis()
low, high = min(second["score"], ends.min()), ends.max()
axes.set_xlim(low - 0.1 * (high - low), high + 0.1 * (high - low))
axes.legend(loc="lower left")
axes.set(xlabel="score", title="From the second document to the first")
figure.tight_layout()
