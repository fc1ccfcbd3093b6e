"""Faults below Python: the n-th write, fsync or rename of a process fails, is done by half, or kills it.

`python -m tests.fuzzing.native FOLDER [CASES] [SEED]` injects that many faults into studies, prints what came of
it, and appends each to FOLDER/native.jsonl.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.dashboards.records.file import RecordReader
from tests.fuzzing.asked import NAME, stable
from tests.fuzzing.damaged_studies import TRIALS, write_data
from tests.fuzzing.forked import Forked
from tests.fuzzing.ledger import Ledger, table

KINDS = ("enospc", "eio", "half", "kill")
MOST = 120
"""Operations of a process among which the fault is put."""
SURVIVED, LOST, TRACEBACK, SIGNAL, NONE = "survived", "lost", "traceback", "signal", "no fault"


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
        library, self.data = compiled(self.folder), write_data(self.folder / "data.csv")
        self._forked = Forked({"LD_PRELOAD": str(library)})
        calm = self.folder / "calm"
        assert self._tune(calm)[0] == 0
        self.expected = self._result(calm)

    def close(self) -> None:
        """End the process that runs the studies."""
        self._forked.close()

    def outcome(self, kind: str, at: int) -> tuple[str, str]:
        """Return what came of the fault of that kind at the at-th operation of the process, and what was said."""
        home, log = self.folder / "home", self.folder / "faults.log"
        shutil.rmtree(home, ignore_errors=True)
        log.unlink(missing_ok=True)
        faults = {"FAULT_FOLDER": str(home), "FAULT_AT": str(at), "FAULT_KIND": kind, "FAULT_LOG": str(log)}
        code, said = self._tune(home, faults)
        if "Traceback" in said or code == 70:
            return TRACEBACK, said[-600:]
        if code < 0 and code != -9:
            return SIGNAL, f"{code} {said[-600:]}"
        before = _finished(home / NAME)
        code, resumed = self._tune(home)
        if code or "Traceback" in resumed:
            return LOST, resumed[-600:]
        if self._result(home) != self.expected:
            return LOST, "another result"
        if not before <= _finished(home / NAME):
            return LOST, "finished trials"
        return (SURVIVED if log.exists() else NONE), said[-200:]

    def _tune(self, home: Path, faults: dict[str, str] | None = None) -> tuple[int, str]:
        said = self.folder / "said"
        said.write_text("")
        arguments = [
            "tune", str(self.data), "--home", str(home), "--name", NAME, "--trials", str(TRIALS),
            "--solver", "RankSVM", "--sampler", "random", "--jobs", "1",
        ]  # fmt: skip
        code = self._forked.run(arguments, said, faults)
        return code, said.read_text()

    def _result(self, home: Path) -> object:
        return stable(json.loads((home / NAME / "result.json").read_text()), str(home))


def _finished(study: Path) -> set[tuple[int, float]]:
    """Return the number and the value of each trial in the record of a study, none where there is no record."""
    if not (study / "record.db").exists():
        return set()
    return {(trial.number, trial.value or 0.0) for trial in RecordReader(study / "record.db").trials()}


def main(folder: Path, cases: int = 40, seed: int = 0) -> None:
    """Print what was lost, and the table of outcomes: a row a kind of fault."""
    folder.mkdir(parents=True, exist_ok=True)
    bench, generator = NativeFaults(folder), np.random.default_rng(seed)
    ledger = Ledger(folder / "native.jsonl")
    for number in range(cases):
        kind, at = KINDS[number % len(KINDS)], int(generator.integers(1, MOST))
        came, said = bench.outcome(kind, at)
        ledger.add(kind, came, f"{kind} at {at}", said)
        if came not in (SURVIVED, NONE):
            print(f"{came}: {kind} at {at}: {said}", flush=True)
    bench.close()
    print(table(ledger.counts, "fault"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
