"""Studies with one damaged file: every command gives a correct answer or a sentence.

By hand, with a table of the outcomes: python -m tests.fuzzing.damage FOLDER CASES SEED
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.fuzzing.damage import COMMANDS, GOOD, Bench, Case, Outcome, Samples, counts

THE_MOST = 1500
"""Cases of the long run."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("damage")
    return Bench(Samples.make(folder / "samples"), folder)


def _bad(bench: Bench, cases: list[Case]) -> tuple[list[str], Counter[tuple[str, Outcome]]]:
    """Run cases; return the descriptions of those that came to no good, and the counts of outcomes."""
    bad, found = [], Counter[tuple[str, Outcome]]()
    for case in cases:
        result = bench.outcome(case)
        if result is not None:
            found[case.command, result[0]] += 1
            bad += [] if result[0] in GOOD else [f"{result[0]}: {case}: {result[1].strip()[-300:]}"]
    return bad, found


@pytest.mark.thorough
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "resume"])
def test_a_command_on_a_damaged_study_answers_or_refuses(bench: Bench, command: str) -> None:
    cases = [case for case in bench.cases() if case.command == command and case.kind == "finished"]
    chosen = np.random.default_rng(3).permutation(len(cases))[:20]
    bad, _ = _bad(bench, [cases[number] for number in chosen.tolist()])
    assert bad == []


@pytest.mark.slow
def test_all_damage_is_answered_or_refused(bench: Bench) -> None:
    cases = list(bench.cases(range(3)))
    chosen = np.random.default_rng(0).permutation(len(cases))[:THE_MOST]
    bad, found = _bad(bench, [cases[number] for number in chosen.tolist()])
    print(counts(found))
    assert bad == []
