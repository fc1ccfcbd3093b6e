from __future__ import annotations

import numpy as np
import optuna
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner import ThompsonSampler
from ranktune.tuner.gp import proposal
from ranktune.tuner.gp.encoding import Axis, Encoding, covered
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior
from ranktune.tuner.gp.proposal import EI, MIXED, Trials, propose
from ranktune.tuner.gp.replicates import best_replicate, knowledge_gradients

SQUARE = Encoding((Axis("x"), Axis("y")))
OWNER = np.arange(2)


def posterior(noise: float, n: int = 12) -> tuple[Posterior, Floats]:
    generator = np.random.default_rng(0)
    E = generator.random((n, 2))
    y = np.sin(5 * E[:, 0]) + np.sqrt(noise) * generator.standard_normal(n)
    return Posterior.of(E, y, np.ones(n), Hyperparameters(np.array([4.0, 1.0]), 1.0, noise), OWNER), E


def test_the_value_of_a_repeat_is_the_rise_of_the_highest_mean() -> None:
    """Against observations drawn from the belief, one after the other, each conditioned on by brute force."""
    some, E = posterior(0.4)
    generator = np.random.default_rng(1)
    y = np.tril(some.L) @ np.tril(some.L).T @ some.a
    for place in (int(np.argmax(some.mean(E))), 3):
        mean, variance = some.mean_and_variance(E[place : place + 1])
        rises = []
        for _ in range(3000):
            observed = mean[0] + np.sqrt(variance[0] + 0.4) * generator.standard_normal()
            updated = Posterior.of(
                np.vstack([E, E[place]]), np.append(y, observed), np.ones(13), some.hyperparameters, OWNER
            )
            rises.append(updated.mean(E).max() - some.mean(E).max())
        error = np.std(rises) / np.sqrt(len(rises))
        assert knowledge_gradients(some, E, [place])[0] == pytest.approx(np.mean(rises), abs=4 * error + 2e-3)


def test_without_noise_no_repeat_has_value() -> None:
    some, E = posterior(1e-8)
    assert knowledge_gradients(some, E, list(range(12))).max() < 1e-4
    assert best_replicate([some], E, np.array([0.5, 0.5])) is None


def test_with_much_noise_one_of_the_best_has_the_highest_value() -> None:
    some, E = posterior(1.0)
    place = best_replicate([some], E, E[int(np.argmin(some.mean(E)))])
    assert place is not None and some.mean(E)[place] > np.median(some.mean(E))


def noisy(sd: float, pending: Floats | None = None) -> Trials:
    generator = np.random.default_rng(0)
    rows = SQUARE.from_unit(generator.random((40, 2)))
    gains = -((rows - 0.4) ** 2).sum(axis=1) + sd * generator.standard_normal(40)
    return Trials(rows, gains, np.ones(40), np.empty((0, 2)) if pending is None else pending, level=sd * sd)


@pytest.mark.parametrize("acquisition", [EI, MIXED])
def test_a_trial_is_repeated_only_where_noise_requires_it(acquisition: str) -> None:
    for sd, least, most in ((0.5, 3, 10), (1e-4, 0, 0)):
        trials = noisy(sd)
        taken = trials.rows
        rows = np.array(
            [
                propose(SQUARE, trials, taken, np.random.default_rng(s), acquisition, replicates=True).row
                for s in range(10)
            ]
        )
        assert least <= covered(rows, taken).sum() <= most
        never = propose(SQUARE, trials, taken, np.random.default_rng(0), acquisition).row
        assert not covered(never[None], taken)[0]


def test_a_running_repeat_is_accounted_for() -> None:
    trials = noisy(0.5)
    row = propose(SQUARE, trials, None, np.random.default_rng(0), replicates=True).row
    busy = noisy(0.5, np.repeat(row[None], 30, axis=0))
    assert propose(SQUARE, busy, None, np.random.default_rng(0), replicates=True).row.tolist() != row.tolist()


def test_a_study_with_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "share_after", lambda *_: 0.0)  # a gain is observed after each
    sampler = ThompsonSampler(seed=0, startup=6, replicates=True)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return (x - 0.3) ** 2 + float(np.random.default_rng(trial.number).normal(0, 0.5))

    study.optimize(objective, n_trials=25)
    places = [trial.params["x"] for trial in study.trials]
    assert len(set(places)) < 25 and sampler.expected_gain is not None and sampler.expected_gain >= 0
