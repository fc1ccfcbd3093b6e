"""Faults below Python: an operation of a process on files fails, is done by half, or kills it, or the disk lies.

Several come in a row in one study, which is then run to its end.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktune.dashboards.records.reader import RecordReader
from ranktune.solvers.core.errors import StudyError
from tests.fuzzing.asked import NAME, pieces, stable
from tests.fuzzing.damaged_studies import TRIALS, write_data
from tests.fuzzing.forked import Forked

LYING = ("lies", "lost")
"""Kinds after which something that was synchronised may be gone: a study may refuse to go on."""
KINDS = ("enospc", "eio", "full", "broken", "readonly", "eintr", "short", "half", "torn", "kill", *LYING)
SIGNALS = ("sigint", "sigterm", "sighup", "stop", "twice", "closed")
CLOCKS = ("forward", "back", "swings")
BEGINS = {"reading": "", "look": "study_started", "trials": "search", "selection": "rescoring", "refit": "refitting"}
BEGINS |= {"explanation": "beginning", "report": "study_finished"}
"""Stage of `tune` -> what the event is called with which it begins."""
PAIRS = ("owner", "join")
"""Stages in which a worker joins: faults come to the process that owns the study, or to the worker."""
STAGES = (
    "reading",
    "look",
    "trials",
    "resume",
    "selection",
    "refit",
    "explanation",
    "report",
    "export",
    "lanes",
    *PAIRS,
)
JOINED = 4
"""Trials of a study that a worker joins."""
SLOW = {"FAULT_SLOW": "2000", "FAULT_FROM": '"search"'}
"""Variables of an owner that leaves trials to others: microseconds before each operation on files."""
SURVIVED, REFUSED, LOST, TRACEBACK, SIGNAL, NONE = "survived", "refused", "lost", "traceback", "signal", "no fault"
FINE = (SURVIVED, REFUSED, NONE)


class Fault(NamedTuple):
    """A fault: its kind, the place among the operations of its stage (0 to 1), and a seed for what is lost of files."""

    stage: str
    kind: str
    place: float
    seed: int


class Came(NamedTuple):
    """What came of a fault, and what was said."""

    fault: Fault
    outcome: str
    said: str


def compiled(folder: Path) -> Path:
    """Return the library that injects faults. Raises OSError without a C compiler."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True)
    return library


class NativeFaults:
    """Runs studies with faults and goes on without, and compares the results with those of undisturbed ones."""

    stages: Sequence[str] = STAGES
    alone: Sequence[str] = ("export", "lanes", *PAIRS)
    """Stages whose faults are not followed by others in the same study."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.log = folder, folder / "home", folder / "faults.log"
        library, self.data = compiled(folder), write_data(folder / "data.csv")
        self._forked, self._other = (Forked({"LD_PRELOAD": str(library)}) for _ in range(2))
        self._base = folder / "base-export"
        calm = self._traced("reading")
        begins = [0, *(_first(calm, event) for event in [*BEGINS.values()][1:]), len(calm)]
        self.operations = {stage: end - first for stage, first, end in zip(BEGINS, begins, begins[1:], strict=False)}
        shutil.copytree(self.home, self._base)
        self.expected = dict.fromkeys((*BEGINS, "resume"), self._result())
        self.operations["resume"] = len(calm) // 2
        for stage in ("export", "lanes", *PAIRS):
            self._lay(stage)
            self.operations[stage] = len(self._traced(stage)) // (2 if stage == "lanes" else 1)
            self.expected[stage] = self._result()

    def close(self) -> None:
        """End the processes that run the studies."""
        self._forked.close()
        self._other.close()

    def outcomes(self, faults: Sequence[Fault]) -> list[Came]:
        """Return what came of faults in one study, each in its stage, with whose command the study goes on.

        Those of `export`, `lanes`, `owner` and `join` stand alone. After the last the study is run to its end, and its
        result is compared. A fault after that end, or which the study did not reach, did not come; nor does one count
        that was followed by another after which there is no result to compare.
        """
        self._lay(faults[0].stage)
        result: list[Came] = []
        kept: set[tuple[int, float]] = set()
        for fault in faults:
            came, said, is_over = self._came(fault)
            result.append(Came(fault, came, said))
            if came not in (SURVIVED, NONE):
                return _last(result)
            try:
                kept = (set() if fault.kind in LYING else kept) | self._finished()
            except StudyError as error:
                if fault.kind not in LYING:
                    return _last([*result[:-1], Came(fault, LOST, str(error))])
            if is_over or fault.kind in LYING:
                break
        for last in range(len(result) - 1, -1, -1):  # whose fault it is if the end is a bad one
            if result[last].outcome == SURVIVED or last == 0:
                bad, said = self._ended(result[last].fault, kept)
                if bad:
                    said = f"{said} after {[came[:2] for came in result[:last]]}"
                    return _last([*result[:last], Came(result[last].fault, bad, said)])
                break
        return result

    def _came(self, fault: Fault) -> tuple[str, str, bool]:
        """Run the command of a stage with a fault; return what came of it, what was said, whether the study ended."""
        stage, kind, place, seed = fault
        disk = self.folder / "disk"
        shutil.rmtree(disk, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        generator = np.random.default_rng(seed)
        variables = {"FAULT_KIND": kind, "FAULT_LOG": str(self.log), "FAULT_COPY": str(disk)}
        variables["FAULT_AT"] = str(1 + int(place * self.operations[stage]))
        variables["FAULT_THEN"] = str(generator.integers(1, 60))
        code, said = self._run(stage, self._where(stage) | variables)
        if not self.log.exists():
            return (NONE, said[-200:], code == 0) if code in (0, 2) else (LOST, f"{code} {said[-900:]}", True)
        if code == 70 or "Traceback" in said:
            return TRACEBACK, said[-900:], True
        if code not in (0, 130) if kind in SIGNALS else code < 0 and code != -9:
            return SIGNAL, f"{code} {said[-900:]}", True
        if kind in ("eio", "broken", "readonly") and "Free space" in said:
            return LOST, f"it asks for room: {said[-300:]}", True
        if disk.exists():
            self._cut_power(kind, disk, generator)
        return SURVIVED, said[-200:], code == 0

    def _ended(self, fault: Fault, kept: set[tuple[int, float]]) -> tuple[str, str]:
        """Run a study to its end; return what was lost and how, "" where nothing was."""
        code, said = self._run(fault.stage, {})
        if code and fault.kind in LYING and "Traceback" not in said and code in (1, 2):
            return REFUSED, said[-900:]
        if code or "Traceback" in said:
            return LOST, f"{code} {said[-900:]}"
        if (result := self._result()) != self.expected[fault.stage]:
            changed = pieces([result]) ^ pieces([self.expected[fault.stage]])
            return LOST, f"another result: {sorted(changed)[:9]}"
        if not kept <= self._finished():
            return LOST, "finished trials"
        left = [str(path) for path in self.home.rglob("*.tmp") if fault.stage != "export"]
        return (LOST, f"left: {left}") if left else ("", "")

    def _where(self, stage: str) -> dict[str, str]:
        """Return the variables that say which operations are counted."""
        begins = "search" if stage == "owner" else BEGINS.get(stage)
        result = {"FAULT_FOLDER": str(self.home)} | ({"FAULT_FROM": f'"{begins}"'} if begins else {})
        return result | ({"FAULT_PROCESS": "ranktune.tuner.workers"} if stage == "lanes" else {})

    def _lay(self, stage: str) -> None:
        """Put the home folder there with which a stage begins."""
        shutil.rmtree(self.home, ignore_errors=True)
        if stage == "export":
            shutil.copytree(self._base, self.home)
        elif stage == "resume":
            self._came(Fault("trials", "kill", 0.5, 0))

    def _traced(self, stage: str) -> list[str]:
        """Run a stage undisturbed and return its operations, a line each."""
        trace = self.folder / f"trace-{stage}"
        trace.unlink(missing_ok=True)
        code, said = self._run(stage, self._where(stage) | {"FAULT_TRACE": str(trace)})
        assert code == 0, said
        return trace.read_text(errors="replace").splitlines()

    def _run(self, stage: str, environment: Mapping[str, str]) -> tuple[int, str]:
        """Run the command of a stage and return how it ended and what it said; of two, the one with the fault."""
        said, home = self.folder / "said", ["--home", str(self.home)]
        end = ["--jobs", "2" if stage == "lanes" and environment else "1"]
        said.write_text("")
        if stage == "export":
            model = [str(self.home / NAME / "model.json"), "-f", "onnx", "-o", str(self.home / NAME / "model.onnx")]
            return self._forked.run(["export", *model], said, environment), said.read_text()
        if stage == "resume" and environment:
            return self._forked.run(["resume", NAME, *home, *end], said, environment), said.read_text()
        solver = ["--solver", "RankSVM", "--sampler", "random", "--name", NAME]
        tune = ["tune", str(self.data), *solver, *home, *end, "--trials", str(JOINED if stage in PAIRS else TRIALS)]
        if stage not in PAIRS or not environment:
            return self._forked.run(tune, said, environment), said.read_text()
        by_other = self.folder / "said by the other"
        by_other.write_text("")
        in_owner = environment if stage == "owner" else {}
        in_worker = environment if stage == "join" else {}
        self._other.begin(tune, by_other, {**SLOW, "FAULT_FOLDER": str(self.home), **in_owner})
        begun = time.time()
        while not self._other.has_ended() and not self._asked_since(begun):
            time.sleep(0.005)
        code = self._forked.run(["resume", NAME, "--join", "--wait", "2", *home, *end], said, in_worker)
        by_owner = self._other.code()
        if stage == "owner":
            return by_owner, by_other.read_text()
        if by_owner:  # the owner may not fail, whatever happens to its worker
            return 70, f"the owner: {by_owner} {by_other.read_text()}"
        return code, said.read_text()

    def _asked_since(self, moment: float) -> bool:
        events = self.home / NAME / "events.jsonl"
        with suppress(OSError):
            return events.stat().st_mtime >= moment - 0.01 and '"asked"' in events.read_text()
        return False

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


def _last(came: list[Came]) -> list[Came]:
    """Return what came of faults of which only the last counts."""
    return [*(each._replace(outcome=NONE) for each in came[:-1]), came[-1]]


def _first(operations: list[str], event: str) -> int:
    """Return which operation writes an event, or that a stage of that name begins."""
    return next(k for k, line in enumerate(operations) if "\t" in line and f'"{event}"' in line)
