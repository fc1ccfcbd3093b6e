"""
Learning while ranking
======================

Online learners see each query once. Progressive validation ranks a query and evaluates it, then trains on it: every query is
a test query, and none is set aside.
"""

import matplotlib.pyplot as plt
import numpy as np

import ranktune
from ranktune.solvers import PAMIR, SOLAR1, ElasticRank
from ranktune.solvers.data.api_search.dataset import load_split

train = load_split().train
metric = ranktune.parse_metric("ndcg@10")
order = np.random.default_rng(0).permutation(train.n_queries)[:500]

figure, axes = plt.subplots(figsize=(7, 4))
for ranker in (ElasticRank(), SOLAR1(C=0.01), PAMIR()):
    values = []
    for query in order:
        seen = train.select([query])
        values.append(
            metric.mean(ranker.predict(seen), seen) if hasattr(ranker, "coef_") else np.nan
        )
        ranker.partial_fit(seen)
    mean = np.nancumsum(values) / np.maximum(1, np.cumsum(np.isfinite(values)))
    axes.plot(np.arange(20, len(mean)), mean[20:], label=type(ranker).__name__)
axes.set(
    xlabel="queries seen",
    ylabel="mean NDCG@10 so far",
    title="Progressive validation on api-search",
)
axes.legend()
figure.tight_layout()
