import numpy as np
import pytest
from scipy.stats import norm

from ranktune.tuner.gp.acquisition import Acquisition, ExpectedImprovement, log_improvement
from ranktune.tuner.gp.paths import Paths, PathwiseImprovement
from tests.support.gp_samples import check_gradient, embedded, posterior
from tests.support.gp_samples import covariance as covariance_of


def surfaces() -> list[Acquisition]:
    first, E, _y = posterior()
    second, _, _ = posterior(0.7, 0.1)
    generator = np.random.default_rng(0)
    drawn = [Paths.drawn(p, generator, 8) for p in (first, second, first)]
    reference, spans = np.array([-2.0, -1.0]), np.ones(2)
    return [
        ExpectedImprovement.over((first, second), E),
        ExpectedImprovement.over((first, second), E, 0.2),
        PathwiseImprovement.over(drawn[:1], [], E[:5], reference[:1], spans[:1], generator, 0.2),
        PathwiseImprovement.over(drawn[:2], [], E[:5], reference, spans, generator),
        PathwiseImprovement.over(drawn[:2], drawn[2:], E[:5], reference, spans, generator),
    ]


@pytest.mark.parametrize(
    "acquisition_function", surfaces(), ids=["expected", "margin", "drawn", "two objectives", "constrained"]
)
class TestEverySurface:
    def test_values_are_the_same_with_gradients(self, acquisition_function: Acquisition) -> None:
        E = embedded(6, 1)
        np.testing.assert_allclose(
            acquisition_function.values_and_gradients(E)[0], acquisition_function.values(E), rtol=1e-8
        )
        np.testing.assert_allclose(
            acquisition_function.values_and_gradients(E[:1])[0], acquisition_function.values(E)[:1], rtol=1e-8
        )

    def test_gradient_matches_central_differences(self, acquisition_function: Acquisition) -> None:
        E = embedded(6, 2)
        gradients = acquisition_function.values_and_gradients(E)[1]
        h = 1e-7  # small beside the width of the smoothed improvement
        check_gradient(acquisition_function.values, gradients, E, h, rtol=1e-3, atol=1e-4)


def test_log_improvement_near_and_far() -> None:
    z = np.linspace(-6, 5, 200)
    np.testing.assert_allclose(log_improvement(z), np.log(norm.pdf(z) + z * norm.cdf(z)), rtol=1e-6)
    far = np.array([-20.0, -100.0, -900.0, -1100.0, -1e5])
    # h(z) = pdf(z) (1 / z^2 - 3 / z^4 + 15 / z^6 - ...)
    expected = norm.logpdf(far) + np.log(1 / far**2 - 3 / far**4 + 15 / far**6)
    np.testing.assert_allclose(log_improvement(far), expected, rtol=1e-6)


@pytest.mark.parametrize(("noise", "margin"), [(1e-4, 0.0), (0.02, 0.0), (0.5, 0.0), (0.02, 0.3)])
def test_improvement_is_the_mean_over_draws_of_the_row_and_of_the_best_trial(noise: float, margin: float) -> None:
    some, E, _ = posterior(noise=noise)
    best = int(np.argmax(some.mean(E)))
    asked = np.vstack([embedded(5, 1), E[best] + 0.01, E[best : best + 1]])
    rows = np.vstack([asked, E[best]])
    root = np.linalg.cholesky(covariance_of(some, rows) + 1e-12 * np.eye(len(rows)))
    draws = some.mean(rows) + np.random.default_rng(0).standard_normal((200_000, len(rows))) @ root.T
    gained = np.maximum(draws[:, :-1] - draws[:, -1:] - margin, 0)
    tolerance = 5 * gained.std(axis=0) / np.sqrt(len(draws)) + 1e-5
    improvement = ExpectedImprovement.over((some,), E, margin)
    result = np.exp(improvement.values(asked))
    np.testing.assert_allclose(improvement.mean(asked), np.exp(ExpectedImprovement.over((some,), E).values(asked)))
    np.testing.assert_array_less(np.abs(result - gained.mean(axis=0)), tolerance)
    assert result[-1] < 1e-5 < result[:5].max()  # the best is no improvement on itself, however little is known of it


def test_improvement_of_several_posteriors_is_their_mean() -> None:
    first, E, _ = posterior()
    second, _, _ = posterior(0.7, 0.1)
    asked = embedded(5, 1)
    single = [np.exp(ExpectedImprovement.over((p,), E).values(asked)) for p in (first, second)]
    both = np.exp(ExpectedImprovement.over((first, second), E).values(asked))
    np.testing.assert_allclose(both, np.mean(single, axis=0), rtol=1e-10)
