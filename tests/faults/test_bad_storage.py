"""What cannot be, given on the command line: one line with cause and remedy, exit code 2, and no study by half."""

import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ranktune import cli
from ranktune.tuner.storage import database
from tests.support.commands import study_file, write_letor

SECRET = "hush-Gre4t"
FILE = {"data": "train.txt", "test": "none", "solvers": ["RidgeRanker"], "sampler": "random", "trials": 2, "jobs": 1}


def write(path: Path, seed: int) -> None:
    """Write ten small queries."""
    values = np.random.default_rng(seed).random((60, 3))
    write_letor(path, values[:, :2], values[:, 0] + values[:, 2] > 0.8, np.arange(60) // 6)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with data in it."""
    monkeypatch.chdir(tmp_path)
    for name in ("RANKTUNE_HOME", "RANKTUNE_STORAGE", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path / "train.txt", 0)
    yield tmp_path
    os.environ.pop("RANKTUNE_STORAGE", None)


class Refused:
    """Calls the command in this process; it has to end with exit code 2, and say one line, which is returned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> str:
        message = self.said(*arguments)
        lines = [line for line in message.splitlines() if not line.startswith("reading ")]
        assert len(lines) == 1 and lines[0].startswith("error: "), message
        return lines[0]

    def said(self, *arguments: str, code: int = 2) -> str:
        """Return all that it says, in however many lines; it has to end with that code."""
        os.environ.pop("RANKTUNE_STORAGE", None)  # as the command before left it, for the pages
        self._monkeypatch.setattr(sys, "argv", ["ranktune", *arguments])
        self._monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets another
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, message = self._capsys.readouterr()
        assert ended.value.code == code, message
        assert out == "" or code == 0
        assert SECRET not in message
        assert "Traceback" not in message
        return message


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)  # the tests go on afterwards
    return Refused(monkeypatch, capsys)


def kept(here: Path, home: str = "ranktune-runs") -> list[str]:
    """Return what is left in the home."""
    return sorted(str(path.relative_to(here)) for path in (here / home).rglob("*")) if (here / home).exists() else []


def test_a_server_that_takes_connections_and_says_nothing(
    here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.storage.database.OPENING", 0.1)
    monkeypatch.setitem(database._SERVER, "connect_timeout", 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/db"
        assert "did not answer" in refused("resume", "n", "--join", "--storage", url)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"trial_memory": "lots"}, "trial_memory = 'lots' (study file): it must be a number of bytes"),
        ({"trial_timeout": 0}, "trial_timeout"),
        ({"trial_timeout": "soon"}, "trial_timeout"),
        ({"jobs": "two"}, "jobs"),
        ({"artifacts": "ftp://x"}, "s3://BUCKET/PREFIX"),
        ({"artifacts": "train.txt/arrays"}, "train.txt/arrays"),
        ({"artifacts": "/proc/arrays"}, "/proc/arrays"),
    ],
    ids=str,
)
def test_fields_of_a_study_file_that_cannot_be(
    here: Path, refused: Refused, fields: dict[str, object], said: str
) -> None:
    assert said in refused("tune", study_file(here / "s.toml", **{**FILE, **fields}))
    assert kept(here) == []
