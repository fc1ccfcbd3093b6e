"""The command warm compiles what is missing, once, where numba keeps it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.command_line.warming import compile_solver, small_queries
from tests.support.finished import Heard


def warm(cache: Path, *arguments: str) -> Any:
    """Run the command with machine code in cache, and return what it prints."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "ranktune", "solvers", "--warm", *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_a_second_run_compiles_nothing(tmp_path: Path) -> None:
    first = warm(tmp_path, "ridgeranker", "BestFeature", "--jobs", "1")
    assert list(first["compiled"]) == ["reading text", "explanations", "RidgeRanker", "BestFeature"]
    assert first["compiled"]["reading text"] > 0.0
    assert sum(first["compiled"].values()) < first["seconds"]
    assert Path(first["cache"]).parent == tmp_path
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")}
    assert len(kept) > 5
    second = warm(tmp_path, "RidgeRanker", "BestFeature", "--jobs", "1")
    assert set(second["compiled"].values()) == {0.0}
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")} == kept


def test_compiled_kernels_are_not_recompiled() -> None:
    compile_solver("RidgeRanker")
    assert compile_solver("RidgeRanker") == 0.0


def test_the_first_study_on_a_machine_says_once_that_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    data, heard = small_queries(), Heard()
    for name in ("first", "second"):
        ranktune.tune(data, solvers="BestFeature", trials=1, name=name, home=tmp_path, progress=heard)
    assert sum("compiling, once" in text for text in heard.lines) == 1
    assert any("compiling, once" in text for text in heard.lines[: len(heard.lines) // 2])
