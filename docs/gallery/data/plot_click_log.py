"""
From a click log to a model, with a known truth
===============================================

Generated users look at rank r with probability 1 / r, and click what they looked at if it is relevant to them. The log
has what was shown and clicked, and nothing else. ``ranktune.clicks`` finds both probabilities, and a ranker learns from
its judgments.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import polars

import ranktune
from ranktune.solvers import RidgeRanker

generator = np.random.default_rng(0)
n_queries, n_products, page, n_sessions = 40, 25, 10, 8000
features = generator.normal(size=(n_queries, n_products, 3))
relevance = 1 / (1 + np.exp(1.0 - features @ [1.5, -1.0, 0.0]))
looked = 1 / np.arange(1, page + 1)

# %%
# The live ranking knows the third feature, which is worth nothing, and a part of the truth. It changes a little from
# session to session, as rankings do.
query = generator.integers(0, n_queries, n_sessions)
score = features[..., 0] + features[..., 2]
noise = generator.normal(size=(n_sessions, n_products))
shown = np.argsort(-(score[query] + noise), axis=1)[:, :page]
chance = looked * relevance[query[:, None], shown]
clicked = generator.random(chance.shape) < chance
log = polars.DataFrame(
    {
        "session": np.repeat(np.arange(n_sessions), page),
        "time": 1_767_225_600_000 + 1000 * np.repeat(np.arange(n_sessions), page),
        "query": [f"query {number}" for number in np.repeat(query, page)],
        "document": shown.ravel(),
        "position": np.tile(np.arange(1, page + 1), n_sessions),
        "click": clicked.ravel().astype(int),
    }
)
folder = Path(mkdtemp())
log.write_csv(folder / "log.csv")
found = ranktune.clicks(folder / "log.csv", output=folder / "judgments.parquet")
print(f"{int(clicked.sum()):,} clicks; the best model of later clicks: {found.later.best}")

# %%
# The truth beside what was found. The clicks of a rank also fall because worse products stand there, so that their
# share is below examination.
examined = found.examination
share = clicked.mean(axis=0) / clicked[:, 0].mean()
print("rank  truth  found             95 %   clicks")
for rank in range(page):
    interval = f"{examined.low[rank]:.3f} to {examined.high[rank]:.3f}"
    print(
        f"{rank + 1:4}  {looked[rank]:.3f}  {examined.value[rank]:.3f}  {interval}    {share[rank]:.3f}"
    )

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(examined.position, looked, color="grey", linestyle=":", label="truth")
axes.plot(examined.position, examined.value, "s-", label="found")
axes.fill_between(examined.position, examined.low, examined.high, alpha=0.2)
axes.plot(examined.position, share, "o-", label="clicks")
axes.set(xlabel="rank", ylabel="relative to the first rank", title="Who looks at a rank")
axes.legend()
figure.tight_layout()

# %%
# A ranker learns from the judgments, and one from the rates of clicks as they are. Both are tested on new queries, by
# the true probability of a click. The first has nearly what the truth gives.
judged = polars.read_parquet(folder / "judgments.parquet")
judged = judged.filter(polars.col("status") != "unknown").sort("query")
row = judged["query"].str.slice(6).cast(int).to_numpy(), judged["document"].cast(int).to_numpy()
rates = log.group_by("query", polars.col("document").cast(str)).agg(polars.col("click").mean())
rate = judged.join(rates, on=["query", "document"], how="left", maintain_order="left")[
    "click"
].to_numpy()
new = generator.normal(size=(200, n_products, 3))
worth = 1 / (1 + np.exp(1.0 - new @ [1.5, -1.0, 0.0]))
test = ranktune.Queries.from_arrays(new.reshape(-1, 3), worth.ravel(), group=[n_products] * 200)
metric = ranktune.parse_metric("ndcg@10:gain=linear")
for name, grades, weights in (
    ("the truth", relevance[row], None),
    ("judgments", judged["relevance"].to_numpy(), judged["weight"].to_numpy()),
    ("rates of clicks", rate, None),
):
    queries = ranktune.Queries.from_arrays(
        features[row], grades, qid=row[0], document_weights=weights
    )
    model = RidgeRanker().fit(queries)
    weight = np.round(model.coef_ / np.abs(model.coef_).max(), 2)
    quality = metric.mean(model.predict(test), test)
    print(f"{name:<16} weights {weight}  NDCG@10 {quality:.4f}")
