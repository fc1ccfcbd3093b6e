"""ElasticRank as a whole: what it learns, what it does not see, its parameters and its space."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.core.space import defaults
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.registry import make
from tests.support.linear_samples import CONFIGURATIONS, lists
from tests.support.plain_solvers import elastic_rank


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("parameters", CONFIGURATIONS, ids=str)
def test_partial_fits_on_the_pieces_leave_the_bits_of_one_fit(parameters: dict[str, Any], form: str) -> None:
    X, y, qid = lists()
    X = sparse.csr_array(X) if form == "csr" else X
    whole = elastic_rank(**parameters).fit(X, y, qid=qid)
    pieces = elastic_rank(**parameters)
    for low, high in ((-1, 2), (2, 3), (3, 40), (40, 90)):
        rows = np.flatnonzero((qid >= low) & (qid < high))
        pieces.partial_fit(X[rows], y[rows], qid=qid[rows])
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)
    assert pieces.n_lists_seen_ == whole.n_lists_seen_ == 89  # of 91: one has one document, one has one grade
    assert np.count_nonzero(whole.coef_) > 0


def test_fit_starts_anew_and_partial_fit_goes_on() -> None:
    X, y, qid = lists()
    ranker = elastic_rank().fit(X, y, qid=qid)
    once = ranker.coef_
    np.testing.assert_array_equal(ranker.fit(X, y, qid=qid).coef_, once)
    twice = ranker.partial_fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(twice, elastic_rank(passes=2).fit(X, y, qid=qid).coef_)
    assert not np.array_equal(twice, once)


def test_partial_fit_checks_the_features_of_later_pieces() -> None:
    X, y, qid = lists()
    ranker = elastic_rank().partial_fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="8 features"):
        ranker.partial_fit(X[:, :7], y, qid=qid)
    with pytest.raises(DataError, match="7 features, but ElasticRank is expecting 8"):
        ranker.partial_fit(Queries.from_arrays(X[:, :7], y, qid=qid))


def test_features_that_are_constant_in_every_list_get_no_weight() -> None:
    X, y, qid = lists(3)
    X[:, 2] = 1e6 * np.sin(qid)  # rounding noise of a gradient would look like a gradient to AdaGrad
    for scaling in ("none", "list"):
        assert elastic_rank(scaling=scaling).fit(X, y, qid=qid).coef_[2] == 0.0


def test_list_scaling_makes_the_scale_of_a_list_irrelevant() -> None:
    X, y, qid = lists(4)
    factor = 10.0 ** np.random.default_rng(2).integers(-3, 4, (91, 8))
    scaled = X * factor[qid + 1]
    ranker, other = (elastic_rank(scaling="list").fit(Z, y, qid=qid) for Z in (X, scaled))
    np.testing.assert_allclose(other.coef_, ranker.coef_, atol=1e-9)
    np.testing.assert_allclose(other.predict(scaled, qid=qid), ranker.predict(X, qid=qid), atol=1e-9)


def test_predictions_come_back_in_the_order_of_the_rows() -> None:
    X, y, qid = lists(5)
    order = np.random.default_rng(3).permutation(len(X))
    for scaling in ("none", "list"):
        ranker = elastic_rank(scaling=scaling).fit(X, y, qid=qid)
        np.testing.assert_allclose(ranker.predict(X[order], qid=qid[order]), ranker.predict(X, qid=qid)[order])
        np.testing.assert_array_equal(ranker.predict(Queries.from_arrays(X, y, qid=qid)), ranker.predict(X, qid=qid))
    one_list = ranker.predict(X, group=[len(X)])
    np.testing.assert_allclose(one_list, X / np.ptp(X, axis=0) @ ranker.coef_)
    ranker = elastic_rank().fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.predict(X), X @ ranker.coef_)


def test_one_seed_gives_one_model_and_none_keeps_the_order() -> None:
    X, y, qid = lists(6)

    def fit(seed: Any) -> Floats:
        return elastic_rank(passes=2, random_state=seed).fit(X, y, qid=qid).coef_

    np.testing.assert_array_equal(fit(3), fit(3))
    np.testing.assert_array_equal(fit(np.random.default_rng(3)), fit(3))
    np.testing.assert_array_equal(fit(None), fit(None))
    assert not np.array_equal(fit(3), fit(4))
    before: Any = np.random.get_state(legacy=False)  # noqa: NPY002 - the global generator must stay as it is
    fit(3)
    after: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    np.testing.assert_array_equal(after["state"]["key"], before["state"]["key"])
    assert after["state"]["pos"] == before["state"]["pos"]


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


def test_parameters_that_cannot_be_are_refused_by_pieces_too() -> None:
    with pytest.raises(ParameterError, match="scaling='minmix' is unknown"):
        elastic_rank(scaling="minmix").partial_fit(*lists()[:2])


@pytest.mark.parametrize(("optimizer", "strength"), [("psgd", "l1"), ("tgd", "l2")])
def test_an_optimizer_ignores_the_strength_it_cannot_take(optimizer: str, strength: str) -> None:
    X, y, qid = lists()
    with_it, without = (
        elastic_rank(optimizer=optimizer).set_params(**{strength: value}).fit(X, y, qid=qid).coef_
        for value in (0.1, 0.0)
    )
    np.testing.assert_array_equal(with_it, without)
    assert without.any()


def test_grades_without_a_gain_are_refused_before_training() -> None:
    X, y, qid = lists()
    ranker = elastic_rank(pair_weight="ndcg", gain="exp2")
    for bad in (y - 1, y + 40):
        with pytest.raises(DataError, match=r"grade.*(Add a constant|number the grades)"):
            ranker.fit(X, bad, qid=qid)
    assert not hasattr(ranker, "coef_")
    assert ranker.fit(X, y + 0.5, qid=qid).coef_.any()


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
