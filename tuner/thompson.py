"""The decision: from trials to the configuration to try next, in arrays and without Optuna.

Thompson sampling draws one function from the posterior and proposes its maximiser. Hyperparameters are drawn too,
from their own posterior: one set fitted to few trials is too sure of itself. Pending trials are believed to show what
is expected of them, so that the uncertainty that made them attractive does not attract again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ranktune.solvers.arrays import Floats
from ranktune.tuner.cube import Cube
from ranktune.tuner.gaussian_process import Hyperparameters, Posterior, standardised
from ranktune.tuner.hyperparameters import Evidence, fit, samples
from ranktune.tuner.search import maximise
from ranktune.tuner.surfaces import ExpectedImprovement, Path, Surface

ACQUISITIONS = ("ei", "thompson")
MAX_SAMPLED = 150
"""Trials up to which hyperparameters are sampled; beyond, the most probable ones say all, and sampling costs n^3."""
AVERAGED = 4
"""Sets of hyperparameters that the expected improvement is averaged over."""
PROMISING = 5
"""Trials around which to look closely, besides the best of each category that switches parameters on."""


@dataclass(frozen=True, eq=False)
class Trials:
    """What has been seen.

    rows (n, d) masked configurations, in the order in which they were tried; gains (n,) finite, larger is better;
    noise (n,) relative noise variances; pending (q, d) configurations at work.
    """

    rows: Floats
    gains: Floats
    noise: Floats
    pending: Floats


def propose(
    cube: Cube,
    trials: Trials,
    taken: Collection[bytes],
    generator: np.random.Generator,
    acquisition: str = "thompson",
) -> Floats:
    """Return the masked row, (d,), to try next; never one of taken (ranktune.tuner.cube.keys) if others exist.

    acquisition: "thompson" draws a path, "ei" averages the expected improvement over hyperparameters.
    """
    if not cube.varying:
        return cube.only()
    E, y = cube.embed(trials.rows), standardised(trials.gains)
    theta = fit(E, trials.gains, trials.noise, cube.owner)
    improvement = acquisition == "ei"
    thetas = _thetas(Evidence(E, y, trials.noise, cube.owner), theta, AVERAGED if improvement else 1, generator)
    posteriors = [Posterior.of(E, y, trials.noise, Hyperparameters.from_log(t), cube.owner) for t in thetas]
    promising = cube.filled(_promising(cube, trials.rows, posteriors[0].mean(E)), generator)
    pending = cube.embed(trials.pending)
    surface: Surface
    if improvement:
        believing = [p.believing(E, pending, trials.noise, y, cube.owner) if len(pending) else p for p in posteriors]
        surface = ExpectedImprovement.over(tuple(believing), np.vstack([E, pending]))
    else:
        surface = _path(posteriors[0], E, y, pending, trials.noise, cube, generator)
    return maximise(surface, cube, promising, taken, generator)


def _thetas(evidence: Evidence, theta: Floats, count: int, generator: np.random.Generator) -> list[Floats]:
    """Return sampled hyperparameters while trials are few, else the most probable ones."""
    if len(evidence.y) > MAX_SAMPLED:
        return [theta]
    skipped = 0 if count > 1 else 1  # a single draw takes a second sweep to forget the maximum
    return list(islice(samples(evidence, theta, generator), skipped, skipped + count))


def _path(
    posterior: Posterior, E: Floats, y: Floats, pending: Floats, v: Floats, cube: Cube, generator: np.random.Generator
) -> Path:
    """Return a path of the posterior that believes in what is pending."""
    if not len(pending):
        return Path.drawn(posterior, y, generator)
    believed = np.concatenate([y, posterior.mean(pending)])
    return Path.drawn(posterior.believing(E, pending, v, y, cube.owner), believed, generator)


def _promising(cube: Cube, rows: Floats, expected: Floats) -> Floats:
    """Return the trials of the highest expected gain, overall and within each category of a switching axis."""
    order = np.argsort(-expected, kind="stable")
    chosen = order[:PROMISING].tolist()
    for j in range(len(cube.axes)):
        if cube.axes[j].choices and j not in cube.conditional and cube.conditional:
            for choice in range(cube.axes[j].choices):
                chosen += order[rows[order, j] == choice][:1].tolist()
    return rows[list(dict.fromkeys(chosen))]
