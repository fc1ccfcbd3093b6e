"""Faults below Python: an operation of a process on files fails, is done by half, or kills it, or the disk lies.

`python -m tests.fuzzing.native FOLDER CASES SEED [signals]` injects that many faults, or signals, into all stages
of studies, prints what came of it, and appends each to FOLDER/native.jsonl.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktune.dashboards.records.file import RecordReader
from ranktune.solvers.core.errors import StudyError
from tests.fuzzing.asked import NAME, pieces, stable
from tests.fuzzing.damaged_studies import TRIALS, write_data
from tests.fuzzing.forked import Forked
from tests.fuzzing.ledger import Ledger, table

LYING = ("lies", "lost")
"""Kinds after which something that was synchronised may be gone: a study may refuse to go on."""
KINDS = ("enospc", "eio", "full", "broken", "readonly", "eintr", "short", "half", "torn", "kill", *LYING)
SIGNALS = ("sigint", "sigterm", "sighup", "stop", "twice")
BEGINS = {"reading": "", "look": "study_started", "trials": "search", "selection": "rescoring", "refit": "refitting"}
BEGINS |= {"explanation": "explaining", "report": "study_finished"}
"""Stage of `tune` -> what the event is called with which it begins."""
STAGES = (*BEGINS, "export", "resume", "join")
JOINED = 60
"""Trials of a study that a worker joins."""
SURVIVED, REFUSED, LOST, TRACEBACK, SIGNAL, NONE = "survived", "refused", "lost", "traceback", "signal", "no fault"
FINE = (SURVIVED, REFUSED, NONE)


class Fault(NamedTuple):
    """A fault: its kind, the place among the operations of its stage (0 to 1), and a seed for what is lost of files."""

    stage: str
    kind: str
    place: float
    seed: int


def drawn(cases: int, seed: int, kinds: Sequence[str] = KINDS) -> Iterator[Fault]:
    """Yield faults of all kinds in all stages, in turn, at random places."""
    generator = np.random.default_rng(seed)
    pairs = [(stage, kind) for kind in kinds for stage in STAGES]
    order = [pairs[k] for _ in range(0, cases, len(pairs)) for k in generator.permutation(len(pairs))]
    for stage, kind in order[:cases]:
        yield Fault(stage, kind, generator.random(), int(generator.integers(2**31)))


def compiled(folder: Path) -> Path:
    """Return the library that injects faults. Raises OSError without a C compiler."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True)
    return library


class NativeFaults:
    """Runs a study with one fault, again without, and compares its result with that of an undisturbed one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.log = folder, folder / "home", folder / "faults.log"
        library, self.data = compiled(folder), write_data(folder / "data.csv")
        self._forked, self._owner = Forked({"LD_PRELOAD": str(library)}), Forked({})
        self.operations: dict[str, list[str]] = {}
        self.bases = {stage: folder / f"base-{stage}" for stage in ("export", "resume")}
        calm = self._traced("reading")
        begins = [0, *(_first(calm, event) for event in [*BEGINS.values()][1:]), len(calm)]
        for stage, first, end in zip(BEGINS, begins, begins[1:], strict=False):
            self.operations[stage] = calm[first:end]
        self._first = dict(zip(BEGINS, begins, strict=False))
        shutil.copytree(self.home, self.bases["export"])
        self.expected = {stage: self._result() for stage in BEGINS} | {"resume": self._result()}
        for stage in ("export", "join", "resume"):
            if stage == "resume":
                shutil.rmtree(self.home)
                self._run("reading", self._faults("kill", self._first["trials"] + len(self.operations["trials"]) // 2))
                shutil.copytree(self.home, self.bases[stage])
            self.operations[stage] = self._traced(stage)
            self.expected[stage], self._first[stage] = self._result(), 0

    def close(self) -> None:
        """End the processes that run the studies."""
        self._forked.close()
        self._owner.close()

    def outcome(self, fault: Fault) -> tuple[str, str]:
        """Return what came of a fault, and what was said."""
        stage, kind, place, seed = fault
        operations, disk = self.operations[stage], self.folder / "disk"
        names = [k for k, line in enumerate(operations) if kind != "lost" or line.startswith("rename\t")]
        if not names:
            return NONE, ""
        at = self._first[stage] + names[int(place * len(names))] + 1
        self._lay(stage)
        shutil.rmtree(disk, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        generator = np.random.default_rng(seed)
        then = {"FAULT_THEN": str(generator.integers(1, 60)), "FAULT_COPY": str(disk)}
        code, said = self._run(stage, self._faults(kind, at) | then)
        if code == 70 or "Traceback" in said:
            return TRACEBACK, said[-900:]
        if code not in (0, 130) if kind in SIGNALS else code < 0 and code != -9:
            return SIGNAL, f"{code} {said[-900:]}"
        if kind in ("eio", "broken", "readonly") and "Free space" in said:
            return LOST, f"it asks for room: {said[-300:]}"
        if disk.exists():
            self._cut_power(kind, disk, generator)
        try:
            before = set() if kind in LYING else self._finished()
        except StudyError as error:
            return LOST, str(error)
        code, resumed = self._run(stage, {})
        if code and kind in LYING and "Traceback" not in resumed and code in (1, 2):
            return REFUSED, resumed[-900:]
        if code or "Traceback" in resumed:
            return LOST, f"{code} {resumed[-900:]}"
        if (result := self._result()) != self.expected[stage]:
            changed = pieces([result]) ^ pieces([self.expected[stage]])
            return LOST, f"another result: {sorted(changed)[:9]}"
        if not before <= self._finished():
            return LOST, "finished trials"
        if stage != "export" and (left := [str(path) for path in self.home.rglob("*.tmp")]):
            return LOST, f"left: {left}"
        return (SURVIVED if self.log.exists() else NONE), said[-200:]

    def _lay(self, stage: str) -> None:
        """Put the home folder there with which a stage begins."""
        shutil.rmtree(self.home, ignore_errors=True)
        if stage in self.bases:
            shutil.copytree(self.bases[stage], self.home)

    def _faults(self, kind: str, at: int) -> dict[str, str]:
        return {"FAULT_FOLDER": str(self.home), "FAULT_AT": str(at), "FAULT_KIND": kind, "FAULT_LOG": str(self.log)}

    def _traced(self, stage: str) -> list[str]:
        """Run a stage undisturbed and return its operations, a line each."""
        trace = self.folder / f"trace-{stage}"
        self._lay(stage)
        code, said = self._run(stage, {"FAULT_FOLDER": str(self.home), "FAULT_TRACE": str(trace)})
        assert code == 0, said
        return trace.read_text(errors="replace").splitlines()

    def _run(self, stage: str, environment: Mapping[str, str]) -> tuple[int, str]:
        """Run the command of a stage and return how it ended and what it said; of a join, the worse of both."""
        said, home, end = self.folder / "said", ["--home", str(self.home)], ["--jobs", "1"]
        said.write_text("")
        if stage == "export":
            model = [str(self.home / NAME / "model.json"), "-f", "onnx", "-o", str(self.home / NAME / "model.onnx")]
            return self._forked.run(["export", *model], said, environment), said.read_text()
        if stage == "resume":
            return self._forked.run(["resume", NAME, *home, *end], said, environment), said.read_text()
        solver = ["--solver", "RankSVM", "--sampler", "random", "--name", NAME]
        tune = ["tune", str(self.data), *solver, *home, *end, "--trials", str(JOINED if stage == "join" else TRIALS)]
        if stage != "join":
            return self._forked.run(tune, said, environment), said.read_text()
        by_owner, events = self.folder / "said by the owner", self.home / NAME / "events.jsonl"
        by_owner.write_text("")
        self._owner.begin(tune, by_owner)
        while not self._owner.has_ended() and not (events.exists() and '"asked"' in events.read_text()):
            time.sleep(0.005)
        code = self._forked.run(["worker", "--name", NAME, *home, *end], said, environment)
        ended = self._owner.code()
        if ended:  # the owner may not fail, whatever happens to its worker
            return 70 if environment else ended, f"the owner: {ended} {by_owner.read_text()}"
        return (code if environment else 0), said.read_text()  # a worker may come too late

    def _cut_power(self, kind: str, disk: Path, generator: np.random.Generator) -> None:
        """Undo what was said to be on the disk: the last rename, or each file with probability a half."""
        if kind == "lost":
            old, new = map(Path, self.log.read_text().splitlines()[-1].split("\t")[1:3])
            kept = disk / new.relative_to(self.home)
            if new.exists() and not old.exists():
                old.parent.mkdir(parents=True, exist_ok=True)
                new.rename(old)
                if kept.exists():
                    (shutil.copytree if kept.is_dir() else shutil.copy2)(kept, new)
            return
        files = {path.relative_to(at) for at in (disk, self.home) for path in at.rglob("*") if path.is_file()}
        for file in sorted(files):
            if generator.random() < 0.5:
                (self.home / file).unlink(missing_ok=True)
                if (disk / file).exists():
                    (self.home / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(disk / file, self.home / file)

    def _result(self) -> object:
        study = self.home / NAME
        exported = study / "model.onnx"
        result = stable(json.loads((study / "result.json").read_text()), str(self.home))
        return [json.dumps(result, indent=1), exported.read_bytes().hex() if exported.exists() else ""]

    def _finished(self) -> set[tuple[int, float]]:
        """Return the number and the value of each trial in the record, none where there is no record."""
        record = self.home / NAME / "record.db"
        if not record.exists():
            return set()
        return {(trial.number, trial.value or 0.0) for trial in RecordReader(record).trials()}


def _first(operations: list[str], event: str) -> int:
    """Return which operation writes an event, or that a stage of that name begins."""
    return next(k for k, line in enumerate(operations) if "\t" in line and f'"{event}"' in line)


def main(folder: Path, cases: int, seed: int, kinds: Sequence[str]) -> None:
    """Print what was lost, and tables of outcomes: a row a stage, and a row a kind of fault."""
    folder.mkdir(parents=True, exist_ok=True)
    bench, ledger, by_kind = NativeFaults(folder), Ledger(folder / "native.jsonl"), Ledger()
    for fault in drawn(cases, seed, kinds):
        came, said = bench.outcome(fault)
        ledger.add(fault.stage, came, f"{fault}", said)
        by_kind.add(fault.kind, came, f"{fault}")
        if came not in FINE:
            print(f"{came}: {fault}: {said}", flush=True)
    print(", ".join(f"{stage} {len(operations)}" for stage, operations in bench.operations.items()), "operations")
    bench.close()
    print(table(ledger.counts, "stage"), table(by_kind.counts, "fault"), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), SIGNALS if "signals" in sys.argv else KINDS)
