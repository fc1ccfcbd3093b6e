"""Faults below Python: the n-th write, fsync or rename of a process fails, is done by half, or kills it.

`python -m tests.fuzzing.native FOLDER [CASES] [SEED]` injects that many faults into studies, and prints what came of
it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fuzzing.damage import NAME, TRIALS, stable, write_data

KINDS = ("enospc", "eio", "half", "kill")
MOST = 120
"""Operations of a process among which the fault is put."""
SURVIVED, LOST, TRACEBACK, NONE = "survived", "other result", "traceback", "no fault"


def compiled(folder: Path) -> Path:
    """Return the library that injects faults. Raises OSError without a C compiler."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True)
    return library


@dataclass
class NativeFaults:
    """Runs a study with one fault, again without, and compares its result with that of an undisturbed one."""

    folder: Path

    def __post_init__(self) -> None:
        self.library, self.data = compiled(self.folder), write_data(self.folder / "data.csv")
        assert self._tune(self.folder / "calm").returncode == 0
        self.expected = self._result(self.folder / "calm")

    def outcome(self, kind: str, at: int) -> tuple[str, str]:
        """Return what came of the fault of that kind at the at-th operation of each process, and what was said."""
        home, log = self.folder / "home", self.folder / "faults.log"
        shutil.rmtree(home, ignore_errors=True)
        log.unlink(missing_ok=True)
        faults = {"FAULT_FOLDER": str(home), "FAULT_AT": str(at), "FAULT_KIND": kind, "FAULT_LOG": str(log)}
        first = self._tune(home, faults | {"LD_PRELOAD": str(self.library)})
        if "Traceback" in first.stderr:
            return TRACEBACK, first.stderr[-600:]
        again = self._tune(home)
        if again.returncode or "Traceback" in again.stderr:
            return LOST, again.stderr[-600:]
        if self._result(home) != self.expected:
            return LOST, "another result"
        return (SURVIVED if log.exists() else NONE), first.stderr[-200:]

    def _tune(self, home: Path, faults: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        arguments = [
            "tune", str(self.data), "--home", str(home), "--name", NAME, "--trials", str(TRIALS),
            "--solver", "RankSVM", "--sampler", "random", "--jobs", "1",
        ]  # fmt: skip
        return subprocess.run(
            [sys.executable, "-m", "ranktune", *arguments],
            env=os.environ | (faults or {}), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def _result(self, home: Path) -> object:
        return stable(json.loads((home / NAME / "result.json").read_text()), str(home))


def main(folder: Path, cases: int = 40, seed: int = 0) -> None:
    """Print what was lost, and the table of outcomes: a row a kind of fault."""
    folder.mkdir(parents=True, exist_ok=True)
    bench, generator = NativeFaults(folder), np.random.default_rng(seed)
    found: Counter[tuple[str, str]] = Counter()
    for number in range(cases):
        kind, at = KINDS[number % len(KINDS)], int(generator.integers(1, MOST))
        came, said = bench.outcome(kind, at)
        found[kind, came] += 1
        if came not in (SURVIVED, NONE):
            print(f"{came}: {kind} at {at}: {said}", flush=True)
    print("\n".join(f"{kind:8} {came:14} {count}" for (kind, came), count in sorted(found.items())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
