"""A study survives a fault of the system below Python: run again, it finds what an undisturbed one does.

By hand, with a table of the outcomes: python -m tests.fuzzing.native FOLDER CASES SEED
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

import pytest

from ranktune.tuner.selection.results import Result
from tests.fuzzing.asked import stable
from tests.fuzzing.ledger import table
from tests.fuzzing.native import FINE, KINDS, SIGNALS, STAGES, SURVIVED, NativeFaults, drawn

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


def test_faults_are_drawn_in_all_stages_and_of_all_kinds() -> None:
    counts = Counter((fault.stage, fault.kind) for fault in drawn(2 * len(STAGES) * len(KINDS), 0))
    assert counts == {(stage, kind): 2 for stage in STAGES for kind in KINDS}


MANY = [(kinds, cases, seed) for kinds, cases in ((KINDS, 100), (SIGNALS, 50)) for seed in range(1, 11)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kinds", "cases", "seed"),
    [(KINDS, 30, 0), (SIGNALS, 10, 0), *(pytest.param(*case, marks=pytest.mark.slow) for case in MANY)],
    ids=lambda value: f"{value[0]}..." if isinstance(value, tuple) else str(value),
)
def test_studies_survive_faults_and_signals_in_all_stages(
    bench: NativeFaults, kinds: Sequence[str], cases: int, seed: int
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    bad = []
    for fault in drawn(cases, seed, kinds):
        came, said = bench.outcome(fault)
        counts[fault.stage, came] += 1
        if came not in FINE:
            bad.append((came, fault, said))
    print(table(counts, "stage"))
    assert bad == []
    assert 2 * sum(count for (_, came), count in counts.items() if came == SURVIVED) > cases
