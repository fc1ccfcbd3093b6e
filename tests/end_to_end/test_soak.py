"""Thousands of trials in one process: what is kept of each is little, and asking does not become slower."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.tuner.gp.proposal import MAX_TRIALS, ObservedTrials
from tests.support import soak


def run(folder: Path, trials: int, sampler: str) -> dict[str, Any]:
    """Run in a separate process, so that its memory can be measured."""
    command = [sys.executable, str(Path(soak.__file__)), str(folder), str(trials), sampler]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert len(result["asks"]) == trials
    return result


def check_asks(measured: dict[str, Any]) -> None:
    """Processor time of one machine, in one run: the last trials are asked for as fast as early ones."""
    early, late = (statistics.median(some) for some in (measured["asks"][500:1000], measured["asks"][-500:]))
    assert late <= 2.0 * early


def check_memory(measured: dict[str, Any]) -> None:
    """The resident memory grows by less than a tenth after the first thousand trials."""
    after_thousand, last = measured["memory"][3], measured["memory"][-1]
    assert last < 1.1 * after_thousand


def check_record(measured: dict[str, Any]) -> None:
    """Each thousand of trials adds about the same to the record."""
    grown = np.diff(measured["sizes"][3::4])
    assert grown.max() < 1.3 * grown.min() + 2**20


def test_memory_and_asking_stay_as_they_are(tmp_path: Path) -> None:
    result = run(tmp_path, 1500, "random")
    check_memory(result)
    check_asks(result)


@pytest.mark.slow
def test_ten_thousand_trials_leave_little_behind(tmp_path: Path) -> None:
    result = run(tmp_path, 10_000, "random")
    check_memory(result)
    check_asks(result)
    check_record(result)


@pytest.mark.slow
def test_suggesting_takes_no_longer_with_many_trials_than_with_some(tmp_path: Path) -> None:
    check_asks(run(tmp_path, 1500, "thompson"))


def test_the_model_learns_from_the_best_and_the_latest() -> None:
    generator = np.random.default_rng(0)
    n = 3 * MAX_TRIALS
    gains = np.asarray(generator.normal(size=n), dtype=np.float64)
    rows, noise = np.arange(n, dtype=np.float64)[:, None], np.arange(n, dtype=np.float64) + 1.0
    trials = ObservedTrials(rows, gains, noise, np.zeros((2, 1), dtype=np.float64))
    kept = trials.within(MAX_TRIALS)
    places = kept.rows[:, 0].astype(int)
    assert len(places) == MAX_TRIALS
    assert (np.diff(places) > 0).all(), "in the order in which they were tried"
    np.testing.assert_array_equal(kept.gains, gains[places])
    np.testing.assert_array_equal(kept.noise, places + 1.0)
    best = set(np.argsort(-gains)[: MAX_TRIALS // 2].tolist())
    assert best < set(places.tolist())
    others = [place for place in range(n) if place not in best]
    assert set(places.tolist()) - best == set(others[-MAX_TRIALS // 2 :])
    assert len(kept.pending) == 2
    assert trials.within(n) is trials
