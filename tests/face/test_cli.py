"""The command as a user runs it: real files, exit codes, what goes where, and what ends its process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from ranktune.command_line.app import app
from ranktune.command_line.messages import as_options
from tests.support.finished import TRIALS, Finished


def test_folders_of_folds_are_tuned_fold_by_fold(finished: Finished) -> None:
    result = finished.result("folds").as_dict()
    assert [fold["name"] for fold in result["folds"]] == ["Fold1", "Fold2"] and result["trials"] == 2 * TRIALS
    assert result["best"]["test"] == pytest.approx(np.mean([fold["best"]["test"] for fold in result["folds"]]))
    assert all(Path(fold["model"]).is_file() for fold in result["folds"])


@pytest.mark.parametrize(
    ("command", "message", "shown"),
    [
        ("data", "pass one_based=False", "pass --zero-based"),
        ("tune", "pass missing='zero', or leave out until=.", "pass --missing zero, or leave out until (study file)."),
        (
            "resume",
            "Choose another name (name=), or extend=True.",
            "Choose another name (`ranktune tune --name`), or extend = true (study file).",
        ),
        ("solvers", "alpha=1.0: give home=, or seed=3", "alpha=1.0: give `ranktune tune --home`, or seed=3"),
        ("tune", 'as baseline="column:a\'s".', "as --baseline 'column:a'\"'\"'s'."),
        ("tune", "ranktune.register_solver adds your own.", "--solver module:Name adds your own."),
    ],
)
def test_arguments_in_messages_are_shown_as_options(
    command: str, message: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ranktune", command])
    assert as_options(message, typer.main.get_command(app)) == shown


def test_help_is_instant_and_teaches() -> None:
    begun = os.times().children_user + os.times().children_system
    text = subprocess.run(
        [sys.executable, "-m", "ranktune", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert os.times().children_user + os.times().children_system - begun < 1.0  # no numeric library was loaded
    assert "ranktune tune" in text
    assert "Your data" in text
