"""Damage to one file of a study, followed by a command: what came of it, compared with the undamaged study.

`python -m tests.fuzzing.damage FOLDER [CASES] [SEED]` runs that many random cases and prints the table of outcomes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from typer.testing import CliRunner

from ranktune.command_line.app import app
from ranktune.dashboards.views.registry import VIEWS
from ranktune.dashboards.web.server import make_app
from ranktune.solvers.core.errors import RankTuneError

NAME = "s"
TRIALS = 3
TIMES = re.compile(r"seconds|created|begun|ended|time|path|file|folder|report|size|modified|^changed$")
"""Keys of JSON results that say how long something took, or where it is."""
WORD = re.compile(r"warning:|damaged|again|anew|unreadable|cannot be read")
"""What a command says where it repaired something or left it out."""


class Outcome(StrEnum):
    """What came of a command on a damaged study."""

    CORRECT = "correct answer"
    REFUSED = "refused in a sentence"
    UNEXPECTED = "unexpected error, one message"
    WARNED = "other answer, and why"
    CHANGED = "other answer, no word"
    TRACEBACK = "traceback"
    SIGNAL = "signal or no end"


GOOD = (Outcome.CORRECT, Outcome.REFUSED, Outcome.WARNED)


def _block(content: bytes, generator: np.random.Generator, fill: Callable[[int], bytes]) -> bytes:
    """Return content with one of its blocks of at most 512 bytes replaced."""
    first = int(generator.integers(max(len(content), 1))) // 512 * 512
    size = len(content[first : first + 512])
    return content[:first] + fill(size) + content[first + size :]


def _flipped(content: bytes, generator: np.random.Generator) -> bytes:
    if not content:
        return b"\x01"
    changed = bytearray(content)
    changed[int(generator.integers(len(content)))] ^= 1 << int(generator.integers(8))
    return bytes(changed)


DAMAGES: Mapping[str, Callable[[bytes, np.random.Generator], bytes | None]] = {
    "cut off": lambda content, generator: content[: int(generator.integers(max(len(content), 1)))],
    "empty": lambda content, generator: b"",
    "zeros": lambda content, generator: bytes(len(content)),
    "block of zeros": lambda content, generator: _block(content, generator, bytes),
    "block of garbage": lambda content, generator: _block(content, generator, generator.bytes),
    "one bit": _flipped,
    "garbage": lambda content, generator: generator.bytes(max(len(content), 1)),
    "gone": lambda content, generator: None,
}
"""What is done to the content of a file; None removes it."""

COMMANDS: Mapping[str, Sequence[str]] = {
    "show": ("show", NAME, "--home", "HOME", "--json"),
    "list": ("list", "--home", "HOME", "--json"),
    "evaluate": ("evaluate", "HOME/s/model.json", "DATA", "--json"),
    "predict": ("predict", "HOME/s/model.json", "DATA"),
    "report": ("report", NAME, "--home", "HOME"),
    "resume": ("resume", NAME, "--home", "HOME", "--json"),
    "dashboard": (),
}
"""Command -> its arguments; the dashboard is asked for its pages without a network."""


def write_data(path: Path) -> Path:
    """Write a small table of judged documents."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(160, 3)).round(3)
    grades = np.digitize(X @ [1.0, 0.5, -0.3] + 0.5 * generator.normal(size=len(X)), [0.3, 1.2])
    rows = enumerate(zip(grades, X.tolist(), strict=True))
    lines = [f"{row // 8},{grade},{','.join(map(str, x))}" for row, (grade, x) in rows]
    path.write_text("qid,grade,a,b,c\n" + "\n".join(lines) + "\n")
    return path


@dataclass
class Samples:
    """A finished and an interrupted study, which are copied for each case."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Samples:
        """Run the studies, the second one until it is killed."""
        folder.mkdir(parents=True, exist_ok=True)
        data = write_data(folder / "data.csv")
        tune = [
            sys.executable, "-m", "ranktune", "tune", str(data), "--name", NAME, "--trials", str(TRIALS),
            "--solver", "RankSVM", "--sampler", "random", "--jobs", "1", "--home",
        ]  # fmt: skip
        subprocess.run([*tune, str(folder / "finished")], check=True, capture_output=True)
        process = subprocess.Popen(
            [*tune, str(folder / "interrupted")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        events = folder / "interrupted" / NAME / "events.jsonl"
        while process.poll() is None and not (events.exists() and '"trial"' in events.read_text()):
            time.sleep(0.01)
        os.killpg(process.pid, 9)
        process.wait()
        return cls(folder)

    def copy(self, kind: str, to: Path) -> Path:
        """Return the home folder of a copy of the finished or the interrupted study."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.folder / kind, to)
        return to

    def files(self, kind: str) -> list[Path]:
        """Return the files of a study, relative to the home folder."""
        home = self.folder / kind
        return sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Case:
    """One damage to one file of one study, and the command that follows."""

    kind: str
    file: Path
    damage: str
    command: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} study, {self.file}: {self.damage} (seed {self.seed}), then {self.command}"


def harm(home: Path, case: Case) -> bool:
    """Damage the file of a case; return whether that changed anything."""
    path = home / case.file
    before = path.read_bytes()
    after = DAMAGES[case.damage](before, np.random.default_rng(case.seed))
    if after is None:
        path.unlink()
    else:
        path.write_bytes(after)
    return after != before


def run(command: str, home: Path, data: Path) -> tuple[Outcome, str, object]:
    """Run a command in this process; return what came of it, what it said, and its answer if it gave one."""
    if command == "dashboard":
        return _pages(home)
    arguments = [part.replace("HOME", str(home)).replace("DATA", str(data)) for part in COMMANDS[command]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, arguments)
    said = done.stderr
    if "Traceback (most recent call last)" in done.output:
        return Outcome.TRACEBACK, done.output, None
    if isinstance(done.exception, RankTuneError):
        return Outcome.REFUSED, str(done.exception), None
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return Outcome.TRACEBACK, "".join(traceback.format_exception(done.exception)), None
    if done.exit_code == 70:
        return Outcome.UNEXPECTED, said, None
    if done.exit_code != 0:
        return Outcome.REFUSED, said, None
    return Outcome.CORRECT, said, _answer(command, done.stdout, home)


def _pages(home: Path) -> tuple[Outcome, str, object]:
    """Ask the dashboard for the list of studies and for the pages of the study."""
    paths = ["/api/studies", f"/study/{NAME}", f"/api/study/{NAME}"]
    paths += [f"/api/view/{NAME}/{view.key}" for view in VIEWS]
    try:
        answers = asyncio.run(_asked(home, paths))
    except Exception as error:
        return Outcome.TRACEBACK, "".join(traceback.format_exception(error)), None
    if any(answer.status_code >= 500 and "Internal Server Error" in answer.text for answer in answers):
        return Outcome.TRACEBACK, " ".join(answer.text[:300] for answer in answers), None
    refused = any(answer.status_code >= 400 for answer in answers)
    return Outcome.REFUSED if refused else Outcome.CORRECT, "", None


async def _asked(home: Path, paths: Sequence[str]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(make_app(home), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return [await client.get(path) for path in paths]


def _answer(command: str, output: str, home: Path) -> object:
    """Return what a command answered, without what differs between two runs of the same study."""
    if command == "predict":
        return output
    if command == "report":
        return None
    return stable(json.loads(output), str(home))


def stable(value: Any, home: str) -> Any:
    """Return a JSON value without what differs between two runs of one study."""
    if isinstance(value, dict):
        return {name: stable(own, home) for name, own in value.items() if not TIMES.search(name)}
    if isinstance(value, list):
        return [stable(own, home) for own in value]
    return value.replace(home, "HOME") if isinstance(value, str) else value


@dataclass
class Bench:
    """Runs cases on copies of the samples, and compares with what the undamaged studies answer."""

    samples: Samples
    work: Path

    def __post_init__(self) -> None:
        self.data = self.samples.folder / "data.csv"
        self.expected: dict[tuple[str, str], object] = {}
        for kind in ("finished", "interrupted"):
            for command in COMMANDS:
                home = self.samples.copy(kind, self.work / "home")
                self.expected[kind, command] = run(command, home, self.data)[2]

    def cases(self, seeds: Sequence[int] = (0,)) -> Iterator[Case]:
        """Yield every damage to every file followed by every command, once a seed."""
        for kind in ("finished", "interrupted"):
            for file in self.samples.files(kind):
                for damage in DAMAGES:
                    for command in COMMANDS:
                        for seed in seeds:
                            yield Case(kind, file, damage, command, seed)

    def outcome(self, case: Case) -> tuple[Outcome, str] | None:
        """Return what came of a case and what was said; None where the damage changed nothing."""
        home = self.samples.copy(case.kind, self.work / "home")
        if not harm(home, case):
            return None
        found, said, answer = run(case.command, home, self.data)
        if found == Outcome.CORRECT and not self._is_right(case, answer):
            found = Outcome.WARNED if WORD.search(said) else Outcome.CHANGED
        return found, said

    def _is_right(self, case: Case, answer: object) -> bool:
        """Return whether an answer is that of the undamaged study."""
        return answer == self.expected[case.kind, case.command]


def counts(found: Counter[tuple[str, Outcome]]) -> str:
    """Return the outcomes as a table: a row a command, a column an outcome."""
    kinds = [kind for kind in Outcome if any(key[1] == kind for key in found)]
    lines = ["  ".join(["command".ljust(10), *(str(kind) for kind in kinds)])]
    for command in COMMANDS:
        cells = [str(found[command, kind]).rjust(len(kind)) for kind in kinds]
        lines.append("  ".join([command.ljust(10), *cells]))
    return "\n".join(lines)


def main(folder: Path, most: int, seed: int) -> None:
    """Run random cases; print the bad ones and the table."""
    samples = Samples(folder / "samples") if (folder / "samples").exists() else Samples.make(folder / "samples")
    bench = Bench(samples, folder)
    cases = list(bench.cases(seeds=range(seed, seed + 3)))
    found: Counter[tuple[str, Outcome]] = Counter()
    for number in np.random.default_rng(seed).permutation(len(cases))[:most].tolist():
        result = bench.outcome(cases[number])
        if result is None:
            continue
        found[cases[number].command, result[0]] += 1
        if result[0] not in GOOD:
            print(f"{result[0]}: {cases[number]}\n    {result[1].strip()[-400:]}", flush=True)
    print(counts(found))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[2:]]
    main(Path(sys.argv[1]), *given, *(200, 0)[len(given) :])
