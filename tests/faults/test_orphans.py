"""No process of a command outlives it for long, also where it is killed at any moment."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.commands import letor
from tests.support.process_samples import alive, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def processes_of(token: str) -> list[int]:
    """Return the processes whose environment has the token: all descendants of a command, also orphans."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if token.encode() in environment:
                result.append(int(entry.name))
    return result


def check_processes_end(seconds: float, folder: Path) -> None:
    """Kill a study of two workers so long after its first line; check that its processes end."""
    token = f"{folder.name}-{seconds:.6f}"
    with subprocess.Popen(
        [sys.executable, "-m", "ranktune", "tune", "train.txt", "--trials", "5000", "--jobs", "2", "--name", "n"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"RANKTUNE_HOME": str(folder / f"{seconds:.6f}"), "TOKEN": token},
    ) as process:  # fmt: skip
        assert process.stderr is not None and process.stderr.readline()
        time.sleep(seconds)
        process.kill()
    assert soon(lambda: not processes_of(token)), f"{processes_of(token)} are left, killed after {seconds} s"


def test_processes_of_a_killed_coordinator_end(tmp_path: Path) -> None:
    letor(tmp_path / "train.txt", 100, 1, documents=20)
    generator = random.Random(0)
    for _ in range(4):
        check_processes_end(generator.uniform(0.0, 5.0), tmp_path)
