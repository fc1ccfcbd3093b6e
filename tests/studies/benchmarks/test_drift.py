"""The benchmark of alarms: its data are as it says, and in small it finds what changes and little else."""

import numpy as np
import pytest

from ranktune.studies.benchmarks.drift import NOISE, day, main, noise_of


def test_the_noise_of_a_loss_costs_that_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.studies.benchmarks.drift.CALIBRATION", 4000)
    levels = NOISE, noise_of(0.03)
    usual, worse = (np.nanmean(day(np.random.default_rng(1), 8000, noise).values) for noise in levels)
    assert usual - worse == pytest.approx(0.03, abs=0.01)


def test_in_small_a_large_loss_is_found_and_quiet_days_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.studies.benchmarks.drift.CALIBRATION", 2000)
    quiet, changed = main(studies=6, days=5, changed=4, queries=200, training=200, test=400, loss=0.1, seed=0)
    (level,) = quiet.rows
    assert level["days"] == 30 and float(str(level["alarm"]).rstrip("%")) <= 20.0
    loss, higher, dealt, _ = changed.rows
    assert loss["by day 2"] == dealt["on day 1"] == "100.0%" and loss["features"] != "100.0%"
    assert float(str(higher["metric"]).rstrip("%")) <= 50.0
