"""The walk: each public object once, under its best name, quietly, and the same in every process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search.documentation import Documented, find, installed

INNER = '''
"""Private."""
def work(x):
    """Work hard."""
def _hidden():
    """Not public."""
class Tool:
    """A tool."""
work_alias = work
def copied():
    """The same words."""
def silent(): pass
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with every trap: aliases, copies, noise, side effects, broken and deprecated modules."""
    root = tmp_path / "trapdoc"
    files = {
        "__init__": "from trapdoc._inner import work, work_alias, Tool\nfrom os import getcwd\n"
        "print('noise'); import sys; print('more noise', file=sys.stderr)\n"
        "__all__ = ['work', 'work_alias', 'Tool', 'getcwd', 'missing']",
        "_inner": INNER,
        "extra": "from trapdoc._inner import copied, work, silent\n__all__ = ['copied', 'work', 'silent']",
        "plain": 'from trapdoc._inner import Tool\ndef own():\n    """Own."""',
        "double": 'def copied():\n    """The same words."""',
        "broken": "raise RuntimeError('no')",
        "leaving": "raise SystemExit(3)",
        "old": "import warnings; warnings.warn('old', DeprecationWarning)\ndef gone():\n    '''Gone.'''\n",
        "lazy": "import warnings\n__all__ = ['late', 'fine']\ndef fine():\n    '''Fine.'''\n"
        "def __getattr__(name):\n    warnings.warn('late', DeprecationWarning)\n    return fine\n",
        "_private": "def private():\n    '''Private.'''",
        "conftest": "raise AssertionError",
    }
    root.mkdir()
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
    (root / "tests").mkdir()
    (root / "tests" / "__init__.py").write_text("def test_it():\n    '''Test.'''")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "trapdoc"


def test_walk(package: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = {each.name: each for each in installed([package])}
    assert list(found) == [
        "trapdoc.Tool",
        "trapdoc.double.copied",
        "trapdoc.lazy.fine",
        "trapdoc.plain.own",
        "trapdoc.work",
    ]
    assert found["trapdoc.work"] == Documented(
        "trapdoc.work", ("trapdoc.extra.work", "trapdoc.work_alias"), False, "trapdoc._inner", "Work hard."
    )
    assert found["trapdoc.Tool"].is_class
    assert found["trapdoc.double.copied"].aliases == ("trapdoc.extra.copied",)  # one documentation, one entry
    assert capfd.readouterr() == ("", "")
    assert package not in sys.modules  # the walk was elsewhere


def test_walk_does_not_depend_on_the_hash_seed_or_on_optimisation(package: str, tmp_path: Path) -> None:
    code = (
        "import sys, json; from dataclasses import asdict; sys.path.insert(0, sys.argv[1])\n"
        "from ranktune.solvers.data.api_search.documentation import installed\n"
        "print(json.dumps([asdict(each) for each in installed(['trapdoc'])]))"
    )
    seen = {
        subprocess.run(
            [sys.executable, *options, "-c", code, str(tmp_path)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed, options in (("1", []), ("2", ["-OO"]))
    }
    assert len(seen) == 1 and len(json.loads(seen.pop())) == 5


def test_a_package_that_is_not_there_gives_nothing() -> None:
    assert installed(["no_such_package_anywhere"]) == []


def test_a_walk_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(DataError, match="reading the documentation of numpy failed"):
        installed(["numpy"])
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DataError, match="another Python"):
        installed(["numpy"])


def test_real_package() -> None:
    found = {each.name: each for each in find(["joblib"])}
    assert found["joblib.Parallel"].is_class and not found["joblib.dump"].is_class
    assert "joblib.parallel.Parallel" in found["joblib.Parallel"].aliases
    assert not any("externals" in name or ".test" in name or "._" in name for name in found)
    claimed = [name for each in found.values() for name in (each.name, *each.aliases)]
    assert len(claimed) == len(set(claimed))
