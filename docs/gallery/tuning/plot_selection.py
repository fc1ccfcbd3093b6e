"""
The best of many scores is too high
===================================

All configurations of this simulation are equally good: their true value is 0.60, and the score of each trial has noise. The
highest score of a study rises with the number of trials all the same. The correction repeats the choice on one half of the
queries and evaluates it on the other.
"""

import matplotlib.pyplot as plt
import numpy as np

generator = np.random.default_rng(0)
TRUE, DEVIATION, QUERIES = 0.60, 0.25, 400

trials = np.array([1, 2, 5, 10, 20, 50, 100])
reported, corrected = [], []
for n in trials:
    highest, honest = [], []
    for _ in range(400):
        values = generator.normal(TRUE, DEVIATION, (n, QUERIES))
        highest.append(values.mean(axis=1).max())
        halves = generator.permutation(QUERIES).reshape(2, -1)
        chosen = values[:, halves[0]].mean(axis=1).argmax()
        honest.append(values[chosen, halves[1]].mean())
    reported.append(np.mean(highest))
    corrected.append(np.mean(honest))

figure, axes = plt.subplots(figsize=(7, 4))
axes.semilogx(trials, reported, "o-", label="highest score, as it stands")
axes.semilogx(trials, corrected, "s-", label="choice on one half, value on the other")
axes.axhline(TRUE, color="grey", linestyle=":", label="true value")
axes.set(xlabel="trials", ylabel="NDCG@10", title="400 queries, all configurations equally good")
axes.legend()
figure.tight_layout()

# %%
# RankTune repeats the split many times and takes the mean, see :doc:`/explanation/choosing`.
print(
    f"with 100 trials the highest score is {reported[-1] - TRUE:.3f} too high, the corrected {corrected[-1] - TRUE:+.3f}"
)
