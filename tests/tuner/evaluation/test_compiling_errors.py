"""Errors of the compiler are tried again, and no trial fails for them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktune.solvers.core.compiled import is_compiling_error
from ranktune.tuner.evaluation import evaluate
from ranktune.tuner.evaluation.evaluate import COMPILING_TRIES, compiled_at_last


def raising(module: str) -> Callable[[], None]:
    """Return a function of a module that raises what numba raised once."""
    space: dict[str, object] = {"__name__": module}
    exec("def fail(): raise RuntimeError(\"no compiled object yet for <Library '_below'>\")", space)
    return space["fail"]  # type: ignore[return-value]


@pytest.mark.parametrize(("module", "counts"), [("numba.core.codegen", True), ("llvmlite.x", True), ("mine", False)])
def test_errors_of_the_compiler_are_recognised(module: str, counts: bool) -> None:
    with pytest.raises(RuntimeError) as raised:
        raising(module)()
    assert is_compiling_error(raised.value) == counts
    assert not is_compiling_error(RuntimeError())


def test_they_are_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    anew: list[int] = []
    monkeypatch.setattr(evaluate, "compile_anew", lambda: anew.append(len(tries)))
    tries: list[int] = []

    def compute() -> int:
        tries.append(1)
        if len(tries) < COMPILING_TRIES:
            raising("numba.core.codegen")()
        return 7

    assert compiled_at_last(compute) == 7
    assert anew == [COMPILING_TRIES - 1]


@pytest.mark.parametrize(("module", "times"), [("numba.core.codegen", COMPILING_TRIES), ("mine", 1)])
def test_what_lasts_is_raised(module: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "compile_anew", lambda: None)
    tries: list[int] = []

    def compute() -> None:
        tries.append(1)
        raising(module)()

    with pytest.raises(RuntimeError, match="no compiled object yet"):
        compiled_at_last(compute)
    assert len(tries) == times


PROGRAM = """
from ranktune.solvers.losses.window_sums import offsets
from ranktune.tuner.evaluation.evaluate import compiled_at_last
print(compiled_at_last(lambda: offsets(4)).sum())
"""


@pytest.mark.thorough
def test_damaged_machine_code_is_compiled_anew(tmp_path: Path) -> None:
    def run() -> str:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout

    expected = run()
    kept = list(tmp_path.rglob("*.nbc"))
    assert kept
    for damage in (b"", b"\0" * 100, kept[0].read_bytes()[:200]):
        for file in kept:
            file.write_bytes(damage)
        assert run() == expected
