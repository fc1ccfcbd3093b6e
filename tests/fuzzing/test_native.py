"""A study survives a fault of the system below Python: run again, it finds what an undisturbed one does.

By hand, with a table of the outcomes: python -m tests.fuzzing.native FOLDER CASES SEED
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest

from ranktune.tuner.selection.results import Result
from tests.fuzzing.asked import stable
from tests.fuzzing.native import KINDS, MOST, NONE, SURVIVED, NativeFaults

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NativeFaults]:
    result = NativeFaults(tmp_path_factory.mktemp("native"))
    yield result
    result.close()


def test_results_are_compared_without_what_every_run_has_anew() -> None:
    anew = {field.name for field in fields(Result) if not field.compare}
    assert "stages" in anew
    assert stable({name: {"search": 0.5} for name in anew}, "HOME") == {}


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "at"), [("enospc", 9), ("half", 21)])
def test_a_study_survives_a_fault(bench: NativeFaults, kind: str, at: int) -> None:
    came, said = bench.outcome(kind, at)
    assert came == SURVIVED, said


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_study_survives_any_fault(bench: NativeFaults, kind: str) -> None:
    for at in np.random.default_rng(0).integers(1, MOST, 50).tolist():
        came, said = bench.outcome(kind, at)
        assert came in (SURVIVED, NONE), (at, said)
