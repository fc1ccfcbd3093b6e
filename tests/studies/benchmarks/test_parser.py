from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.studies.benchmarks import parser
from ranktune.studies.benchmarks.__main__ import app


def letor_text(n_rows: int) -> str:
    generator = np.random.default_rng(0)
    values = generator.random((n_rows, 136)).round(6)
    return "".join(
        f"{row % 5} qid:{row // 100 + 1} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(line)) + "\n"
        for row, line in enumerate(values.tolist())
    )


def test_both_readers_find_the_same(tmp_path: Path) -> None:
    file = tmp_path / "letor.txt"
    file.write_text(letor_text(200))
    _, same = parser.compare(file)
    assert same


@pytest.mark.slow
def test_text_is_read_many_times_faster_than_by_scikit_learn(tmp_path: Path) -> None:
    file = tmp_path / "letor.txt"
    file.write_text(letor_text(2000))
    turns, _ = parser.compare(file)
    assert turns.ratios(parser.THEIRS, parser.OURS[0])[-1] > 8  # 15 and more on a quiet machine


def test_the_command_prints_both_and_fails_if_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ["parser", "--queries", "2", "--rounds", "1"]
    result = CliRunner().invoke(app, order)
    assert result.exit_code == 0 and "times faster" in result.output and "arrays are equal" in result.output
    monkeypatch.setattr(parser, "_same", lambda *_: False)
    assert CliRunner().invoke(app, order).exit_code == 1


def test_text_and_csv_are_generated_where_no_file_is_given() -> None:
    text, csv = parser.main(rounds=1, queries=2)
    assert not text.failed and not csv.failed
    assert [row["reader"] for row in text.rows] == [*parser.OURS, parser.THEIRS]
    assert csv.rows[0]["reader"] == parser.OURS[0] and csv.rows[0]["times faster"] == 1.0
