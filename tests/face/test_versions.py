"""A study says what has changed since it began, and is shown where the libraries of its solvers are missing."""

import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.daily.retuning import retune
from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.tuner.splits.seals import read_sealed, remove_sealed, write_sealed
from tests.support.commands import called, letor

SOLVERS = {"catboost": "CatBoostRanker", "xgboost": "XGBoostRanker", "lightgbm": "LambdaMART"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return letor(tmp_path / "train.txt", 40, 1, documents=5)


def tuned(data: Path, *solvers: str) -> None:
    space = {f"{name}.trees": [20] for name in SOLVERS.values() if name in solvers}
    given: dict[str, Any] = {"solvers": solvers, "trials": 2, "metric": "pairwise", "space": space}
    ranktune.tune(data, name="s", **given, home=data.parent)


def with_versions(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """Let packages have other versions; None: not installed."""
    real = metadata.version

    def version(name: str) -> str:
        found = versions.get(name.replace("-", "_"), real(name))
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)


def said(command: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        command()
    return [str(each.message) for each in caught if issubclass(each.category, RankTuneWarning)]


def test_other_versions_are_said_in_a_line(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned(data, "RidgeRanker", "LambdaMART")
    unused: dict[str, str | None] = {"catboost": "9.9", "polars": "9.9"}  # by its solvers
    changed = {"numpy": "9.9", "lightgbm": "9", "optuna": None}
    lines = [f"{name} {metadata.version(name)} -> {new}" for name, new in changed.items()]
    with monkeypatch.context() as patch:
        with_versions(patch, **unused)
        assert said(lambda: ranktune.resume("s", home=data.parent)) == []
        with_versions(patch, **changed | unused)
        for command in (
            lambda: ranktune.resume("s", trials=3, home=data.parent),
            lambda: retune("s", data, trials=2, home=data.parent),
        ):
            (line,) = [text for text in said(command) if "versions" in text]
            assert "\n" not in line and not any(name in line for name in unused)
            assert all(each in line for each in lines)
    assert said(lambda: ranktune.resume("s", home=data.parent)) == []


def test_a_study_of_an_earlier_version_kept_none(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned(data, "RidgeRanker")
    file = data.parent / "s" / "study.json"
    declared = read_sealed(file)
    versions = declared.pop("versions")
    assert versions["Python"] == sys.version.split()[0] and versions["numpy"] == np.__version__
    write_sealed(file, json.dumps(declared))
    with_versions(monkeypatch, numpy="9.9")
    for trials in (3, 4):  # nor does it get those of today
        assert said(lambda trials=trials: ranktune.resume("s", trials=trials, home=data.parent)) == []


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    real = importlib.util.find_spec

    def forget(library: str) -> None:
        monkeypatch.setattr(libraries, "find_spec", lambda name: None if name == library else real(name))
        monkeypatch.setitem(sys.modules, library, None)
        clear()

    def clear() -> None:
        libraries.is_installed.cache_clear()
        libraries.why_not.cache_clear()

    yield forget
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize("library", SOLVERS)
def test_a_study_is_shown_without_the_libraries_of_its_solvers(
    library: str, data: Path, missing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    tuned(data, "RidgeRanker", SOLVERS[library])
    remove_sealed(data.parent / "s" / "result.json")  # as if it had been killed
    monkeypatch.chdir(data.parent)
    missing(library)
    for command in ("show s", "show s --page s.html", "show", "retune s --history"):
        done = called(*command.split(), "--home", ".", env={"COLUMNS": "120"})
        assert done.exit_code == 0, (command, done.output, done.exception)
        assert "unreadable" not in done.output and "not installed" not in done.output
    reason = f"{libraries.NAMES[library]} is not installed: pip install"
    with pytest.raises(ParameterError, match=reason):
        ranktune.resume("s", trials=3, home=data.parent)
    with pytest.raises(ParameterError, match=reason):
        ranktune.tune(data, solvers=SOLVERS[library], trials=1, home=data.parent)
