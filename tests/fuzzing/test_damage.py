"""Studies with one damaged file: every command gives a correct answer or a sentence.

By hand, with a table of the outcomes: python -m tests.fuzzing.damage FOLDER CASES SEED [COMMAND...]
"""

import numpy as np
import pytest

from tests.fuzzing.asked import COMMANDS
from tests.fuzzing.damage import GOOD, Bench, Case
from tests.fuzzing.damaged_studies import Samples
from tests.fuzzing.ledger import Ledger, table


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("damage")
    return Bench(Samples.make(folder / "samples"), folder)


def _bad(bench: Bench, cases: list[Case]) -> list[str]:
    """Run cases; print the table of outcomes, and return the descriptions of those that came to no good."""
    bad, ledger = [], Ledger()
    for case in cases:
        result = bench.outcome(case)
        if result is not None:
            ledger.add(case.command, result[0], str(case))
            bad += [] if result[0] in GOOD else [f"{result[0]}: {case}: {result[1].strip()[-300:]}"]
    print(table(ledger.counts, "command"))
    return bad


@pytest.mark.thorough
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "resume"])
def test_a_command_on_a_damaged_study_answers_or_refuses(bench: Bench, command: str) -> None:
    cases = [case for case in bench.cases() if case.command == command and case.kind == "finished"]
    chosen = np.random.default_rng(3).permutation(len(cases))[:20]
    assert _bad(bench, [cases[number] for number in chosen.tolist()]) == []
