"""Distillation: a model that only few systems can load becomes trees, or weights, that score alike.

The score of a sum of weights and trees is additive, so that its trees stay as they are, and each weight becomes a
staircase: one tree that compares its feature alone, with steps of equal height in the score. Its error is bounded by
one step for each feature, and no grades are needed. A smaller number of trees, a copy of a model that scales features
by query, and weights in place of trees are learnt: by regression on the scores of the model.
Source: Buciluă, Caruana & Niculescu-Mizil 2006, "Model compression".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktune.solvers.abilities import CUSTOM, LINEAR, LIST, TREES, WITHIN
from ranktune.solvers.boosting.lightgbm.regression import GBDTRanker
from ranktune.solvers.boosting.training_queries import whole
from ranktune.solvers.core.arrays import Features, Floats, Ints, dense
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import signs_of
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.blend import BlendModel, blended, parts_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import ANY_VALUE, Trees, joined, one_tree

STEPS = 200
"""Steps of a staircase for the usual spread of scores within a query."""
LEARNT_LEAVES, LEARNING_RATE, LEARNT_TREES = 64, 0.15, 150
"""Leaves and factor of a tree that is learnt from scores, and the number of trees unless it is given."""
MAX_TREES = 10_000
MAX_DOCUMENTS = 100_000
"""Documents that a copy is made from; of more an evenly spaced sample of the queries."""


def distil(model: Model, queries: Queries, into: str = TREES, *, trees: int | None = None) -> TreeModel | LinearModel:
    """Return a model of trees alone, or of weights alone, that scores documents like those of queries as model does.

    Grades are not used. Without `trees` a sum of weights and trees keeps its trees, and each weight becomes a tree of
    its own, whose steps are a small part of the differences between documents. Monotone constraints of model are kept.

    Parameters
    ----------
    model : Model
        The model, such as the blend that a study chose.
    queries : Queries
        Documents like those that will be scored; the training data serve.
    into : {"trees", "linear"}, default="trees"
        What the new model consists of.
    trees : int, optional
        Learn this number of trees from the scores instead: a smaller and faster model that deviates more.

    Returns
    -------
    TreeModel or LinearModel
        It has the origin of model.

    Raises
    ------
    ParameterError
        into or trees is invalid.
    DataError
        queries lack the model's features, or no two documents of a query differ in their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import LinearModel, Queries, distil
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> queries = Queries.from_arrays(X, np.zeros(400), qid=np.arange(400) // 10)
    >>> model = LinearModel([2.0, 0.0, -1.0], "RankSVM")
    >>> distilled = distil(model, queries)
    >>> distilled.trees.n_trees, bool(np.abs(distilled.predict(X) - model.predict(X)).max() < 0.02)
    (2, True)
    """
    check_choice("into", into, (TREES, LINEAR))
    if trees is not None:
        whole(1, MAX_TREES)("trees", trees)
        if into == LINEAR:
            raise ParameterError(f"trees={trees} and into='linear' exclude each other: leave one of them out.")
    parts = parts_of(model)
    if parts == {into} and trees is None:
        assert isinstance(model, TreeModel | LinearModel)
        return model
    queries = replace(model.arranged(_sampled(queries)), rows=None)
    scores = model.predict(queries)
    signs = signs_of(model.monotone, model.n_features, model.feature_names)
    queries = replace(queries, columns={} if signs is None else {"monotone": signs})
    spread = float(np.sqrt(np.mean(without_level(scores, queries) ** 2)))
    if not spread > 0.0:
        raise DataError(
            "the model gives all documents of a query the same score: there is nothing to distil. Give queries whose "
            "documents differ."
        )
    if into == LINEAR:
        targets = replace(queries.with_columns(model.used_features), grades=scores / spread)
        ridge = RidgeRanker(alpha=1.0).fit(targets).as_model()
        ridge = ridge.on_columns(model.used_features, model.n_features, None)
        copy = blended([ridge], [spread], "", {})
        return LinearModel(**{name: getattr(copy, name) for name in ("weights", "missing")}, **_origin(model))
    if trees is None and not parts & {LIST, WITHIN, CUSTOM}:
        trees_of_copy = _as_trees(model, queries, spread / STEPS)
    else:
        trees_of_copy = _learnt(model, queries, spread, trees or LEARNT_TREES)
    if model.takes_missing and trees_of_copy.missing_left is None:
        trees_of_copy = replace(trees_of_copy, missing_left=trees_of_copy.zero_left)
    return TreeModel(trees_of_copy, model.n_features, **_origin(model))


def _sampled(queries: Queries) -> Queries:
    """Return queries with about MAX_DOCUMENTS documents at most."""
    if queries.n_documents <= MAX_DOCUMENTS:
        return queries
    count = max(1, queries.n_queries * MAX_DOCUMENTS // queries.n_documents)
    return queries.select(np.unique(np.linspace(0, queries.n_queries - 1, count).astype(np.int64)))


def _origin(model: Model) -> Origin:
    return {
        "solver": model.solver,
        "parameters": model.parameters,
        "feature_names": model.feature_names,
        "metric": model.metric,
        "fingerprint": model.fingerprint,
        "version": model.version,
        "encoding": model.encoding,
        "monotone": model.monotone,
    }


def _as_trees(model: Model, queries: Queries, step: float) -> Trees:
    """Return the trees of a model, and a staircase for each of its weights."""
    trees_of_copy: list[Trees] = []
    for part in model.parts if isinstance(model, BlendModel) else (model,):
        if isinstance(part, TreeModel):
            trees_of_copy.append(part.trees)
        elif isinstance(part, LinearModel):
            trees_of_copy += [
                _staircase(part, column, _column(queries.features, column), step)
                for column in part.used_features.tolist()
            ]
    return joined(trees_of_copy)


def _staircase(part: LinearModel, column: int, values: Floats, step: float) -> Trees:
    """Return the staircase of a weight, and of what a missing value adds; where it adds what 0 does, it goes with 0."""
    missing = None if part.missing is None else float(part.missing[column])
    if missing == 0.0 and not np.isnan(values).any():
        missing = None
    return staircase(column, float(part.weights[column]), values, step, missing)


def _column(features: Features, column: int) -> Floats:
    return dense(features[:, [column]])[:, 0].astype(np.float64)


def _learnt(model: Model, queries: Queries, spread: float, trees: int) -> Trees:
    """Return trees learnt from the scores of a model, on the features that it uses.

    Documents that mix the features of several, a known help, made copies worse on queries that were not seen.
    """
    by_query = bool(parts_of(model) & {LIST, WITHIN, CUSTOM})
    scores = model.predict(queries) / spread
    targets = replace(queries.with_columns(model.used_features), grades=scores)
    ranker = GBDTRanker(
        trees,
        learning_rate=LEARNING_RATE,
        leaves=LEARNT_LEAVES,
        min_documents=5,
        l2=0.1,
        feature_share=1.0,
        row_share=1.0,
        centre="query" if by_query else "none",
    ).fit(targets)
    return ranker.trees_.scaled(spread).on_columns(model.used_features)


MAX_STEPS = 255
"""The most steps of a staircase."""


def staircase(column: int, weight: float, values: Floats, step: float, missing: float | None = None) -> Trees:
    """Return a tree whose value is about weight times the value of column, (n_documents,) of which are known.

    It rises in steps, each of which spans known values that differ by at most `step` in the score, or more where there
    would be more than MAX_STEPS. A step has the mean score of its documents. Beyond the known values it is constant.
    NaN among the values is missing; where missing is given, the tree has that value for what is missing, exactly.
    """
    present = values[~np.isnan(values)]
    levels, counts = np.unique(present if len(present) else np.zeros(1), return_counts=True)
    width = step / abs(weight) if weight else np.inf
    while len(firsts := _firsts(levels, width)) > MAX_STEPS:
        width *= 1.25
    documents = np.add.reduceat(counts, firsts)
    leaves = weight * np.add.reduceat(counts * levels, firsts) / documents
    below, above = levels[firsts[1:] - 1], levels[firsts[1:]]
    middle = below + (above - below) / 2.0
    return _balanced(column, np.where(middle < above, middle, below), leaves, missing)


def _firsts(levels: Floats, width: float) -> Ints:
    """Return the places in known, ascending, of the first value of each step, which spans at most width.

    No more than MAX_STEPS + 1 of them.
    """
    firsts = [0]
    while (after := int(np.searchsorted(levels, levels[firsts[-1]] + width, side="right"))) < len(levels):
        firsts.append(max(after, firsts[-1] + 1))
        if len(firsts) > MAX_STEPS:
            break
    return np.array(firsts)


def _balanced(column: int, thresholds: Floats, leaves: Floats, missing: float | None) -> Trees:
    """Return the tree of least depth that gives a value of column the leaf between the thresholds around it.

    Its root, if missing is given, sends every value left, and what is missing right.
    """
    order: list[int] = []
    children: list[list[int]] = []
    if missing is not None:
        order.append(len(thresholds))
        children.append([])
        thresholds, leaves = np.append(thresholds, ANY_VALUE), np.append(leaves, missing)

    def grow(first: int, last: int) -> int:
        if last - first == 1:
            return ~first
        middle, number = (first + last) // 2, len(order)
        order.append(middle - 1)
        children.append([])
        children[number] = [grow(first, middle), grow(middle, last)]
        return number

    if missing is None:
        grow(0, len(leaves))
    else:
        children[0] = [grow(0, len(leaves) - 1), ~(len(leaves) - 1)]
    left, right = np.array(children, dtype=np.int32).reshape(-1, 2).T
    sides = None if missing is None else np.zeros(len(order), dtype=bool)
    return one_tree(np.full(len(order), column), thresholds[order], left, right, leaves, sides)
