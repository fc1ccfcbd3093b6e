"""Tests of the quasi-random points against scipy."""

import numpy as np
import pytest
from scipy.stats import qmc

from ranktune.tuner.gp.search import BITS, DIMENSIONS, sobol_points


@pytest.mark.parametrize("dimensions", [1, 7, DIMENSIONS])
@pytest.mark.parametrize("skip", [0, 1, 6, 1001])
def test_the_points_are_those_of_scipy(dimensions: int, skip: int) -> None:
    ours, theirs = (np.random.default_rng(skip) for _ in range(2))
    engine = qmc.Sobol(dimensions, bits=BITS, seed=theirs)
    if skip:
        engine.fast_forward(skip)
    assert np.array_equal(sobol_points(64, dimensions, ours, skip), engine.random(64))
    assert ours.random() == theirs.random()  # what follows is the same too
