"""What a shell completes: names of studies, solvers and metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ranktune.command_line.app import app
from tests.support.page_studies import declare


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("show m", {"mine", "mine-2"}),
        ("resume y", {"yours"}),
        ("report ", {"mine", "mine-2", "yours"}),
        ("tune data --solver Rid", {"RidgeRanker"}),
        ("tune data --metric nd", {"ndcg@10", "ndcg"}),
        ("evaluate a b --also er", {"err@10", "err"}),
        ("solvers List", {"ListNet"}),
    ],
)
def test_words_are_completed(words: str, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "mine-2", "yours"):
        declare(tmp_path, name)
    monkeypatch.setenv("RANKTUNE_HOME", str(tmp_path))
    place = str(len(words.split(" ")))
    environment = {"_RANKTUNE_COMPLETE": "complete_bash", "COMP_WORDS": f"ranktune {words}", "COMP_CWORD": place}
    done = CliRunner().invoke(app, prog_name="ranktune", env=environment)
    assert set(done.stdout.split()) == expected
