"""Machine code for tests: one folder for all processes, compiled before their first test."""

import hashlib
import os
import subprocess
import sys

from ranktune.solvers.core.files.atomic import locked
from ranktune.solvers.core.machine_code.folders import _place
from tests.support.paths import ROOT

KERNELS = _place()


def compile_kernels(processes: int) -> None:
    """Compile what studies use, unless that was done for these sources."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "solvers").rglob("*.py")):
        digest.update(path.read_bytes())
    done = KERNELS / f".compiled-{digest.hexdigest()[:16]}"
    KERNELS.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(KERNELS, 600.0):
        if not done.exists():
            command = [sys.executable, "-m", "ranktune", "solvers", "--warm", "--jobs", str(processes)]
            subprocess.run(command, env=os.environ | {"NUMBA_CACHE_DIR": str(KERNELS)}, check=True, capture_output=True)
            done.touch()
