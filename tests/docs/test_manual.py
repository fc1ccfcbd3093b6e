"""The manual page has the help of every command."""

from pathlib import Path

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.command_line.app import app


def test_every_command_is_in_it(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    from ranktune.docs.manual import write_manual

    assert write_manual(tmp_path) == 0
    text = (tmp_path / "ranktune.1").read_text().replace("\\-", "-")
    assert ".TH" in text
    commands = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
    assert [name for name in commands if f"Usage: ranktune {name.replace('_', '-')}" not in text] == []
