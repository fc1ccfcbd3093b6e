"""Models that the tests of exports share, documents to score, and what each format makes of a feature's name."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, one_tree

NAMES = ("bm25(title)", "clicks", "page rank", 'say "so"', "größe")


def linear() -> LinearModel:
    """Five features, of which the second has no weight."""
    weights = np.array([1.0 / 3.0, 0.0, -2.5e-7, 12345.678, -1.0])
    return LinearModel(weights, "RankSVM", feature_names=NAMES, metric="ndcg@10", fingerprint="abc")


def _with_others(tree: Trees) -> TreeModel:
    parts = [tree, one_tree([], [], [], [], [0.125]), one_tree([3], [1.0 / 3.0], [-1], [-2], [-4.0, 0.7])]
    return TreeModel(joined(parts), 5, "LambdaMART", feature_names=NAMES)


def trees() -> TreeModel:
    """A tree of three splits, a constant and a stump; the second feature is not looked at."""
    deep = one_tree([2, 0, 4], [0.1, -1.5, 1e-35], [1, -1, -4], [2, -2, -3], [0.5, -0.25, 1.0 / 3.0, 2.0])
    return replace(_with_others(deep), metric="ndcg@10", fingerprint="abc")


def blend() -> BlendModel:
    """Both look at the first and the third feature, trees alone at the fourth, weights alone at the fifth."""
    weights = LinearModel(np.array([1.0 / 3.0, 0.0, -2.5e-7, 0.0, -1.0]), "RankSVM", feature_names=NAMES)
    deep = one_tree([2, 0, 2], [0.1, -1.5, 1.25], [1, -1, -4], [2, -2, -3], [0.5, -0.25, 1.0 / 7.0, 2.0])
    return BlendModel((weights, _with_others(deep)), "Blend", feature_names=NAMES, metric="ndcg@10", fingerprint="abc")


SAMPLES = {"linear": linear, "trees": trees, "blend": blend}


def random_blend(seed: int, features: int = 6) -> BlendModel:
    """Trees of random_trees, and weights of which about half are 0."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=features) * (generator.random(features) < 0.5)
    parts = (LinearModel(weights, "RankSVM"), TreeModel(random_trees(seed, features=features), features, "LambdaMART"))
    return BlendModel(parts, "Blend")


def random_trees(seed: int, count: int = 20, features: int = 6, splits: int = 12) -> Trees:
    """Trees grown at random, whose thresholds are often values that random_rows has."""
    generator = np.random.default_rng(seed)
    parts = []
    for _ in range(count):
        children = np.full((splits, 2), 0)
        open_ends: list[tuple[int, int]] = []
        for split in range(splits):
            if split:
                parent, side = open_ends.pop(int(generator.integers(len(open_ends))))
                children[parent, side] = split
            open_ends += [(split, 0), (split, 1)]
        for leaf, (parent, side) in enumerate(open_ends):
            children[parent, side] = ~leaf
        threshold = random_rows(seed, splits, 1)[:, 0]
        value = generator.normal(size=splits + 1)
        parts.append(
            one_tree(generator.integers(0, features, splits), threshold, children[:, 0], children[:, 1], value)
        )
    return joined(parts)


def random_rows(seed: int, rows: int = 200, features: int = 6) -> Floats:
    """Single-precision values, many of them alike, and neighbours of all but 0 and powers of 2."""
    generator = np.random.default_rng(seed)
    grid = np.round(generator.normal(size=(rows, features)), 1).astype(np.float32)
    step = generator.integers(-1, 2, size=grid.shape) * (np.abs(np.frexp(grid)[0]) > 0.5)
    moved = np.where(step == 0, grid, np.nextafter(grid, np.where(step > 0, np.float32(9), np.float32(-9))))
    return moved.astype(np.float64)


@lru_cache
def trained(folder: Path, solver: str) -> tuple[Model, Queries]:
    """A model trained on the first of five folds, or a blend of two, and the queries that it is tested on."""
    if solver == "Blend":
        members, tests = zip(*(trained(folder, name) for name in ("RankSVM", "LambdaMART")), strict=True)
        spreads = [member.predict(test).std() for member, test in zip(members, tests, strict=True)]
        return blended(members, [0.5 / spread for spread in spreads], "Blend", {}), tests[0]
    train, test = (catalogue.read(str(folder / "Fold1" / f"{part}.txt")) for part in ("train", "test"))
    ranker = RankSVM(C=0.01) if solver == "RankSVM" else LambdaMART(trees=60)
    ranker.fit(train.features, train.grades, qid=np.repeat(np.arange(train.n_queries), train.lengths))
    return ranker.as_model(), test
