"""The files of the project on two walks, traced: from a file to scores, and from a suggestion to the record.

Printed in the order in which they are reached: python -m tests.support.walks
"""

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import optuna

import ranktune
from ranktune.tuner.workers.executor import InProcess
from tests.support.paths import FOLDERS

PACKAGE = Path(str(ranktune.__file__)).parent
TRIALS = 12
"""Trials of the study whose last one is traced: the sampler has left its startup."""


class Walk:
    """The files whose functions are called while `recording`, in the order of their first call."""

    def __init__(self) -> None:
        self.recording = False
        self._codes: dict[str, None] = {}

    @property
    def files(self) -> list[str]:
        """The project's files by their path below its root, whether it is installed or run from there."""
        inside = [Path(name).relative_to(PACKAGE) for name in self._codes if Path(name).is_relative_to(PACKAGE)]
        return [(path if path.parts[0] in FOLDERS else "tuner/ranktune" / path).as_posix() for path in inside]

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Note the file of a call; what importing a module calls is no part of a walk."""
        if self.recording and event == "call" and frame.f_code.co_name != "<module>":
            self._codes.setdefault(frame.f_code.co_filename)

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Trace this thread and those that start meanwhile."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def from_a_file_to_scores() -> list[str]:
    """Return the files on the way of `ranktune.predict`, from a model file and a text file."""
    with tempfile.TemporaryDirectory() as folder:
        queries = _example()
        model, data = Path(folder, "model.json"), Path(folder, "test.txt")
        ranktune.RankSVM().fit(queries).as_model().save(model)
        rows = zip(queries.grades, queries.query_of_document, queries.features.tolist(), strict=True)
        lines = [
            f"{grade:g} qid:{qid} " + " ".join(f"{k}:{x}" for k, x in enumerate(row, 1)) for grade, qid, row in rows
        ]
        data.write_text("\n".join(lines) + "\n")
        ranktune.predict(model, data)  # imports what it needs
        walk = Walk()
        with walk.traced():
            walk.recording = True
            ranktune.predict(model, data)
    return walk.files


def from_a_suggestion_to_the_record() -> list[str]:
    """Return the files on the way of one trial, from `Study.ask` to the end of `Study.tell`, all in one process."""
    walk, asked = Walk(), 0

    def ask(study: optuna.Study, *arguments: Any, **options: Any) -> optuna.Trial:
        nonlocal asked
        asked += 1
        walk.recording = asked == TRIALS
        return original_ask(study, *arguments, **options)

    def tell(study: optuna.Study, *arguments: Any, **options: Any) -> Any:
        trial = original_tell(study, *arguments, **options)
        walk.recording = False
        return trial

    original_ask, original_tell = optuna.Study.ask, optuna.Study.tell
    with (
        tempfile.TemporaryDirectory() as home,
        _replaced(optuna.Study, "ask", ask),
        _replaced(optuna.Study, "tell", tell),
    ):
        with walk.traced():
            ranktune.tune(
                _example(),
                solvers=["RidgeRanker"],
                trials=TRIALS,
                test="none",
                executor=InProcess(),
                home=home,
                name="walk",
            )
    assert asked == TRIALS
    return walk.files


@contextmanager
def _replaced(owner: type, name: str, value: Callable[..., Any]) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _example() -> ranktune.Queries:
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(200, 5)), 3)
    return ranktune.Queries.from_arrays(X, (X[:, 0] + generator.normal(size=200) > 0.5).astype(int), group=[10] * 20)


def print_walks() -> None:
    """Print both walks."""
    for title, walk in (
        ("From a file to scores", from_a_file_to_scores),
        ("One trial", from_a_suggestion_to_the_record),
    ):
        files = walk()
        print(f"{title}: {len(files)} files")
        print(*(f"  {number:2} {file}" for number, file in enumerate(files, start=1)), sep="\n")


if __name__ == "__main__":
    print_walks()
