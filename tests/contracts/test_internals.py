"""Private names of other libraries are used in one file a library, which fails here when the library changes."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import numba
import optuna
import pytest
from numba.core import types
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial
from packaging.requirements import Requirement

from ranktune.solvers.core import numba_internals
from ranktune.solvers.data.products import _code
from ranktune.tuner.storage import optuna_internals
from ranktune.tuner.storage.optuna_internals import TrialRows
from tests.support.paths import ROOT

INTERNALS = {
    "optuna": ("tuner/storage/optuna_internals.py", r"optuna(\.\w+)*\._[a-z]|\._datetime_"),
    "numba": ("solvers/core/numba_internals.py", r"\._numba_type_|cpu_target|\._cache_file"),
}


@pytest.mark.parametrize("library", INTERNALS)
def test_one_file_alone_uses_what_is_private(library: str) -> None:
    place, private = INTERNALS[library]
    users = {
        path.relative_to(ROOT).as_posix()
        for folder in ("solvers", "tuner", "studies", "dashboards")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(private, path.read_text(encoding="utf-8"))
    }
    assert users == {place}


@pytest.mark.parametrize("library", ["optuna"])
def test_libraries_are_bounded_to_versions_that_were_tested(library: str) -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (requirement,) = [candidate for candidate in map(Requirement, needed) if candidate.name == library]
    assert any(bound.operator == "<" for bound in requirement.specifier)
    assert version(library) in requirement.specifier


def test_optuna_reads_what_is_written_into_its_tables(tmp_path: Path) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'record.db'}")
    study = optuna.create_study(storage=storage, study_name="s")
    written = create_trial(
        state=TrialState.PRUNED,
        value=0.25,
        params={"x": 0.5},
        distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
        user_attrs={"number": 3},
        system_attrs={"a": "b"},
        intermediate_values={2: 0.125},
    )
    with storage.engine.begin() as connection:
        optuna_internals.OptunaTables(connection)  # they are there
        TrialRows(storage.get_study_id_from_name("s"), "number").write(connection, written)
    (read,) = study.get_trials()
    for name in ("state", "value", "params", "distributions", "user_attrs", "system_attrs", "intermediate_values"):
        assert getattr(read, name) == getattr(written, name)
    assert (read.datetime_start, read.datetime_complete) == (written.datetime_start, written.datetime_complete)


def test_numba_has_types_of_functions() -> None:
    assert isinstance(numba_internals.type_of_dispatcher(numba.njit(lambda x: x + 1)), types.Dispatcher)
    assert isinstance(numba_internals.type_of_intrinsic(_code), types.Function)
    numba_internals.load_types()
