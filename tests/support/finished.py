"""Small studies as they are when they have ended, of each shape: made once by all processes of a session of tests.

Their data are in the folder `Finished.data`: train.txt, vali.txt and test.txt; day0.txt to day2.txt, of which the later
two have another truth; the folder folds; judged.csv, and log.csv, a click log.
"""

import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

import ranktune
from ranktune.daily.retuning import Retuned, retune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import AllFailed
from ranktune.solvers.core.files.atomic import locked
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.workers.executor import InProcess
from tests.support.click_simulation import Users, simulated
from tests.support.commands import letor, write_letor

TRIALS, DONE = 6, 3
"""Trials of each study, and how many of them were done when one was interrupted."""
LINEAR = ("RankSVM", "RidgeRanker")
"""The solvers, but of "blend", which has a column and trees too."""
REASON = "OSError: the licence server is gone"
"""Why all trials failed of the study that failed."""


class Heard(Silent):
    """Keeps the lines, and interrupts a study as Ctrl-C does, after so many trials."""

    def __init__(self, until: int = 10**9) -> None:
        self.lines: list[str] = []
        self._until = until

    def stage(self, text: str) -> None:
        self.lines.append(text)

    def trial(self, report: TrialReport) -> None:
        if report.done >= self._until:
            raise KeyboardInterrupt


class Finished:
    """The finished studies below a folder that all processes of a session see; each is made when it is first wanted.

    The name of a study is its shape, a key of SHAPES. "retuned" has a version "moved", whose model is current.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.data = root / "data"

    def shared(self, shape: str) -> Path:
        """Return the home of the study of that shape, which nothing may change."""
        home, made = self._root / shape, self._root / f"{shape}.pickle"
        if not made.exists():
            self._root.mkdir(exist_ok=True)
            with locked(self._root, 600.0):
                if not self.data.exists():
                    _write_data(self.data)
                if not made.exists():
                    shutil.rmtree(home, ignore_errors=True)
                    result = pickle.dumps(SHAPES[shape](self.data, name=shape, home=home))
                    made.with_suffix(".part").write_bytes(result)
                    made.with_suffix(".part").rename(made)
        return home

    def copied(self, folder: Path, *shapes: str) -> Path:
        """Return the folder home in a folder, with copies of the studies of those shapes for the test to change."""
        home = folder / "home"
        for shape in shapes:
            shutil.copytree(self.shared(shape), home, dirs_exist_ok=True)
            for result in home.glob("*/result.json"):  # which names its folder
                write_sealed(result, result.read_text().replace(f"{self.shared(shape)}/", f"{home}/"))
        return home

    def result(self, shape: str) -> StudyResult:
        """Return what made the study of that shape returned; its folder is the one that nothing may change."""
        result: StudyResult = pickle.loads(self.shared(shape).with_suffix(".pickle").read_bytes())
        return result

    def retuned(self) -> Retuned:
        """Return what made the version "moved" returned."""
        result: Retuned = pickle.loads(self.shared("retuned").with_suffix(".pickle").read_bytes())
        return result


def _tuned(data: Path, **options: Any) -> StudyResult:
    given: dict[str, Any] = {
        "solvers": LINEAR,
        "also": "map",
        "trials": TRIALS,
        "sampler": "random",
        "executor": InProcess(),
    }
    return ranktune.tune(data, **given | options)


def _split(data: Path, **options: Any) -> StudyResult:
    return _tuned(data / "train.txt", vali=data / "vali.txt", test=data / "test.txt", **options)


def _folds(data: Path, **options: Any) -> StudyResult:
    return _tuned(data / "folds", **options)


def _retuned(data: Path, name: str, home: Path) -> Retuned:
    _tuned(data / "day0.txt", trials=10, name=name, home=home)
    return retune(name, data / "day1.txt", version="moved", executor=InProcess(), home=home)


def _clicks(data: Path, **options: Any) -> StudyResult:
    columns = {"document": "sku"}
    return _tuned(data / "judged.csv", clicks=data / "log.csv", click_columns=columns, **options | {"also": "ips@3"})


def _interrupted(data: Path, **options: Any) -> None:
    with suppress(KeyboardInterrupt):
        _split(data, progress=Heard(until=DONE), **options)


def _failed(data: Path, **options: Any) -> None:
    failing = partial(StudyRun, objective=lambda task: TaskOutcome(error=REASON))
    with patch("ranktune.session.StudyRun", failing), suppress(AllFailed):
        _split(data, **options)


SHAPES: dict[str, Callable[..., StudyResult | Retuned | None]] = {
    "split": _split,
    "blend": partial(_split, solvers=(*LINEAR, "BestFeature", "GBDTRanker", "LambdaMART"), trials=10),
    "folds": _folds,
    "retuned": _retuned,
    "clicks": _clicks,
    "interrupted": _interrupted,
    "failed": _failed,
}


def _write_data(folder: Path) -> None:
    for fold in (folder, *(folder / "folds" / f"Fold{k}" for k in (1, 2))):
        fold.mkdir(parents=True)
        for seed, (name, queries) in enumerate((("train", 40), ("vali", 15), ("test", 20)), start=1):
            letor(fold / f"{name}.txt", queries, seed + 10 * len(fold.name))
    for k, truth in enumerate(((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, 1.0, 1.0, 0.0))):
        generator = np.random.default_rng(k)
        X = generator.normal(size=(600, 4))
        grades = np.digitize(X @ truth + 0.5 * generator.normal(size=len(X)), [0.5, 1.5])
        write_letor(folder / f"day{k}.txt", X, grades, np.repeat(np.arange(60), 10))
    judged, log, _ = clicked(3000)
    for name, table in (("judged", judged), ("log", log)):
        table.write_csv(folder / f"{name}.csv")


def clicked(searches: int) -> tuple[pl.DataFrame, pl.DataFrame, Queries]:
    """Return 60 queries of 8 documents that people judge by f0, a log of searches, and what users click by, f1."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(480, 2))
    ids = {"qid": [f"q{row // 8}" for row in range(480)], "docid": [f"d{row}" for row in range(480)]}
    grades = np.clip(np.round(1.0 + X[:, 0] + generator.normal(size=480)), 0, 3)
    judged = pl.DataFrame(ids | {"grade": grades, "f0": X[:, 0], "f1": X[:, 1]})
    liked = Queries.from_arrays(X, np.clip(np.round(1.0 + X[:, 1]), 0, 3), qid=ids["qid"])
    batch = simulated(liked, Users(), searches, generator, scores=generator.normal(size=480))
    names = {"query": [batch.queries[k] for k in batch.query], "sku": [f"d{k}" for k in batch.document]}
    shown = {"rank": batch.position, "click": batch.click.astype(int), "session": batch.session % (searches // 4)}
    return judged, pl.DataFrame({**names, **shown}), liked
