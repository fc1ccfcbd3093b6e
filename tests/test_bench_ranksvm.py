"""The benchmark runs on dense and sparse files and reports what it measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ranktune.studies import bench_ranksvm


@pytest.mark.parametrize("form", ["npy", "npz"])
def test_reports_both_methods_and_their_ratio(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    X = generator.random((60, 3))
    if form == "npy":
        np.save(tmp_path / "X.npy", X)
    else:
        sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(X))
    np.save(tmp_path / "y.npy", generator.integers(0, 3, 60).astype(float))
    np.save(tmp_path / "qid.npy", np.arange(60) // 10)
    files = [str(tmp_path / name) for name in (f"X.{form}", "y.npy", "qid.npy")]
    monkeypatch.setattr("sys.argv", ["bench", *files, "--C", "0.5", "--repeats", "1"])
    bench_ranksvm.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["RankSVM", "Ridge", "RankSVM", "RankSVM"]
    assert "converged: True" in lines[2]
    assert float(lines[3].split()[3]) > 0.0
