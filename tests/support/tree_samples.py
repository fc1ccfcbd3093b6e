"""Random trees, what they answer by the definition, and the boosters of other libraries."""

from typing import Any

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.core.arrays import Floats, dense
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees, one_tree
from ranktune.solvers.registry import SOLVERS

VALUES = np.array([-2.0, -0.5, 0.0, 0.1, 1.0, 3.0])
"""Few, so that documents often lie on a threshold to the bit."""


FEW = {"trees": 5, "rounds": 5}
"""What a solver that boosts does: enough where it is not asked how well it ranks."""


def few_trees(name: str) -> BaseRanker:
    """Return an unfitted solver with its defaults, but few trees."""
    ranker: BaseRanker = SOLVERS[name]()
    return ranker.set_params(**{key: value for key, value in FEW.items() if key in ranker.get_params()})


def graded(seed: int = 0, queries: int = 40, dtype: Any = np.float64, layout: Any = np.asarray) -> Queries:
    """Queries of 5 to 24 documents, half of whose features are zero, with grades from a rule with noise."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(5, 25, queries)
    X = np.round(generator.random((lengths.sum(), 6)), 2) * (generator.random((lengths.sum(), 6)) < 0.5)
    score = 3.0 * X[:, 0] - X[:, 1] * X[:, 2] + (X[:, 3] > 0.3) + 0.3 * generator.normal(size=len(X))
    grades = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(np.float64)
    return Queries.from_arrays(layout(X.astype(dtype)), grades, qid=np.repeat(np.arange(queries), lengths))


def grown(seed: int, splits: int, columns: int, *, values: Floats = VALUES, sides: bool = False) -> Trees:
    """A tree whose leaves are split at random; with sides, missing values go either way."""
    generator = np.random.default_rng(seed)
    left, right = np.zeros(splits, dtype=int), np.zeros(splits, dtype=int)
    ends: list[tuple[Any, int]] = []  # where each leaf hangs
    for split in range(splits):
        if split:
            side, parent = ends.pop(int(generator.integers(len(ends))))
            side[parent] = split
        ends += [(left, split), (right, split)]
    for leaf, (side, parent) in enumerate(ends):
        side[parent] = ~leaf
    value = generator.normal(size=splits + 1)
    features, thresholds = generator.integers(0, columns, splits), generator.choice(values, splits)
    missing_left = generator.random(splits) < 0.5 if sides else None
    return one_tree(features, thresholds, left, right, value, missing_left)


def walked(trees: Trees, row: Floats) -> float:
    """The answer to one document, by the definition."""
    total = 0.0
    for tree in range(trees.n_trees):
        node = int(trees.starts[tree])
        if node == trees.starts[tree + 1]:
            node = ~(node + tree)
        while node >= 0:
            left, right = (int(child) for child in trees.children[node])
            x = float(row[trees.feature[node]])
            goes_left = x <= trees.threshold[node]
            if np.isnan(x) and trees.missing_left is not None:
                goes_left = trees.missing_left[node]
            node = left if goes_left else right
        total += float(trees.value[~node])
    return total


def assert_mean_of_members(kind: Any, options: dict[str, Any], queries: Queries, seeds: int) -> None:
    """Assert that a bag of 12 trees a member scores as the mean of rankers grown alone with the seeds that it draws."""
    generator = np.random.default_rng(5)
    bag = kind(**options, seeds=seeds, random_state=np.random.default_rng(5)).fit(queries)
    assert bag.rounds_ == (12,) * seeds and bag.trees_.n_trees == 12 * seeds
    members = []
    for _ in range(seeds):
        growth = kind(**options)._source(InMemory(queries)).growth(int(generator.integers(2**31 - 1)))
        assert all(growth.grow() for _ in range(12))
        members.append(growth.trees(0, 12).scores(queries.features))
    assert np.allclose(bag.predict(queries), np.mean(members, axis=0), rtol=1e-12, atol=1e-12)
    assert not np.allclose(members[0], members[1])


def by_lightgbm(ranker: Any, queries: Queries, labels: Any = None, start: Any = None, **more: Any) -> Any:
    """The booster of LightGBM with the same parameters, by its Python package."""
    import lightgbm

    labels = ranker._targets(queries)[0] if labels is None else labels
    seed = int(np.random.default_rng(0).integers(2**31 - 1))
    params = {**ranker._source(InMemory(queries)).parameters, "seed": seed, **more}
    data = lightgbm.Dataset(queries.features, label=labels, group=queries.lengths, init_score=start, params=params)
    return lightgbm.train(params, data, num_boost_round=ranker.trees)


def by_catboost(train: Queries, **options: Any) -> Any:
    """The model of CatBoost itself."""
    import catboost

    model = catboost.CatBoost({"thread_count": 1, "allow_writing_files": False, "logging_level": "Silent", **options})
    return model.fit(catboost.Pool(train.features, label=train.grades, group_id=train.query_of_document))


def by_xgboost(ranker: Any, queries: Queries) -> Any:
    """The booster of XGBoost with the same parameters."""
    import xgboost

    params = ranker._parameters() | {"seed": int(np.random.default_rng(0).integers(2**31 - 1))}
    data = xgboost.DMatrix(
        dense(queries.features), label=np.exp2(queries.grades) - 1.0, qid=queries.query_of_document, nthread=1
    )
    return xgboost.train(params, data, num_boost_round=ranker.trees)
