"""What a shell completes: names of studies, solvers, metrics and data."""

import shutil
import subprocess
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
        ("show ", {"mine", "mine-2", "yours"}),
        ("tune data --solver Rid", {"RidgeRanker"}),
        ("tune data --metric nd", {"ndcg@10", "ndcg"}),
        ("evaluate a b --also er", {"err@10", "err"}),
        ("solvers List", {"ListNet"}),
        ("tune api", {"api-search"}),
        ("tune RUNS/m", {"RUNS/mine.toml"}),
        ("data api-", {"api-search"}),
    ],
)
def test_words_are_completed(words: str, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "mine-2", "yours"):
        declare(tmp_path, name)
    monkeypatch.setenv("RANKTUNE_HOME", str(tmp_path))
    (tmp_path / "RUNS").mkdir()
    (tmp_path / "RUNS" / "mine.toml").touch()
    monkeypatch.chdir(tmp_path)
    place = str(len(words.split(" ")))
    environment = {"_RANKTUNE_COMPLETE": "complete_bash", "COMP_WORDS": f"ranktune {words}", "COMP_CWORD": place}
    done = CliRunner().invoke(app, prog_name="ranktune", env=environment)
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_valid(shell: str, tmp_path: Path) -> None:
    """It is that of --install-completion."""
    environment = {"_RANKTUNE_COMPLETE": f"source_{shell}"}
    done = CliRunner().invoke(app, prog_name="ranktune", env=environment)
    assert done.exit_code == 0 and "_RANKTUNE_COMPLETE=complete_" in done.stdout
    script = tmp_path / "completion"
    script.write_text(done.stdout)
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(script)], check=True)
    if shell == "bash" and program:
        command = ["bash", "-c", 'source "$1" && complete -p ranktune', "-", str(script)]
        assert "ranktune" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
