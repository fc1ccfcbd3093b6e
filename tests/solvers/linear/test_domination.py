"""DominationRank as a whole: its optimum, its conditions, its invariances, its parameters."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.linear.domination import DominationRank
from ranktune.solvers.losses.domination import DominationLoss
from ranktune.solvers.optimizers.domination_descent import CURVATURES, DominationProblem
from tests.support.domination_samples import PENALTIES, VARIANTS, loss_of, noisy, penalty_of
from tests.support.plain_solvers import domination_rank


def scipy_optimum(ranker: DominationRank, queries: Queries) -> tuple[float, Any]:
    """The least objective by L-BFGS-B over w = p - n, p and n not negative, where L1 is smooth."""
    loss, (l1, l2), d = loss_of(ranker), penalty_of(ranker).strengths, queries.n_features

    def value_and_gradient(both: Any) -> Any:
        w = both[:d] - both[d:]
        value, by_score = loss.value_and_gradient(queries.features @ w, queries)
        slope = queries.features.T @ by_score + l2 * w
        return value + l1 * both.sum() + 0.5 * l2 * w @ w, np.concatenate([slope + l1, l1 - slope])

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    start = np.full(2 * d, 0.01)
    result = minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options=options
    )
    return float(result.fun), result.x[:d] - result.x[d:]


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["penalty"])
@pytest.mark.parametrize("curvature", CURVATURES)
def test_two_optimizers_agree_on_the_optimum(penalty: dict[str, Any], variant: dict[str, Any], curvature: str) -> None:
    queries = noisy()
    ranker = domination_rank(**penalty, **variant, curvature=curvature, tol=1e-8, max_iterations=20_000).fit(queries)
    value, weights = scipy_optimum(ranker, queries)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(ranker.coef_, weights, atol=1e-4 * np.abs(weights).max())


def test_l1_above_the_largest_gradient_learns_nothing_and_just_below_one_feature() -> None:
    queries = noisy()
    largest = DominationProblem(queries, DominationLoss(average="none"), None, "exact").reference
    none, single = (domination_rank(l1=share * largest).fit(queries) for share in (1.001, 0.99))
    assert none.converged_ and not none.coef_.any()
    assert np.count_nonzero(single.coef_) == 1


@pytest.mark.parametrize("curvature", CURVATURES)
def test_features_of_an_irrelevant_size_and_offset_do_no_harm(curvature: str) -> None:
    """A constant added to a feature within a query changes nothing: here it is far larger than the feature's range."""
    queries = noisy()
    offsets = 1e6 * np.random.default_rng(0).normal(size=(queries.n_queries, 1))
    shifted = queries.with_features(queries.features + offsets[queries.query_of_document])
    parameters: dict[str, Any] = {"l1": 2.0, "tol": 1e-5, "curvature": curvature, "max_iterations": 30}
    if curvature == "paper":  # whose bound takes the offset for the feature's size: it hardly moves
        with pytest.warns(RankTuneWarning, match="after 30 iterations"):
            ranker = domination_rank(**parameters).fit(shifted)
        assert np.isfinite(ranker.coef_).all()
        return
    parameters["max_iterations"] = 2000
    plain, moved = (domination_rank(**parameters).fit(data) for data in (queries, shifted))
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-3 * np.abs(plain.coef_).max())


@pytest.mark.parametrize("average", ["documents", "queries"])
def test_averages_do_not_depend_on_the_amount_of_data(average: str) -> None:
    queries = noisy()
    ranker = domination_rank(l1=0.02, average=average, tol=1e-9)
    once = ranker.fit(queries).coef_
    np.testing.assert_allclose(ranker.fit(concatenate([queries] * 3)).coef_, once, atol=1e-8)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"l1": 0.0}, "l1=0.0"),
        ({"penalty": "elastic_net", "l2": 0}, "l2=0"),
        ({"margin": (0.0, 1.0, 2.0)}, "margin has 3 values for the grades 0, 1, 2 and 3.*one value a grade"),
        ({"margin": "grade", "margin_scale": 1e300}, "margin_scale=1e\\+300.*Lower margin_scale"),
    ],
)
def test_bad_parameters_are_refused_before_training(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        domination_rank(**parameters).fit(noisy())
