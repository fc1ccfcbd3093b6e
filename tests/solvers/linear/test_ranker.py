"""Ranker by names: every point of its space composes, and named solvers are points of it. ElasticRank as a whole: what
it learns, what it does not see, its parameters and its space."""

from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, IncompatibleParts, ParameterError, RankTuneWarning
from ranktune.solvers.core.space import defaults
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.domination import DominationRank
from ranktune.solvers.linear.parts import LOSSES, OPTIMIZERS, PENALTIES
from ranktune.solvers.linear.pointwise import LogisticRanker, RidgeRanker
from ranktune.solvers.linear.presets import ElasticRank, LambdaRank, ListNet
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.linear.ranker import Ranker
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic
from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
from ranktune.solvers.optimizers.batch import LBFGS, GradientSteps
from ranktune.solvers.optimizers.one_pass import TGD, AdaGrad
from ranktune.solvers.registry import make
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.linear_samples import lists
from tests.support.plain_solvers import elastic_rank

SPACE = UnionSpace({"Ranker": Ranker.space})


def graded(seed: int = 0, queries: int = 40) -> Queries:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(4, 15, queries)
    X = generator.random((lengths.sum(), 6)) * [1.0, 50.0, 1.0, 1.0, 1.0, 1.0]
    score = X @ [3.0, -0.04, 1.0, 0.5, 0.0, 0.0] + 0.5 * generator.normal(size=len(X))
    return Queries.from_arrays(X, np.digitize(score, np.quantile(score, [0.6, 0.85])).astype(float), group=lengths)


def test_what_the_space_leaves_out_is_what_parts_refuse() -> None:
    """Of all combinations of names, each that the space lacks is refused, or a pair weight under which steps descend no
    function, or a hinge for an optimizer of smooth losses, or no faster way to the same model."""
    queries, missing = graded(queries=10), 0
    for optimizer in OPTIMIZERS:
        for loss in LOSSES:
            for penalty in PENALTIES:
                point = {"Ranker.optimizer": [optimizer], "Ranker.loss": [loss], "Ranker.penalty": [penalty]}
                try:
                    SPACE.restricted(point)
                except ParameterError:
                    missing += 1
                    smooth = optimizer in ("lbfgs", "owlqn", "fista") and loss == "pairwise_hinge"
                    steps = optimizer == "gradient_steps" and not loss.startswith("pairwise")
                    weak = penalty == "none" and optimizer in ("lbfgs", "psgd", "tgd")
                    as_newton = (optimizer, loss, penalty) == ("least_squares", "pointwise_squared", "l2")
                    if not (smooth or steps or weak or as_newton):
                        with pytest.raises(IncompatibleParts):
                            Ranker(loss, "uniform", penalty, optimizer).fit(queries)
    assert 0 < missing < len(OPTIMIZERS) * len(LOSSES) * len(PENALTIES)


WITH_PAIRS = sum(graded().select(np.array([q])).has_pairs for q in range(40))
"""Queries that a mean over queries counts."""


PRESETS: list[tuple[Any, Any, float]] = [
    (LambdaRank(at=7, l1=0.02, l2=0.3, iterations=30), Ranker(at=7, l1=0.02, l2=0.3, iterations=30), 0.0),
    (ListNet(l1=0.02), Ranker("softmax", penalty="elastic_net", optimizer="owlqn", l1=0.02), 0.0),
    (ListNet(l1=0.0, temperature=1.0), Ranker("softmax", penalty="l2", optimizer="lbfgs", temperature=1.0), 0.0),
    (
        ElasticRank(optimizer="rda", scaling="minmax", random_state=3),
        Ranker(optimizer="rda", l1=1e-3, l2=1e-4, scaling="minmax", random_state=3),
        0.0,
    ),
    (
        ElasticRank("pairwise_hinge", "recall", at=3, optimizer="tgd", schedule="sqrt", scaling="list"),
        Ranker("pairwise_hinge", "recall", "l1", "tgd", at=3, l1=1e-3, schedule="sqrt", scaling="list"),
        0.0,
    ),
    (
        RankSVM(C=2.0, average="queries", scaling="none"),
        Ranker("pairwise_squared_hinge", "uniform", "l2", "newton", l2=0.5 / WITH_PAIRS, scaling="none"),
        1e-12,
    ),
    (
        RankSVM(C=2.0, loss="l1", average="queries", scaling="none"),
        Ranker("pairwise_hinge", "uniform", "l2", "newton", l2=0.5 / WITH_PAIRS, scaling="none"),
        1e-12,
    ),
    (
        DominationRank(average="queries", l1=0.02),
        Ranker("domination", penalty="l1", optimizer="coordinate_descent", l1=0.02),
        0.0,
    ),
]


@pytest.mark.parametrize(("preset", "point", "precision"), PRESETS, ids=lambda value: repr(value)[:40])
def test_named_solvers_are_points(preset: Any, point: Any, precision: float) -> None:
    queries = graded()
    expected, result = preset.fit(queries).coef_, point.fit(queries).coef_
    assert expected.any()
    np.testing.assert_allclose(result, expected, rtol=precision, atol=precision)


def test_ridge_and_logistic_regression_are_points() -> None:
    queries = graded()
    documents = queries.n_documents
    ridge = RidgeRanker(alpha=30.0).fit(queries).coef_
    for optimizer in ("least_squares", "newton", "lbfgs", "owlqn", "fista"):
        ranker = Ranker("pointwise_squared", penalty="l2", optimizer=optimizer, l2=60.0 / documents).fit(queries)
        precision = 1e-12 if optimizer in ("least_squares", "newton") else 1e-3
        np.testing.assert_allclose(ranker.coef_, ridge, atol=precision * ridge.max())
    logistic = LogisticRanker(C=0.1, tol=1e-9).fit(queries).coef_
    ranker = Ranker("pointwise_logistic", penalty="l2", optimizer="lbfgs", l2=10.0 / documents).fit(queries)
    np.testing.assert_allclose(ranker.coef_, logistic, atol=1e-3 * np.abs(logistic).max())


def test_names_and_objects_make_the_same_ranker() -> None:
    queries = graded()
    named = Ranker("pairwise_logistic", "ndcg", "elastic_net", "gradient_steps", at=5, iterations=20).fit(queries)
    objects = Ranker(
        PairwiseLogistic(), DeltaNDCG(5), ElasticNet(0.01, 0.1), GradientSteps(tol=1e-9, max_iterations=20)
    ).fit(queries)
    np.testing.assert_array_equal(named.coef_, objects.coef_)
    mixed = Ranker(PairwiseHinge(DeltaNDCG(3)), penalty=L1(1e-3), optimizer=TGD(AdaGrad(0.1), 0.01, 10)).fit(queries)
    spelt = Ranker("pairwise_hinge", "ndcg", "l1", "tgd", at=3, l1=1e-3).fit(queries)
    np.testing.assert_array_equal(mixed.coef_, spelt.coef_)  # a name leaves the pair weight of an object alone


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({}, "iterations"),
        ({"optimizer": "rda", "loss": "pairwise_hinge"}, "passes"),
        ({"optimizer": "newton", "loss": "pairwise_hinge", "pair_weight": "uniform", "penalty": "l2"}, None),
        ({"optimizer": LBFGS(), "penalty": L2(0.1)}, None),
    ],
)
def test_the_path_counts_the_steps_of_the_optimizer(parameters: Any, name: str | None) -> None:
    ranker = Ranker(**parameters)
    assert ranker.path_parameter == name
    if name is None:
        with pytest.raises(ParameterError, match="no parameter along which"):
            next(ranker.fit_path(graded(), [1]))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"loss": "hinge"}, ParameterError, "loss='hinge' is unknown.*pairwise_hinge"),
        ({"pair_weight": "ndgc"}, ParameterError, "pair_weight='ndgc' is unknown. Did you mean 'ndcg'"),
        ({"optimizer": "tgd", "penalty": "l1", "schedule": "root"}, ParameterError, "schedule='root'"),
        ({"l1": -1.0}, ParameterError, "l1=-1.0"),
        ({"optimizer": "newton", "penalty": "l2"}, IncompatibleParts, "Newton cannot minimise"),
    ],
)
def test_what_cannot_be(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Ranker(**parameters).fit(graded())


def test_strengths_that_the_penalty_leaves_out_are_ignored() -> None:
    queries = graded()
    for penalty, other in (("l1", "l2"), ("l2", "l1"), ("none", "l1")):
        given: list[dict[str, Any]] = [{other: value} for value in (0.5, 0.001)]
        rankers = [Ranker(penalty=penalty, iterations=10, **options).fit(queries) for options in given]
        np.testing.assert_array_equal(rankers[0].coef_, rankers[1].coef_)


def test_partial_fit_checks_the_features_of_later_pieces() -> None:
    X, y, qid = lists()
    ranker = elastic_rank().partial_fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="8 features"):
        ranker.partial_fit(X[:, :7], y, qid=qid)
    with pytest.raises(DataError, match="7 features, but ElasticRank is expecting 8"):
        ranker.partial_fit(Queries.from_arrays(X[:, :7], y, qid=qid))


def test_list_scaling_makes_the_scale_of_a_list_irrelevant() -> None:
    X, y, qid = lists(4)
    factor = 10.0 ** np.random.default_rng(2).integers(-3, 4, (91, 8))
    scaled = X * factor[qid + 1]
    ranker, other = (elastic_rank(scaling="list").fit(Z, y, qid=qid) for Z in (X, scaled))
    np.testing.assert_allclose(other.coef_, ranker.coef_, atol=1e-9)
    np.testing.assert_allclose(other.predict(scaled, qid=qid), ranker.predict(X, qid=qid), atol=1e-9)


@pytest.mark.parametrize(("optimizer", "nonzeros"), [("rda", 2), ("fobos", 30), ("tgd", 30)])
def test_l1_keeps_the_features_that_matter(optimizer: str, nonzeros: int) -> None:
    generator = np.random.default_rng(8)
    X = generator.random((8000, 40))
    y = (X[:, 3] - X[:, 11] + 0.1 * generator.normal(size=len(X)) > 0).astype(float)
    ranker = elastic_rank(optimizer=optimizer, l1=0.1, threshold=5.0, truncate_every=1)
    coef = ranker.fit(X, y, qid=np.arange(len(X)) // 20).coef_
    assert set(np.argsort(-np.abs(coef))[:2]) == {3, 11}
    assert coef[3] > 0 > coef[11]
    assert np.count_nonzero(coef) <= nonzeros  # RDA is the sparsest: it uses the mean gradient, not the last one


@pytest.mark.parametrize(("optimizer", "strength"), [("psgd", "l1"), ("tgd", "l2")])
def test_an_optimizer_ignores_the_strength_it_cannot_take(optimizer: str, strength: str) -> None:
    X, y, qid = lists()
    with_it, without = (
        elastic_rank(optimizer=optimizer).set_params(**{strength: value}).fit(X, y, qid=qid).coef_
        for value in (0.1, 0.0)
    )
    np.testing.assert_array_equal(with_it, without)
    assert without.any()


def test_grades_of_any_kind_train_by_default() -> None:
    X, y, qid = lists()
    plain = elastic_rank(pair_weight="ndcg").fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(elastic_rank(pair_weight="ndcg", gain="exp2").fit(X, y, qid=qid).coef_, plain)
    linear = elastic_rank(pair_weight="ndcg", gain="linear").fit(X, y, qid=qid).coef_
    assert not np.array_equal(linear, plain)
    unscaled: dict[str, Any] = {**defaults(ElasticRank.space), "scaling": "none"}
    for moved in (y - 1, y + 0.5, y - 1e6):
        coef = elastic_rank(**unscaled).fit(X, moved, qid=qid).coef_
        assert np.count_nonzero(coef) > 0
        np.testing.assert_allclose(elastic_rank(pair_weight="ndcg").fit(X, moved, qid=qid).coef_, linear, atol=1e-9)


def test_names_of_earlier_versions_are_taken_with_a_warning() -> None:
    wanted = ElasticRank("pairwise_hinge", "recall").get_params()
    given: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("hinge", "recall"), {}),
        ((), {"loss": "hinge", "weight": "recall"}),
        (("hinge",), {"pair_weight": "recall"}),
    ]
    for values, named in given:
        with pytest.warns(RankTuneWarning, match=r"ElasticRank: write .*loss='pairwise_hinge'"):
            assert ElasticRank(*values, **named).get_params() == wanted
    assert make("ElasticRank", {"loss": "hinge", "weight": "recall"}).get_params() == wanted  # as old studies have them
    assert ElasticRank().set_params(weight="recall", loss="hinge").get_params() == wanted
