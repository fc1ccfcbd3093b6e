"""Parts of libraries that are put off: not loaded by what we do, and as ever for whoever uses them."""

from __future__ import annotations

import subprocess
import sys

import pytest

WAITING = "lambda name: type(sys.modules[name]).__name__ == '_LazyModule'"

LEARN = f"""
import sys
import numpy as np
from ranktune.solvers import Queries, RankSVM
X = np.random.default_rng(0).standard_normal((40, 3))
RankSVM(C=1.0).fit(X, np.arange(40) % 3, qid=np.repeat(np.arange(4), 10))
waiting = {WAITING}
print([name for name in ("numpy.f2py", "numpy.testing") if not waiting(name)])
"""

USE = """
import sys
import ranktune, scipy.sparse
import numpy as np
print(any(type(one).__name__ == "PutOff" for one in sys.meta_path) and "yaml" in sys.modules)
np.testing.assert_allclose([1.0], [1.0])
from numpy.ma import masked_array
from numpy import f2py
import mako.exceptions, yaml
print(masked_array([1, 2], [True, False]).sum(), callable(f2py.run_main), yaml.safe_load("[1]"))
print(any(type(one).__name__ == "PutOff" for one in sys.meta_path))
"""

EARLIER = """
import sys
import numpy.f2py, numpy.testing, yaml, mako.exceptions
import ranktune
print(any(type(one).__name__ == "PutOff" for one in sys.meta_path), type(numpy.testing).__name__)
"""


def printed(program: str) -> list[str]:
    """Return the lines that a Python of its own prints when it runs the program."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_learning_loads_none_of_the_parts() -> None:
    assert printed(LEARN) == ["[]"]


def test_a_part_is_there_when_it_is_used_and_nothing_of_ours_stays_in_the_import_system() -> None:
    assert printed(USE) == ["False", "2 True [1]", "False"]


def test_what_is_loaded_already_is_left_alone() -> None:
    assert printed(EARLIER) == ["False module"]


@pytest.mark.parametrize("name", ["numpy.testing", "yaml"])
def test_a_part_that_is_missing_is_reported_as_missing(name: str) -> None:
    program = f"""
import sys
import ranktune
from importlib.machinery import PathFinder
import numpy
PathFinder.find_spec = lambda *_: None
try:
    import {name}
except ModuleNotFoundError as error:
    print(error)
"""
    assert printed(program) == [f"No module named '{name}'"]
