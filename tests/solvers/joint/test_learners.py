"""Rankers that learn together end as each of them alone, on dense and sparse data, whoever joins or leaves."""

import numpy as np
import pytest
from sklearn.base import clone

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.joint.learners import JointLearners
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.online.perceptrons import PairwisePerceptron
from ranktune.solvers.online.solar import SOLAR1
from tests.support.copies import with_copies
from tests.support.pass_samples import linear_queries, parts_of


def several(scalings: tuple[str, ...]) -> dict[int, PassRanker]:
    """Every loss, weight and scaling, strong and weak penalties, and steps of SOLAR1 from tiny to whole."""
    rankers: list[PassRanker] = [
        ElasticRank(
            loss,
            weight,
            at=at,
            eta0=(0.02, 0.1, 0.7)[k % 3],
            l1=(0.0, 1e-3, 0.05)[k % 3],
            l2=(1e-3, 0.0, 0.1)[k % 3],
            margin=1.0 + 0.5 * (k % 2),
            average="none" if (weight == "recall") != (k == 5) else "queries",
            scaling=scalings[k % len(scalings)],
            passes=1,
        )
        for loss in ("pairwise_hinge", "pairwise_squared_hinge", "pairwise_logistic")
        for weight, at in (("uniform", 3), ("ndcg", 3), ("recall", 4))
        for k in range(6)
    ]
    for k, C in enumerate((1e-5, 1e-2, 10.0)):
        scaling = scalings[k % len(scalings)]
        rankers += [SOLAR1(C, scaling=scaling, pairs_per_query=limit) for limit in (None, 15)]
    return dict(enumerate(rankers))


def alone(ranker: PassRanker, parts: list[Queries]) -> tuple[Floats, list[Floats]]:
    """The weights of a ranker that learns from the parts alone, and its scores before."""
    learner = clone(ranker)
    scores = [learner.progressive(part) for part in parts]
    return learner.coef_, scores


def centred(scores: Floats, queries: Queries) -> Floats:
    """Scores less their mean in each query, which is all that a ranking sees."""
    means = np.add.reduceat(scores, queries.starts[:-1]) / queries.lengths
    return scores - np.repeat(means, queries.lengths)


@pytest.mark.parametrize(("is_sparse", "is_weighted"), [(False, False), (True, False), (False, True), (True, True)])
def test_ends_as_each_alone(is_sparse: bool, is_weighted: bool) -> None:
    queries = linear_queries(60, 1, is_sparse=is_sparse)
    weights = np.random.default_rng(2).uniform(0.3, 3.0, queries.n_documents).round(1) if is_weighted else None
    parts = parts_of(queries.given(document_weights=weights), 80)
    rankers = several(("none", "minmax", "standard"))
    learners = JointLearners(parts[0], dtype=np.float64)
    learners.join(rankers)
    scores = [learners.learn(part) for part in parts]
    weights = learners.weights()
    assert learners.numbers == list(rankers)
    for number, ranker in rankers.items():
        expected, before = alone(ranker, parts)
        np.testing.assert_allclose(weights[number], expected, rtol=1e-8, atol=1e-11)
        for part, ours, theirs in zip(parts, scores, before, strict=True):
            np.testing.assert_allclose(centred(ours[number], part), centred(theirs, part), rtol=1e-7, atol=1e-10)


def test_weighted_documents_of_lists_are_their_copies() -> None:
    weighted, copied, _ = with_copies(linear_queries(80, 4))
    rankers = {k: ranker for k, ranker in several(("none", "standard")).items() if not isinstance(ranker, SOLAR1)}
    uniform = {k: ranker for k, ranker in rankers.items() if ranker.get_params()["pair_weight"] == "uniform"}
    weights = []
    for queries in (weighted, copied):
        learners = JointLearners(queries, dtype=np.float64)
        learners.join(uniform)
        learners.learn(queries)
        weights.append(learners.weights())
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-7, atol=1e-10)
    assert len(uniform) == 18 and (np.abs(weights[0]).max(axis=1) > 1e-3).all()


def test_long_lists_and_wide_scores_take_the_ways_of_one_alone() -> None:
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(1500, 4)), 3)
    queries = Queries.from_arrays(X, np.digitize(X @ [1.0, 2.0, 0.0, -1.0], [0.0, 2.0]), group=[700, 800])
    parts = [queries, queries]
    rankers: dict[int, PassRanker] = {
        0: ElasticRank("pairwise_hinge", "uniform", passes=1),
        1: ElasticRank("pairwise_logistic", "ndcg", passes=1, eta0=300.0, l1=0.0, l2=0.0),
    }
    learners = JointLearners(queries, dtype=np.float64)
    learners.join(rankers)
    scores = [learners.learn(part) for part in parts]
    assert np.ptp(scores[-1][1]) > 250.0
    for number, ranker in rankers.items():
        np.testing.assert_allclose(learners.weights()[number], alone(ranker, parts)[0], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_joining_leaving_and_restoring_change_nothing_for_the_others(is_sparse: bool) -> None:
    parts = parts_of(linear_queries(90, 2, is_sparse=is_sparse), 120)
    first, later = several(("none",)), {number + 100: learner for number, learner in several(("none",)).items()}
    later = {number: learner for number, learner in later.items() if getattr(learner, "pairs_per_query", None) is None}
    learners = JointLearners(parts[0], dtype=np.float64)
    learners.join(first)
    for part in parts[:3]:
        learners.learn(part)
    kept = list(first)[1::2]
    learners.keep(kept)
    learners.join(later)
    learners = JointLearners.restored(parts[0], {**{k: first[k] for k in kept}, **later}, learners.arrays(), np.float64)
    for part in parts[3:]:
        learners.learn(part)
    numbers, weights = learners.numbers, learners.weights()
    assert numbers == [*kept, *later]
    for number in kept:
        np.testing.assert_allclose(
            weights[numbers.index(number)], alone(first[number], parts)[0], rtol=1e-8, atol=1e-11
        )
    for number, learner in later.items():
        expected = alone(learner, parts[3:])[0]
        np.testing.assert_allclose(weights[numbers.index(number)], expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(
    "ranker",
    [
        PairwisePerceptron(),
        ElasticRank(optimizer="rda"),
        ElasticRank(schedule="sqrt"),
        ElasticRank(scaling="list"),
    ],
)
def test_others_are_refused(ranker: PassRanker) -> None:
    with pytest.raises(ParameterError, match="cannot learn together with others"):
        JointLearners(linear_queries(5, 0)).join({0: ranker})


@pytest.mark.parametrize("is_sparse", [False, True])
def test_single_precision_ranks_as_double_does_and_is_restored_to_the_bit(is_sparse: bool) -> None:
    parts = parts_of(linear_queries(300, 3, is_sparse=is_sparse), 400)
    metric, means = parse_metric("ndcg@10"), []
    for dtype in (np.float32, np.float64):
        rankers = several(("none",) if is_sparse else ("minmax", "standard"))
        learners = JointLearners(parts[0], dtype=dtype)
        learners.join(rankers)
        means.append([[metric.mean(row, part) for row in learners.learn(part)] for part in parts[:-1]])
        saved = {name: array.copy() for name, array in learners.arrays().items()}
        again = JointLearners.restored(parts[0], rankers, saved, dtype)
        np.testing.assert_array_equal(learners.learn(parts[-1]), again.learn(parts[-1]))
        np.testing.assert_array_equal(learners.weights(), again.weights())
    np.testing.assert_allclose(np.mean(means[0], axis=0), np.mean(means[1], axis=0), rtol=0, atol=1e-4)
