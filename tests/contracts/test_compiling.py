"""How much is compiled: numba takes 0.1 to 1 second for each signature of each kernel, once on a machine."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ranktune.solvers.registry import STANDARD

PROGRAM = """
import json, sys
from numba.core.event import RecordingListener, install_listener
from ranktune.solvers.registry import make
from ranktune.command_line.warming import small_queries
queries, listener = small_queries(), RecordingListener()
with install_listener("numba:compile", listener):
    for name in sys.argv[1:]:
        ranker = make(name, {}, 0)
        ranker.fit(queries)
        ranker.predict(queries)
begun = [event.data["dispatcher"].py_func for _, event in listener.buffer if event.is_start]
print(json.dumps([f"{function.__module__}.{function.__qualname__}" for function in begun]))
"""

MOST_SIGNATURES = 2
"""Of one kernel: numba compiles a helper that is called with the constant 0 once more."""

MOST_KERNELS = 55
"""Of one solver, those of numba included."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", STANDARD)
def test_a_fit_compiles_few_kernels_and_each_for_few_types(name: str, tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    compiled = json.loads(done.stdout)
    assert len(compiled) <= MOST_KERNELS
    ours = Counter(kernel for kernel in compiled if kernel.startswith("ranktune."))
    assert {kernel: count for kernel, count in ours.items() if count > MOST_SIGNATURES} == {}
    assert [kernel for kernel in compiled if "raise_with_shape" in kernel] == []  # of array[:] = array: three seconds
    assert [kernel for kernel in ours if ".losses.smoothed.kernels." in kernel] == []  # no default has noisy rankings
