"""Every command answers in a sentence when the system refuses any of its writes, with the path and the remedy."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing.forked import Forked
from tests.fuzzing.native import compiled
from tests.support.every_command import Place, commands
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

REFUSALS = ("enospc", "eio", "erofs", "eacces", "edquot")
SLOW = ("solvers",)
FEW = 8
"""Refusals of a command, at random writes; the slow test has all of each command's first writes and last ones."""
MANY = 400


class Bench:
    """Runs commands on copies of a place, with a fault at one of their writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.base = folder, folder / "base"
        self.place = Place(folder / "place", ("", "x", "y"))
        self.place.make()
        self.place.folder.rename(self.base)
        self._forked = Forked({"LD_PRELOAD": str(compiled(folder)), "PYTHONPATH": str(ROOT)})

    def close(self) -> None:
        self._forked.close()

    def words(self, command: str) -> list[list[str]]:
        return [[str(word) for word in words] for words in self.place.used(command)]

    def run(self, words: list[str], **fault: str) -> tuple[int, str]:
        shutil.rmtree(self.place.folder, ignore_errors=True)
        shutil.copytree(self.base, self.place.folder)
        (self.folder / "log").unlink(missing_ok=True)
        said = self.folder / "said"
        variables = {"FAULT_FOLDER": str(self.place.folder), "FAULT_LOG": str(self.folder / "log")}
        if "--warm" in words:
            variables |= {"RANKTUNE_CACHE": str(self.place.folder / "cache"), "NUMBA_CACHE_DIR": ""}
        return self._forked.run(words, said, variables | fault), said.read_text(errors="replace")

    def writes(self, words: list[str]) -> int:
        """Return how many operations a command has that may be refused."""
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        code, said = self.run(words, FAULT_TRACE=str(trace))
        assert code in (0, 1, 2, 10, 11), said
        return len(trace.read_text(errors="replace").splitlines()) if trace.exists() else 0


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")
    (folder / "place").mkdir()
    made = Bench(folder)
    yield made
    made.close()


@pytest.mark.parametrize("most", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in commands()],
)
def test_a_refused_write_is_a_sentence(command: str, most: int, bench: Bench) -> None:
    generator = np.random.default_rng(0)
    for words in bench.words(command):
        places = [(at, kind) for at in range(1, bench.writes(words) + 1) for kind in REFUSALS]
        chosen = generator.permutation(len(places))[:most]
        for at, kind in (places[k] for k in chosen):
            code, said = bench.run(words, FAULT_AT=str(at), FAULT_KIND=kind)
            assert code in (0, 1, 2, 10, 11) and "Traceback" not in said, (words, at, kind, code, said)
            assert code != 2 or str(bench.place.folder) in said.rpartition("error: ")[2], (words, at, kind, said)


def test_what_writes_is_among_them(bench: Bench) -> None:
    """Commands that write nothing here are those that print, or that only write where data are large."""
    silent = {name for name in commands() if name not in SLOW}
    silent -= {name for name in silent if any(bench.writes(words) for words in bench.words(name))}
    assert silent == {"evaluate", "explain", "reproduce", "docs"}
