"""Damage to one file of a study or of its data, followed by a command: what came of it, compared with the whole study.

`python -m tests.fuzzing.damage FOLDER CASES SEED [COMMAND...]` runs that many random cases of those commands, of all by
default, prints the bad ones and the table of outcomes, and appends each case to FOLDER/damage.jsonl. For an
administrator no file is unreadable, unless `setpriv --bounding-set=-dac_override,-dac_read_search` takes that right.
"""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fuzzing.asked import COMMANDS, Outcome, pieces, run
from tests.fuzzing.damaged_studies import KINDS, SOURCES, Samples
from tests.fuzzing.harms import HARMS, SWAPPED, do, is_possible
from tests.fuzzing.ledger import Ledger, table

WORD = ("warning:", "damaged", "again", "anew", "unreadable", "cannot read", "cannot be read", "is missing", "are gone")
"""What a command says where it repaired something or left it out."""
SCORING = ("evaluate", "predict")
"""Commands that need the model, which only a finished study has."""
GOOD = (Outcome.CORRECT, Outcome.REFUSED, Outcome.WARNED)


@dataclass(frozen=True)
class Case:
    """One damage to one file of one study, and the command that follows."""

    kind: str
    file: Path
    harm: str
    command: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} study, {self.file}: {self.harm} (seed {self.seed}), then {self.command}"


@dataclass
class Bench:
    """Runs cases on copies of the samples, and compares with what the undamaged studies answer."""

    samples: Samples
    work: Path

    def __post_init__(self) -> None:
        self.expected: dict[tuple[str, str, str], object] = {}
        for kind in KINDS:
            for command in COMMANDS:
                self.expected[kind, command, "data.csv"] = self._answer(kind, command, "data.csv")
        for name in SOURCES:
            for command in SCORING:
                self.expected["finished", command, name] = self._answer("finished", command, name)
        self.others = {command: self._answer("other finished", command, "data.csv") for command in SCORING}

    def _answer(self, kind: str, command: str, data: str) -> object:
        home = self.samples.copy(kind, self.work / "home")
        return run(command, home, self.samples.folder / data).answer

    def cases(self, seeds: Sequence[int] = (0,)) -> Iterator[Case]:
        """Yield every harm to every file followed by every command, once a seed."""
        possible = list(filter(is_possible, HARMS))
        for seed in seeds:
            for kind in KINDS:
                commands = [command for command in COMMANDS if self.expected[kind, command, "data.csv"] is not None]
                unscored = [key for key in COMMANDS if key not in SCORING]  # other documents have other scores
                for harm in possible:
                    for file in self.samples.files(kind):
                        yield from (Case(kind, file, harm, command, seed) for command in commands)
                    yield from (Case(kind, Path("data.csv"), harm, command, seed) for command in unscored)
            for name in SOURCES:
                for harm in possible:
                    yield from (Case("finished", Path(name), harm, command, seed) for command in SCORING)

    def outcome(self, case: Case) -> tuple[Outcome, str] | None:
        """Return what came of a case and what was said; None where the damage changed nothing."""
        home = self.samples.copy(case.kind, self.work / "home")
        is_source = str(case.file) in ("data.csv", *SOURCES)
        path = (self.samples.folder if is_source else home) / case.file
        whole = path.read_bytes()
        try:
            if not do(case.harm, path, case.seed, self.samples.other(case.kind, case.file)):
                return None
            name = str(case.file) if str(case.file) in SOURCES else "data.csv"
            result = run(case.command, home, self.samples.folder / name)
            outcome = result.outcome
            if outcome == Outcome.CORRECT and not self._is_right(case, result.answer, name):
                new = pieces(result.answer) - pieces(self.expected[case.kind, case.command, name])
                said = result.said + " ".join(sorted(new))
                outcome = Outcome.WARNED if any(word in said for word in WORD) else Outcome.CHANGED
            if outcome in (Outcome.REFUSED, Outcome.WARNED) and case.command == "resume":
                _restore(path, whole)
                if outcome == Outcome.REFUSED and not self._is_resumed(case, home):
                    return Outcome.LOST, result.said
            return outcome, result.said
        finally:
            if is_source:
                _restore(path, whole)

    def _is_right(self, case: Case, answer: object, data: str) -> bool:
        """Return whether an answer is that of the undamaged study, or of another model that was put in its place."""
        if case.harm == SWAPPED and case.file.name == "model.json" and answer == self.others.get(case.command):
            return True
        return answer == self.expected[case.kind, case.command, data]

    def _is_resumed(self, case: Case, home: Path) -> bool:
        """Return whether the study gives its result once the file is whole again."""
        resumed = run("resume", home, self.samples.folder / "data.csv")
        return resumed.answer == self.expected[case.kind, "resume", "data.csv"]


def _restore(path: Path, whole: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    if path.exists():
        path.chmod(0o600)
    path.write_bytes(whole)


def main(folder: Path, most: int, seed: int, commands: Collection[str]) -> None:
    """Run random cases; print the bad ones and the table."""
    samples = Samples(folder / "samples") if (folder / "samples").exists() else Samples.make(folder / "samples")
    bench = Bench(samples, folder)
    cases = [case for case in bench.cases(seeds=[seed]) if case.command in commands]
    ledger = Ledger(folder / "damage.jsonl")
    for number in np.random.default_rng(seed).permutation(len(cases))[:most].tolist():
        case = cases[number]
        result = bench.outcome(case)
        if result is None:
            continue
        ledger.add(case.command, result[0], str(case), result[1])
        if result[0] not in GOOD:
            print(f"{result[0]}: {case}\n    {result[1].strip()[-400:]}", flush=True)
    print(table(ledger.counts, f"{len(cases)} cases, command"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] or list(COMMANDS))
