"""What a worker computes for the coordinator, and what the coordinator never loads."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune import register_metric, register_solver
from ranktune.solvers.core.errors import WorkerLost
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.workers import processes
from ranktune.tuner.workers.executor import Processes, make_executor
from tests.support.commands import output_of, write_letor
from tests.support.custom_solvers import PowerRidge

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


def test_what_workers_do_for_the_coordinator_loads_no_database() -> None:
    """Reading the data, blending, learning for use, keeping: all that it calls elsewhere."""
    modules = ("reading", "tuner.selection.finals", "tuner.selection.evidence", "tuner.evaluation.evaluate")
    imports = "; ".join(f"import ranktune.{module}" for module in modules)
    assert not {"sqlalchemy", "ranktune.api"} & set(output_of(f"import sys; {imports}; print(*sys.modules)").split())


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


@pytest.mark.parametrize("deaths", [1, 2])
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


def value(solver: str, metric: str) -> tuple[float, Any]:
    """What a registered solver scores by a registered metric, and its model."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    queries = Queries.from_arrays(X, X[:, 0] > 0, group=[10] * 4)
    ranker = make(solver, {}, 0).fit(queries)
    return parse_metric(metric).mean(ranker.predict(queries), queries), ranker.as_model()


def test_a_worker_knows_what_is_registered_by_the_time_of_sending() -> None:
    class Local(PowerRidge):
        """It has no import path, so that it is sent by value."""

    with Processes(1) as executor:
        assert executor.submit(pow, 2, 5).result() == 32
        register_solver("Local", Local)
        register_metric("first", lambda grades: float(grades[0]))
        here, model = value("Local", "first")
        there, returned = executor.submit(value, "Local", "first").result()
        assert there == here == executor.call(value, "local", "first")[0]
        np.testing.assert_array_equal(returned.predict(np.eye(3)), model.predict(np.eye(3)))
        assert type(returned.estimator) is Local
