"""Solvers by name."""

import ast
import inspect
from importlib import import_module

import pytest

import ranktune.solvers
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.libraries import INSTALL
from ranktune.solvers.registry import SOLVERS, STANDARD, make, solver_class
from tests.support.commands import output_of


def test_every_name_is_the_class_of_that_name() -> None:
    assert sorted(SOLVERS) == list(SOLVERS)
    for name, solver in SOLVERS.items():
        assert solver.__name__ == name
        assert issubclass(solver, BaseRanker)


def test_the_case_of_a_name_does_not_matter() -> None:
    assert solver_class("ranksvm") is SOLVERS["RankSVM"]


def test_make_sets_parameters_and_the_seed_where_there_is_one() -> None:
    assert make("RankSVM", {"C": 3.0}, seed=5).get_params()["C"] == 3.0
    for name in SOLVERS:
        parameters = make(name, {}, seed=5).get_params()
        assert parameters.get("random_state", 5) == 5


def test_public_names_are_importable_and_every_solver_is_one() -> None:
    assert set(SOLVERS) <= set(ranktune.solvers.__all__)
    for name in ranktune.solvers.__all__:
        assert getattr(ranktune.solvers, name).__name__ == name
    assert dir(ranktune.solvers) == sorted(ranktune.solvers.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        ranktune.solvers.Nonsense  # noqa: B018


def test_type_checkers_see_every_public_name() -> None:
    block = next(node for node in ast.parse(inspect.getsource(ranktune.solvers)).body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    for name, module in seen.items():
        assert getattr(import_module(str(module)), name) is getattr(ranktune.solvers, name)
    assert len(seen) >= 46  # a solver that is added needs no line there: it has no static type then


def test_the_standard_solvers_are_registered_from_the_fastest_on() -> None:
    assert STANDARD[0] == "BestFeature" and STANDARD[-4:] == ("SymmetricGBDT", "GBDTRanker", "LambdaMART", "Ranker")
    libraries = {SOLVERS.library(name) for name in STANDARD} - {None}
    assert not [name for name in libraries if "ranktune[" in INSTALL[str(name)]]  # an extra competes when it is named


def test_importing_the_registry_imports_no_solver() -> None:
    code = (
        "import sys, ranktune.solvers, ranktune.solvers.registry;"
        "below = tuple(f'ranktune.solvers.{name}' for name in ('linear', 'online', 'boosting', 'metrics.metrics'));"
        "print([name for name in sys.modules if name.startswith(below)])"
    )
    assert output_of(code) == "[]\n"
