"""
A study and its report
======================

:func:`ranktune.tune` tries solvers, chooses a model and evaluates it. ``ranktune show --page`` writes the whole study into one
file, which opens without a network.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import ranktune
from ranktune.docs.shop import write_shop

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    write_shop(folder)
    result = ranktune.tune(
        folder / "shop.csv",
        qid="search",
        grade="bought",
        drop="sku,day",
        baseline="column:bm25_title",
        trials=12,
        name="shop",
        home=folder,
        jobs=1,
    )
print(result.gain)
print(f"expected by validation, corrected for selection: {result.estimate.mean:.3f}")

# %%
# The leaderboard as a figure: the mean over the test queries of each row, with its 95 percent interval.
rows = [row for row in result.leaderboard if row.test is not None]
figure, axes = plt.subplots(figsize=(7, 4))
for row in rows:
    limits = [[row.test.mean - row.test.low], [row.test.high - row.test.mean]]
    axes.errorbar(
        row.test.mean,
        row.solver,
        xerr=limits,
        fmt="o",
        color="C7" if row.is_baseline else "C0",
        capsize=4,
    )
axes.invert_yaxis()
axes.set(
    xlabel="NDCG@10 on test queries, with 95 % interval",
    title="The rows of the leaderboard, the chosen one first",
)
figure.tight_layout()

# %%
# This is the report of such a study; `open it alone <../../_static/live/report.html>`_ for all of your screen.
#
# .. raw:: html
#
#     <iframe class="live-report" src="../../_static/live/report.html" title="The report of a study"></iframe>
