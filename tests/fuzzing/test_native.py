"""A study survives a fault of the system below Python: run again, it finds what an undisturbed one does.

By hand, with a table of the outcomes: python -m tests.fuzzing.campaign FOLDER CASES SEED [faults|signals|clocks]
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import pytest

from ranktune.tuner.selection.results import Result
from tests.fuzzing.asked import stable
from tests.fuzzing.campaign import SETS, drawn, injected
from tests.fuzzing.ledger import table
from tests.fuzzing.native import FINE, SURVIVED, NativeFaults
from tests.fuzzing.other_commands import CommandFaults

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.fixture(scope="module", params=[NativeFaults, CommandFaults])
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NativeFaults]:
    result = request.param(tmp_path_factory.mktemp("native"))
    yield result
    result.close()


def test_results_are_compared_without_what_every_run_has_anew() -> None:
    anew = {field.name for field in fields(Result) if not field.compare}
    assert "stages" in anew
    assert stable({name: {"search": 0.5} for name in anew}, "HOME") == {}


@pytest.mark.thorough
@pytest.mark.parametrize(("what", "cases", "seed"), [("faults", 16, 0), ("signals", 9, 0), ("clocks", 5, 0)])
def test_studies_survive_faults_and_signals_in_all_stages(
    bench: NativeFaults, what: str, cases: int, seed: int
) -> None:
    came = list(injected(bench, drawn(cases, seed, SETS[what], bench.stages)))
    print(table(Counter((fault.stage, outcome) for fault, outcome, _ in came), "stage"))
    assert [result for result in came if result.outcome not in FINE] == []
    assert len(came) == cases and 2 * sum(result.outcome == SURVIVED for result in came) > cases
