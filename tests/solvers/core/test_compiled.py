"""Cached machine code is that of the sources as they are."""

import importlib
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from ranktune.solvers.boosting import rank_boost
from ranktune.solvers.core import compiled as module
from ranktune.solvers.core.machine_code import folders
from ranktune.solvers.data import products
from ranktune.solvers.losses import order_statistics_kernels, window_sums
from ranktune.solvers.optimizers import domination_columns

INNER = "from ranktune.solvers.core.compiled import compiled\n@compiled\ndef inner(x):\n    return x + {}\n"
OUTER = """from ranktune.solvers.core.compiled import compiled
import inner_kernels
from inner_kernels import inner
@compiled
def twice_removed(x):
    return by_name(x)
@compiled
def by_name(x):
    return 10 * inner(x)
@compiled
def by_module(x):
    return 10 * inner_kernels.inner(x)
found = [by_name(1), by_module(1), twice_removed(1)]
found.append(sum(kernel.machine.stats.cache_hits.total() for kernel in (by_name, by_module)))
"""


def test_a_change_of_a_kernel_reaches_those_that_call_it_from_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ranktune.solvers.core.machine_code import locator

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(folders, "code_folder", folders.code_folder.__wrapped__)
    monkeypatch.syspath_prepend(tmp_path)

    def run() -> list[int]:
        for name in ("inner_kernels", "outer_kernels"):
            sys.modules.pop(name, None)
        locator._stamp.cache_clear()
        found: list[int] = importlib.import_module("outer_kernels").found
        return found

    (tmp_path / "outer_kernels.py").write_text(OUTER)
    (tmp_path / "inner_kernels.py").write_text(INNER.format("1"))
    assert run() == [20, 20, 20, 0]
    assert run() == [20, 20, 20, 2]
    (tmp_path / "inner_kernels.py").write_text(INNER.format("100"))
    assert run() == [1010, 1010, 1010, 0]


@pytest.mark.parametrize(
    ("kernel", "files"),
    [
        (products.dense_times, {"products"}),
        (window_sums.sum_many, {"window_sums"}),
        (rank_boost.potentials, {"rank_boost"}),
        (order_statistics_kernels.rank, {"order_statistics_kernels", "grades", "window_sums"}),
        (window_sums.add, {"window_sums"}),
        (domination_columns.bounded_sweep, {"domination_columns", "domination_kernels"}),
    ],
)
def test_kernels_know_the_files_they_come_from(kernel: module.Kernel, files: set[str]) -> None:
    assert {Path(name).stem for name in module.files_of(kernel.function)} == files


def test_compiling_is_timed_and_running_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels_of_a_new_file.py").write_text(INNER.format(f"1  # {uuid4()}"))  # no machine code is kept of it
    monkeypatch.syspath_prepend(tmp_path)
    kernel = importlib.import_module("kernels_of_a_new_file").inner
    with module.compiling() as first:
        kernel(1.0)
    with module.compiling() as second:
        kernel(2.0)
    assert len(first) == 1
    assert first[0] > 0.0
    assert second == []
