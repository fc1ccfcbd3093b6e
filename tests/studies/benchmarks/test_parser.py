import pytest
from typer.testing import CliRunner

from ranktune.studies.benchmarks import parser
from ranktune.studies.benchmarks.__main__ import app


def test_the_command_prints_both_and_fails_if_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ["parser", "--queries", "2", "--rounds", "1"]
    result = CliRunner().invoke(app, order)
    assert result.exit_code == 0 and "times faster" in result.output and "arrays are equal" in result.output
    monkeypatch.setattr(parser, "_same", lambda *_: False)
    assert CliRunner().invoke(app, order).exit_code == 1
