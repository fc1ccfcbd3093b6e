"""What a worker computes for the coordinator, and what the coordinator never loads."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers import processes
from ranktune.tuner.workers.executor import Processes, make_executor
from tests.support.commands import output_of, write_letor

RUN = """
import sys
import ranktune
if __name__ == "__main__":
    ranktune.tune(sys.argv[1], trials=2, solvers=["RankSVM", "ElasticRank"], jobs=2, home=sys.argv[2])
    print(*sorted({"numba", "llvmlite", "narwhals", "rich", "sklearn", "scipy.stats"} & set(sys.modules)))
"""


@pytest.mark.thorough
def test_the_coordinator_of_workers_loads_nothing_that_only_they_need(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.random((180, 2))
    write_letor(tmp_path / "train.txt", X, np.floor(3 * X[:, 0]), np.arange(180) // 6)
    (tmp_path / "run.py").write_text(RUN)
    command = [sys.executable, "run.py", "train.txt", "home"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert any((tmp_path / "home").glob("*/result.json"))


@pytest.mark.parametrize(
    "module", ["reading", "tuner.selection.finals", "tuner.selection.evidence", "tuner.evaluation.evaluate"]
)
def test_what_workers_do_for_the_coordinator_loads_no_database(module: str) -> None:
    """Reading the data, blending, learning for use, keeping: all that it calls elsewhere."""
    program = f"import sys, ranktune.{module}; print('sqlalchemy' in sys.modules, 'ranktune.api' in sys.modules)"
    assert output_of(program).split() == ["False", "False"]


def warned(number: int) -> int:
    warnings.warn(f"{number} is odd", UserWarning, stacklevel=1)
    return number + 1


def test_what_is_called_elsewhere_returns_warns_and_fails_as_here() -> None:
    for jobs in (1, 2):
        with make_executor(jobs) as executor:
            with pytest.warns(UserWarning, match="3 is odd"):
                assert executor.call(warned, 3) == 4
            with pytest.raises(ZeroDivisionError):
                executor.call(divmod, 1, 0)


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_what_a_dying_worker_was_to_compute_is_computed_by_another_and_never_here(deaths: int, tmp_path: Path) -> None:
    here = os.getpid()

    def dies() -> int:
        assert os.getpid() != here
        if len(list(tmp_path.iterdir())) < deaths:
            (tmp_path / str(os.getpid())).touch()
            os._exit(9)
        return 7

    with Processes(1) as executor:
        if deaths < 2:
            assert executor.call(dies) == 7
        else:
            with pytest.raises(WorkerLost, match="exited with code 9"):
                executor.call(dies)


def test_what_no_worker_can_be_started_for_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(processes, "WorkerProcess", refused)
    with Processes(1) as executor:
        assert executor.call(os.getpid) == os.getpid()
