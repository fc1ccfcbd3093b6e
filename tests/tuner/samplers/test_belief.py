"""What the optimiser believes: equal to the surrogate of the sampler, in the units of the metric."""

from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from ranktune.solvers.registry import solver_class
from ranktune.tuner.gp.hyperparameters import FittedTrials
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, standardise
from ranktune.tuner.samplers.belief import MAX_TRIALS_IN_BELIEF, Belief, Observation, fit_belief
from ranktune.tuner.samplers.history import read
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.gp_samples import covariance as covariance_of
from tests.support.study_samples import sampled, simulated_metric

SOLVERS = ("RankSVM", "LambdaRank", "ElasticRank")


def space_of(*solvers: str) -> UnionSpace:
    return UnionSpace({name: solver_class(name).space for name in solvers or SOLVERS})


def observations_of(count: int, *solvers: str, failing: int = 0, seed: int = 0) -> list[Observation]:
    generator = np.random.default_rng(seed)
    results = []
    for k in range(count):
        solver = (solvers or SOLVERS)[k % len(solvers or SOLVERS)]
        queries = sampled(solver, generator)
        flat = {"solver": solver} | {f"{solver}.{name}": value for name, value in queries.items()}
        value = None if failing and k % failing == 1 else simulated_metric(queries, generator)
        results.append(Observation(flat, value, None if value is None else 1e-4 * (1 + k % 3)))
    return results


def history_of(space: UnionSpace, observed: list[Observation]) -> Any:
    """Return the sampler's view of the same trials, through an Optuna study."""
    study = optuna.create_study(direction="maximize")
    for seen in observed:
        study.add_trial(
            create_trial(
                state=TrialState.FAIL if seen.value is None else TrialState.COMPLETE,
                value=seen.value,
                params=dict(seen.params),
                distributions={name: space.distributions[name] for name in seen.params},
                user_attrs={} if seen.variance is None else {"variance": seen.variance},
            )
        )
    current = study.ask()
    return read(study, study.get_trials(deepcopy=False)[current.number], space.distributions, space)


def fitted(space: UnionSpace, observed: list[Observation], most: int = MAX_TRIALS_IN_BELIEF) -> Belief:
    result = fit_belief(space, observed, most)
    assert result is not None
    return result


@pytest.mark.parametrize("failing", [0, 5])
def test_it_equals_the_surrogate_of_the_sampler(failing: int) -> None:
    space, observed = space_of(), observations_of(40, failing=failing)
    history = history_of(space, observed)
    belief = fitted(space, observed)
    np.testing.assert_array_equal(belief.rows, history.trials.rows)
    E, y = history.encoding.embed(history.trials.rows), standardise(history.trials.gains)
    theta = FittedTrials(E, history.trials.gains, history.trials.noise, history.encoding.axis_of_column).fit()
    posterior = Posterior.of(
        E, y, history.trials.noise, Hyperparameters.from_log(theta), history.encoding.axis_of_column
    )
    asked = history.encoding.masked(
        history.encoding.from_unit(np.random.default_rng(3).random((20, len(history.encoding.axes))))
    )
    mean, variance = posterior.mean_and_variance(history.encoding.embed(asked))
    told_mean, told_sd = belief.mean_and_sd(asked)
    np.testing.assert_allclose(told_mean, belief.centre + belief.spread * mean, rtol=1e-12)
    np.testing.assert_allclose(told_sd, belief.spread * np.sqrt(variance), rtol=1e-12)


def test_a_trial_that_was_stopped_counts_as_much_as_it_tells() -> None:
    space, observed = space_of(), observations_of(30)
    plain = fitted(space, observed)
    stopped = [replace(seen, partial=1e9 if k % 3 == 0 else 0.0) for k, seen in enumerate(observed)]
    belief = fitted(space, stopped)
    noise = belief.posterior.noise * belief.spread**2
    assert (noise[::3] > 1e8).all() and (np.delete(noise, np.s_[::3]) < 1).all()
    _, sd = belief.mean_and_sd(belief.rows[::3])
    assert (sd > plain.mean_and_sd(plain.rows[::3])[1]).all()


def test_units_are_those_of_the_metric() -> None:
    observed = observations_of(30, "RankSVM")
    belief = fitted(space_of("RankSVM"), observed)
    values = np.array([seen.value for seen in observed])
    on_scale = belief.centre + belief.spread * standardise(values)
    usual = values > np.median(values)
    np.testing.assert_allclose(on_scale[usual], values[usual], rtol=1e-9)
    shifted = [Observation(seen.params, 100.0 + 8.0 * (seen.value or 0.0), seen.variance) for seen in observed]
    other = fitted(space_of("RankSVM"), shifted)
    a, b = belief.mean_and_sd(belief.rows), other.mean_and_sd(belief.rows)
    np.testing.assert_allclose(b[0], 100.0 + 8.0 * a[0], rtol=1e-5)
    np.testing.assert_allclose(b[1], 8.0 * a[1], rtol=1e-2)


def test_left_out_is_what_the_others_predict() -> None:
    space, observed = space_of("RankSVM", "LambdaRank"), observations_of(16, "RankSVM", "LambdaRank")
    belief = fitted(space, observed)
    expected, sd = belief.left_out()
    E, posterior = belief.encoding.embed(belief.rows), belief.posterior
    y, v = posterior.y, posterior.noise / posterior.hyperparameters.noise
    for i in range(16):
        rest = np.arange(16) != i
        without = Posterior.of(E[rest], y[rest], v[rest], posterior.hyperparameters, belief.encoding.axis_of_column)
        mean, variance = without.mean_and_variance(E[i : i + 1])
        assert expected[i] == pytest.approx(belief.centre + belief.spread * mean[0], rel=1e-6)
        noisy = variance[0] + posterior.noise[i]
        assert sd[i] == pytest.approx(belief.spread * np.sqrt(noisy), rel=1e-6)


def test_a_slice_passes_through_the_configuration_it_starts_from() -> None:
    space, observed = space_of(), observations_of(45)
    belief = fitted(space, observed)
    start = next(seen.params for seen in observed if seen.params["solver"] == "ElasticRank")
    here, here_sd = belief.mean_and_sd(belief.encoding.masked(belief.full(start)[None]))
    for name in start:
        if name.count(".") and not space.distributions[name].single():
            result = belief.slice(start, name)
            if not result.is_number:
                at = list(result.values).index(start[name])
                assert result.mean[at] == pytest.approx(here[0])
                assert result.sd[at] == pytest.approx(here_sd[0])
            else:
                assert result.mean.min() <= here[0] + 1e-3
                assert result.mean.max() >= here[0] - 1e-3
                low, high = min(result.values), max(result.values)
                assert low <= start[name] <= high


def test_draws_with_equal_seeds_are_the_same_functions_with_the_posterior_spread() -> None:
    belief = fitted(space_of("RankSVM"), observations_of(12, "RankSVM"))
    start = dict(observations_of(1, "RankSVM")[0].params)
    a, b = (belief.slice(start, "RankSVM.C", draws=3, seed=5).draws for _ in range(2))
    np.testing.assert_array_equal(a, b)
    many = belief.slice(start, "RankSVM.C", draws=400, seed=1)
    np.testing.assert_allclose(many.draws.mean(axis=0), many.mean, atol=4 * many.sd.max() / 20)
    assert np.median(many.draws.std(axis=0) / many.sd) == pytest.approx(1.0, abs=0.15)


def test_dependence_is_the_mean_over_rows_with_the_uncertainty_of_that_mean() -> None:
    belief = fitted(space_of("ElasticRank"), observations_of(30, "ElasticRank"))
    others = belief.encoding.from_unit(np.random.default_rng(0).random((12, len(belief.encoding.axes))))
    name = "ElasticRank.l1"  # active with some optimizers only
    result = belief.dependence(name, others, 5)
    j = belief.axis(name)
    kept = others[~np.isnan(belief.encoding.masked(others)[:, j])]
    assert 0 < len(kept) < len(others)
    for i, place in enumerate(belief.grid(name, 5)):
        rows = kept.copy()
        rows[:, j] = place
        E = belief.encoding.embed(belief.encoding.masked(rows))
        assert result.mean[i] == pytest.approx(belief.centre + belief.spread * belief.posterior.mean(E).mean())
        variance = covariance_of(belief.posterior, E).mean()
        assert result.sd[i] == pytest.approx(belief.spread * np.sqrt(variance), rel=1e-6)


def test_of_many_trials_a_choice_with_the_best_stands_for_all() -> None:
    space, observed = space_of("RankSVM"), observations_of(90, "RankSVM")
    belief = fitted(space, observed, 30)
    values = np.array([seen.value for seen in observed])
    assert len(belief.chosen) == 30
    assert set(np.argsort(-values)[:15].tolist()) <= set(belief.chosen.tolist())
    assert int(np.argmin(values)) in belief.chosen
    np.testing.assert_array_equal(belief.posterior.y, standardise(values[belief.chosen]))


def test_there_is_no_belief_without_values_or_without_anything_to_vary() -> None:
    space = space_of("RankSVM")
    assert fit_belief(space, []) is None
    assert fit_belief(space, [Observation(seen.params, None) for seen in observations_of(5, "RankSVM")]) is None
    fixed = UnionSpace({"RankSVM": solver_class("RankSVM").space}).restricted(
        {
            "RankSVM.C": 1.0,
            "RankSVM.loss": "l2",
            "RankSVM.pairs": "all",
            "RankSVM.scaling": "standard",
            "RankSVM.average": "pairs",
        }
    )
    assert fit_belief(fixed, [Observation({"solver": "RankSVM", "RankSVM.C": 1.0}, 0.5)]) is None


def test_equal_values_and_a_single_trial_are_believed_without_warnings() -> None:
    space, observed = space_of("RankSVM"), observations_of(6, "RankSVM")
    for some in (observed[:1], [Observation(seen.params, 0.25) for seen in observed]):
        belief = fitted(space, some)
        mean, sd = belief.mean_and_sd(belief.rows)
        np.testing.assert_allclose(mean, belief.centre)
        assert np.isfinite(sd).all()
        assert np.isfinite(belief.slice(some[0].params, "RankSVM.C", 2).draws).all()
