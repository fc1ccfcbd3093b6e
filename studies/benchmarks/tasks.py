"""Generated ranking tasks of many kinds, so that a rule is chosen on some of them and confirmed on others.

A task is a kind and a seed. The seed draws its size, its features, its true scores and its noise: two tasks of a kind
share nothing but the form of the true scores. The training queries are about 40 to 2,500, the validation queries 20 to
750 and the test queries 300 to 3,000; the training and validation documents are about 11,000 to 60,000, the features 25
to 400. Of a task of the kind "drawn" the seed draws the properties too (`properties`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries

TEST_DOCUMENTS = 40_000
"""Documents of the test queries: many, so that the difference of two models is seen."""
SHARES = (0.5, 0.25, 0.15, 0.07, 0.03)
"""Shares of the grades 0 to 4."""


Truth = Callable[[Floats, Floats, np.random.Generator], Floats]
"""Takes standardised features (n, m), those of the queries (n, k), and a generator, the same for all parts."""


def _trees(depth: int, count: int) -> Truth:
    def truth(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
        score = np.zeros(len(Z))
        for _ in range(count):
            node = np.zeros(len(Z), dtype=np.int64)
            for level in range(depth):  # each node has another split
                column, limit = draw.integers(0, Z.shape[1], 2**level), 0.8 * draw.standard_normal(2**level)
                node = 2 * node + (Z[np.arange(len(Z)), column[node]] > limit[node])
            score += draw.standard_normal(2**depth)[node]
        return score

    return truth


def _network(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    hidden = np.tanh(Z @ draw.standard_normal((Z.shape[1], 24)) / np.sqrt(Z.shape[1]) * 1.5)
    return np.asarray(np.tanh(hidden @ draw.standard_normal((24, 12)) / 2.0) @ draw.standard_normal(12))


def _products(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    skewed, score = np.exp(0.8 * Z), np.zeros(len(Z))
    for _ in range(12):
        i, j = draw.integers(0, Z.shape[1], 2)
        score += draw.standard_normal() * np.log1p(skewed[:, i] * skewed[:, j])
        score += draw.standard_normal() * np.log(skewed[:, i] / (0.5 + skewed[:, j]))
        score += 0.5 * draw.standard_normal() * Z[:, i] * Z[:, j]
    return score


def _by_query(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    m, k = Z.shape[1], of_query.shape[1]
    mixing = draw.standard_normal((k, m)) / np.sqrt(k)
    return np.asarray((Z * (draw.standard_normal(m) + 1.2 * of_query @ mixing)).sum(axis=1) / np.sqrt(m))


def _additive(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    score = np.zeros(len(Z))
    for column in draw.choice(Z.shape[1], min(20, Z.shape[1]), replace=False):
        place, width = draw.standard_normal(), draw.uniform(0.3, 1.5)
        score += draw.standard_normal() * np.exp(-(((Z[:, column] - place) / width) ** 2))
        score += 0.5 * draw.standard_normal() * np.maximum(Z[:, column] - place, 0.0)
    return score


def _linear(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    weights, used = draw.standard_normal(Z.shape[1]), draw.random(Z.shape[1]) < 0.4
    return np.asarray(Z @ (weights * used if np.any(used) else weights))


def _mixed(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    parts = [truth(Z, of_query, draw) for truth in (_linear, _trees(3, 40), _additive)]
    return np.asarray(sum(term / (term.std() or 1.0) for term in parts))


def _interactions(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    score = np.zeros(len(Z))
    for _ in range(15):
        i, j, k = draw.integers(0, Z.shape[1], 3)
        score += draw.standard_normal() * np.tanh(Z[:, i]) * np.tanh(Z[:, j]) * (1.0 + np.sign(Z[:, k]))
    return score


def _distances(Z: Floats, of_query: Floats, draw: np.random.Generator) -> Floats:
    score = np.zeros(len(Z))
    for _ in range(25):
        columns = draw.choice(Z.shape[1], 3, replace=False)
        score += draw.standard_normal() * np.exp(-((Z[:, columns] - draw.standard_normal(3)) ** 2).sum(axis=1) / 2.0)
    return score


@dataclass(frozen=True)
class Kind:
    """A form of the true scores, and the properties of the data.

    queries, documents, features  ranges of their numbers, the first two of training and validation together
    noise, uneven   standard deviation of the noise of a document, where that of the true scores is 1, and of the
                    logarithm of its factor for a query
    rare            share of the relevant documents, where grades are 0 and 1
    levels          how many grades there are; 0 where they are real numbers from 0 to 4
    missing         share of the values that are missing, more of the high ones
    shift           by how much the features of validation and test queries differ
    informative     share of the features that the true scores depend on
    causes          latent factors that the features share, for each feature
    categories      share of the features that are categories, whose numbers are in no order
    plain           whether the other features are as the true scores depend on them, not skewed, counts or truth values
    """

    truth: Truth
    queries: tuple[int, int] = (300, 2000)
    features: tuple[int, int] = (30, 140)
    noise: float = 0.7
    rare: float = 0.0
    missing: float = 0.0
    shift: float = 0.0
    documents: tuple[int, int] = (11_000, 60_000)
    uneven: float = 0.0
    levels: int = len(SHARES)
    informative: float = 1.0
    causes: float = 0.2
    categories: float = 0.0
    plain: bool = False


KINDS: Mapping[str, Kind] = {
    "additive": Kind(_additive),
    "byquery": Kind(_by_query),
    "deep": Kind(_trees(5, 40)),
    "distances": Kind(_distances, features=(25, 60)),
    "few": Kind(_mixed, queries=(60, 120), features=(30, 60)),
    "interactions": Kind(_interactions),
    "linear": Kind(_linear),
    "missing": Kind(_mixed, missing=0.2),
    "network": Kind(_network),
    "noisy": Kind(_mixed, noise=2.0),
    "products": Kind(_products),
    "rare": Kind(_trees(3, 60), rare=0.04),
    "shift": Kind(_mixed, shift=0.7),
    "shallow": Kind(_trees(2, 80)),
    "short": Kind(_mixed, queries=(2500, 3300)),
    "wide": Kind(_trees(3, 40), features=(250, 400)),
}


DRAWN = "drawn"
"""The kind of the tasks whose properties are drawn."""
TRUTHS: tuple[Truth, ...] = (
    _linear, _additive, _trees(2, 80), _trees(3, 40), _trees(5, 40), _trees(8, 10), _network, _products, _by_query,
    _interactions, _distances, _mixed,
)  # fmt: skip
SIZES = (((30, 120), (400, 4000)), ((100, 600), (3000, 12_000)), ((300, 2500), (11_000, 45_000)))
"""Queries and documents of small, middle and large drawn tasks."""
CELLS = len(TRUTHS) * len(SIZES)
"""Drawn tasks of so many seeds in a row have every form of the true scores at every size."""


def confirms(seed: int) -> bool:
    """Return whether a drawn task confirms what was decided on the others: every second block of CELLS seeds does."""
    return seed // CELLS % 2 == 1


def properties(seed: int) -> Kind:
    """Return the properties of a drawn task: its form and its size by its place among CELLS, the others at random."""
    draw = np.random.default_rng([seed, len(KINDS)])
    queries, documents = SIZES[seed // len(TRUTHS) % len(SIZES)]

    def some(share: float, low: float, high: float) -> float:
        value = float(np.exp(draw.uniform(np.log(low), np.log(high))))
        return value if draw.random() < share else 0.0

    return Kind(
        TRUTHS[seed % len(TRUTHS)],
        queries=queries,
        documents=documents,
        features=(5, 300),
        noise=some(1.0, 0.2, 2.5),
        uneven=some(0.5, 0.1, 1.0),
        rare=some(0.3, 0.02, 0.3),
        levels=int(draw.choice([0, 3, 5])),
        missing=some(0.2, 0.03, 0.3),
        shift=some(0.2, 0.1, 0.8),
        informative=some(1.0, 0.05, 1.0),
        causes=some(1.0, 0.05, 1.0),
        categories=some(0.2, 0.02, 0.3),
        plain=bool(draw.random() < 0.3),
    )


def task_of(name: str) -> QuerySplit:
    """Return the task called KIND-SEED. Raises ParameterError where there is no such kind, or no seed."""
    kind, _, seed = name.partition("-")
    if not seed.isdecimal():
        raise ParameterError(f"'{name}' is no task: give a kind and a seed, such as deep-0.")
    return task(kind, int(seed))


def task(kind: str, seed: int) -> QuerySplit:
    """Return the training, validation and test queries of a task. Raises ParameterError for an unknown kind."""
    settings, lengths, features, draw = _begun(kind, seed)
    origin = np.repeat(np.arange(3), [part.sum() for part in lengths])
    X, Z, of_query = _features(np.concatenate(lengths), features, origin, settings, draw)
    seen = Z
    if settings.informative < 1.0:
        seen = Z[:, draw.choice(features, max(round(settings.informative * features), 3), replace=False)]
    score = _standard(settings.truth(seen, of_query, draw))
    noise = settings.noise * draw.standard_normal(len(score))
    if settings.uneven:
        every = np.concatenate(lengths)
        noise *= np.repeat(np.exp(settings.uneven * draw.standard_normal(len(every))), every)
    grades = _grades(score + noise, origin == 0, settings)
    if settings.missing:
        X[draw.random(X.shape) < settings.missing * 2.0 / (1.0 + np.exp(-2.0 * Z))] = np.nan
    parts = [Queries.from_arrays(X[origin == k], grades[origin == k], group=lengths[k]) for k in range(3)]
    return QuerySplit(f"{kind}-{seed}", *parts)


def sizes(kind: str, seed: int) -> tuple[list[Ints], int]:
    """Return the documents of each training, validation and test query of a task, and how many features it has."""
    _, lengths, features, _ = _begun(kind, seed)
    return lengths, features


def _begun(kind: str, seed: int) -> tuple[Kind, list[Ints], int, np.random.Generator]:
    """Return the properties of a task, its sizes, and the generator of all that is drawn after them."""
    if kind not in (*KINDS, DRAWN):
        raise ParameterError(f"there is no kind of task '{kind}'. {nearest(kind, (*KINDS, DRAWN))}")
    settings = properties(seed) if kind == DRAWN else KINDS[kind]
    draw = np.random.default_rng([seed, len(KINDS) + 1 if kind == DRAWN else sorted(KINDS).index(kind)])
    queries = int(np.exp(draw.uniform(*np.log(settings.queries))))
    documents = int(np.exp(draw.uniform(*np.log(settings.documents))))
    length, features = max(documents // queries, 8), int(np.exp(draw.uniform(*np.log(settings.features))))
    n_vali = int(np.clip(queries * draw.uniform(0.15, 0.3), min(20, queries // 3), 750))
    counts = queries - n_vali, n_vali, int(np.clip(TEST_DOCUMENTS / length, 300, 3000))
    return settings, [_lengths(count, length, draw) for count in counts], features, draw


def _grades(score: Floats, of_training: NDArray[np.bool_], settings: Kind) -> Floats:
    """Return grades by the quantiles of the scores of training documents, or by the scores."""
    if settings.rare:
        shares: tuple[float, ...] = (1.0 - settings.rare, settings.rare)
    elif settings.levels == 0:
        low, high = np.quantile(score[of_training], (0.3, 0.995))
        return np.asarray(np.clip(4.0 * (score - low) / (high - low), 0.0, 4.0))
    else:
        shares = (*SHARES[: settings.levels - 1], sum(SHARES[settings.levels - 1 :]))
    limits = np.quantile(score[of_training], np.cumsum(shares)[:-1])
    return np.searchsorted(limits, score).astype(np.float64)


def _lengths(count: int, mean: int, draw: np.random.Generator) -> Ints:
    return np.clip(draw.negative_binomial(4.0, 4.0 / (4.0 + mean), count), 4, 6 * mean)


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9))


def _features(
    lengths: Ints, count: int, origin: Ints, settings: Kind, draw: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return features as they are given, (n, m), the standardised factors of the true scores, and those of the queries.

    Features share latent factors, have a level for each query, and are plain, skewed, counts or truth values. A few are
    the same for all documents of a query.
    """
    n, query = int(lengths.sum()), np.repeat(np.arange(len(lengths)), lengths)
    shared = settings.causes * count
    causes = draw.standard_normal((max(int(shared), 4), count)) / np.sqrt(shared)
    Z = draw.standard_normal((n, len(causes))) @ causes + draw.uniform(0.3, 1.0) * draw.standard_normal((n, count))
    Z += (draw.uniform(0.2, 0.8) * draw.standard_normal((len(lengths), count)))[query]
    if settings.shift:
        Z += settings.shift * draw.standard_normal(count) * (origin > 0)[:, None]
    constant = draw.choice(count, max(count // 12, 2), replace=False)
    Z[:, constant] = draw.standard_normal((len(lengths), len(constant)))[query]
    Z = _standard(Z)
    X, form = Z.copy(), draw.integers(0, 1 if settings.plain else 5, count)
    X[:, form == 1] = np.exp(1.2 * Z[:, form == 1])
    X[:, form == 2] = np.floor(np.exp(Z[:, form == 2]))
    X[:, form == 3] = Z[:, form == 3] > 0.8
    seen = _standard(X)  # the true score is a function of the features, up to a known function of each
    Z[:, form == 2], Z[:, form == 3] = seen[:, form == 2], seen[:, form == 3]
    for column in draw.choice(count, round(settings.categories * count), replace=False) if settings.categories else ():
        levels = int(draw.integers(4, 40))
        places = np.searchsorted(np.quantile(Z[:, column], np.arange(1, levels) / levels), Z[:, column])
        X[:, column], Z[:, column] = draw.permutation(levels)[places], _standard(places.astype(np.float64))
    return X.astype(np.float32), Z, Z[:, constant]
