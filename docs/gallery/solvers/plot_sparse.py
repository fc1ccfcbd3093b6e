"""
A hundred thousand features, few of which matter
================================================

Words, categories and their crosses make long sparse rows. :class:`ranktune.solvers.ElasticRank` learns from them in passes
over the queries, in time proportional to the stored values; its elastic-net penalty leaves most weights at 0.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse

import ranktune
from ranktune.solvers import ElasticRank

FEATURES, RELEVANT, STORED, QUERIES, LENGTH = 100_000, 60, 40, 600, 20
generator = np.random.default_rng(0)

# %%
# Frequent features first, as with words: the first 60 of them decide the grade. A document stores 40 values.
rows = QUERIES * LENGTH
columns = (FEATURES * generator.random((rows, STORED)) ** 4).astype(int)
X = scipy.sparse.csr_array(
    (
        generator.exponential(size=rows * STORED),
        (np.repeat(np.arange(rows), STORED), columns.ravel()),
    ),
    shape=(rows, FEATURES),
)
truth = np.zeros(FEATURES)
truth[:RELEVANT] = generator.normal(size=RELEVANT)
wish = X @ truth + generator.normal(0, 0.5, rows)
grades = np.digitize(wish, np.quantile(wish, [0.7, 0.9]))
queries = ranktune.Queries.from_arrays(X, grades, group=np.full(QUERIES, LENGTH))
train, test = queries.select(np.arange(0, 400)), queries.select(np.arange(400, QUERIES))
print(f"{X.nnz:,} stored values, {X.shape[0]:,} documents, {X.shape[1]:,} features")

# %%
# A stronger L1 penalty keeps fewer weights.
metric = ranktune.parse_metric("ndcg@10")
strengths = np.logspace(-5, -1.5, 8)
used, real, quality = [], [], []
for strength in strengths:
    ranker = ElasticRank(l1=strength, scaling="none").fit(train)
    used.append(np.count_nonzero(ranker.coef_))
    real.append(np.count_nonzero(ranker.coef_[:RELEVANT]))
    quality.append(metric.mean(ranker.predict(test), test))

figure, (upper, lower) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True)
upper.semilogx(strengths, quality, "o-")
upper.set(
    xlabel="strength of the L1 penalty",
    ylabel="NDCG@10 on test queries",
    title="ElasticRank on sparse data",
)
lower.loglog(strengths, np.maximum(used, 1), "o-", label="features with a weight")
lower.loglog(strengths, np.maximum(real, 1), "s-", label="of these, features that decide the grade")
lower.set(xlabel="strength of the L1 penalty", ylabel="features", title="Weights that are not 0")
lower.legend()
figure.tight_layout()
