"""Public names are documented in numpydoc's sections: every parameter is described, and the examples run."""

import doctest
import gc
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranktune
import ranktune.solvers
import ranktune.tuner

MODULES = {module.__name__: module for module in (ranktune, ranktune.solvers, ranktune.tuner)}
PUBLIC = sorted(
    f"{where}.{name}" for where, module in MODULES.items() for name in module.__all__ if not name.startswith("__")
)

SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)
"""The title of a section, underlined."""


def named_object(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(MODULES[module], name)


def sections(value: Any) -> dict[str, str]:
    """The sections of a docstring by title; the summary is under no title."""
    parts = SECTION.split(inspect.getdoc(value) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section: str) -> list[str]:
    """The names of parameters that a section describes, in order: lines "name : type" or "name, name : type"."""
    lines = [line.partition(" : ")[0] for line in section.splitlines() if re.match(r"[*\w][\w*, ]*( : |$)", line)]
    return [name.strip().lstrip("*") for line in lines for name in line.split(",")]


def parameters(value: Any) -> list[str]:
    return [
        parameter.name
        for parameter in inspect.signature(value).parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]


def examples(value: Any) -> Iterator[doctest.DocTest]:
    """The examples of a function, or of a class and its methods."""
    for test in doctest.DocTestFinder(recurse=True).find(value, module=inspect.getmodule(value)):
        if test.examples:
            yield test


@pytest.mark.parametrize("path", PUBLIC)
def test_every_parameter_is_described(path: str) -> None:
    value = named_object(path)
    assert sections(value)[""].strip(), "a summary"
    assert described(sections(value).get("Parameters", "")) == parameters(value)
    assert not re.search("{(parameters|attributes)}", inspect.getdoc(value) or ""), (
        "a placeholder that nothing has filled"
    )


DEAR = {"ranktune.one_pass"}
"""Examples for whose types of data much is compiled that no other fast test uses."""


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=pytest.mark.thorough if path in DEAR else ()) for path in PUBLIC]
)
def test_the_examples_run(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKTUNE_HOME", str(tmp_path / "runs"))
    ran = 0
    for test in examples(named_object(path)):
        said: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gc.disable()  # it would take sources of collected classes from linecache, which doctest goes through
            try:
                outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
            finally:
                gc.enable()
        assert outcome.failed == 0, "".join(said)
        ran += outcome.attempted  # without those that are skipped
    assert ran > 0, "an example"
