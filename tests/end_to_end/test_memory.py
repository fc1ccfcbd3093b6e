"""A study stays within one and a half times its features and 400 MB, and a limit is kept."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("ranktune.studies.benchmarks", reason="no wheel holds the benchmarks: pip install -e .")

from ranktune.studies.benchmarks.memory import EXTRA, FACTOR, peak_of, tune_command, write_data

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc says what processes take"),
]


def test_the_peak_of_a_study_is_within_the_bound(tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    features = write_data(data, 368_000)
    assert 200e6 < features < 201e6
    options = ["--solver", "RidgeRanker", "--solver", "GBDTRanker", "--trials", "3", "--timeout", "25"]
    peak = peak_of(tune_command(data, tmp_path / "home", 1, *options), features)
    assert peak.with_features <= FACTOR * features + EXTRA
    assert peak.anonymous > features / 2  # it was measured


def test_a_limit_is_kept(tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    features = write_data(data, 184_000)
    options = ["--solver", "GBDTRanker", "--trials", "2", "--timeout", "10", "--memory", "700MB"]
    peak = peak_of(tune_command(data, tmp_path / "home", 2, *options), features)
    assert peak.anonymous <= 700e6
