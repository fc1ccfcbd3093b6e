"""What cannot be, given on the command line: one line with cause and remedy, exit code 2, and no study by half."""

import importlib.util
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
from tests.support.postgres_server import Server, free_port

SECRET = "hush-Gre4t"
DATA = ["train.txt", "--test", "none", "--solver", "RidgeRanker", "--sampler", "random", "--trials", "2", "--jobs", "1"]

BEGUN = {"tune": ("tune", *DATA, "--name", "n"), "resume": ("resume", "n", "--join")}
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


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"host-{SECRET}", "postgresql://user:***@host/database"),
        (f"postgresql://me:{SECRET}@host", "names no database"),
        ("", "storage"),
    ],
)
@pytest.mark.parametrize("command", ["tune", "resume"])
def test_a_url_that_is_none_of_a_database(here: Path, refused: Refused, command: str, url: str, said: str) -> None:
    assert said in refused(*BEGUN[command], "--storage", url)
    assert kept(here) == []


@pytest.mark.parametrize("command", ["tune", "resume"])
def test_a_database_that_cannot_be_used(
    here: Path, refused: Refused, postgres: Server, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.storage.database.OPENING", 0.3)
    right = postgres.new_database()
    cases = {
        postgres.url(right.rpartition("/")[2], password=SECRET): "password",
        postgres.url("nowhere"): '"nowhere" does not exist. Create it (createdb)',
        f"postgresql://me:{SECRET}@127.0.0.1:{free_port()}/db": "refused. Check the address",
        f"postgresql://me:{SECRET}@[half/db": "Check the address",
        f"postgresql://me:{SECRET}@no-such-host.invalid/db": "Check the address",
    }
    for url, said in cases.items():
        message = refused(*BEGUN[command], "--storage", url)
        assert said in message
        assert postgres.password not in message
        assert kept(here) == []


def test_a_server_that_takes_connections_and_says_nothing(
    here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.storage.database.OPENING", 0.1)
    monkeypatch.setitem(database._SERVER, "connect_timeout", 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/db"
        assert "did not answer" in refused("resume", "n", "--join", "--storage", url)


def test_a_worker_for_a_study_that_is_not_there(here: Path, refused: Refused, postgres: Server) -> None:
    arguments = ["resume", "m", "--join", "--wait", "0"]
    assert "no study 'm' in postgresql://" in refused(*arguments, "--storage", postgres.new_database())
    assert "no study 'm' in ranktune-runs" in refused(*arguments)
    assert kept(here) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--executor", "joblib:dask"], "go together"),
        (["--executor", "ray", "--address", "h:6379"], "Give --executor joblib:ray"),
        (["--executor", "joblib:none"], "Invalid backend: none"),
        (["--address", "tcp://127.0.0.1:9"], "go together"),
        (["--executor", "slurm"], "Known: joblib, processes"),
        (["--sampler", "thomson"], "Did you mean 'thompson'"),
        (["--metric", "ndgc"], "ndcg"),
        (["--join"], "--name"),
        (["--name", "../up"], "name"),
    ],
)
def test_options_that_cannot_be(here: Path, refused: Refused, arguments: list[str], said: str) -> None:
    assert said in refused("tune", *DATA, *arguments)
    assert kept(here) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"trial_memory": "lots"}, "trial_memory = 'lots' (study file): it must be a number of bytes"),
        ({"trial_memory": "-4GB"}, "it must be a number of bytes"),
        ({"trial_memory": 0}, "it must be a number of bytes"),
        ({"trial_timeout": 0}, "trial_timeout"),
        ({"trial_timeout": "soon"}, "trial_timeout"),
        ({"jobs": "two"}, "jobs"),
        ({"like": "nothing"}, "no study 'nothing'"),
        ({"artifacts": "ftp://x"}, "s3://BUCKET/PREFIX"),
        ({"artifacts": "train.txt/arrays"}, "train.txt/arrays"),
        ({"artifacts": "/proc/arrays"}, "/proc/arrays"),
        ({"artifact": "/proc"}, "a study has no field 'artifact'"),
    ],
    ids=str,
)
def test_fields_of_a_study_file_that_cannot_be(
    here: Path, refused: Refused, fields: dict[str, object], said: str
) -> None:
    assert said in refused("tune", study_file(here / "s.toml", **{**FILE, **fields}))
    assert kept(here) == []


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="it is installed here")
def test_a_sampler_that_needs_what_is_not_installed(here: Path, refused: Refused) -> None:
    assert "pip install torch" in refused("tune", *DATA, "--sampler", "gp")
    assert kept(here) == []


def test_an_address_where_no_scheduler_listens(here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("ranktune.tuner.workers.dask_backend.CONNECT_SECONDS", 0.3)
    address = f"tcp://127.0.0.1:{free_port()}"
    message = refused("tune", *DATA, "--executor", "joblib:dask", "--address", address)
    assert f"no Dask cluster answers at '{address}'" in message and "dask scheduler" in message
    assert kept(here) == []


@pytest.mark.parametrize("option", [("--timeout", "0"), ("--timeout", "nan"), ("--jobs", "0"), ("--trials", "0")])
def test_numbers_out_of_range(here: Path, refused: Refused, option: tuple[str, str]) -> None:
    assert option[0] in refused.said("tune", *DATA, *option)
    assert kept(here) == []


def test_a_home_on_a_network_file_system(here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "self").mkdir()
    (here / "self" / "mounts").write_text(f"/dev/sda / ext4 rw 0 0\nserver:/runs {here}/far nfs4 rw 0 0\n")
    monkeypatch.setattr("psutil.PROCFS_PATH", str(here))
    message = refused("tune", *DATA, "--home", "far/runs")
    assert "is on a network file system (nfs4)" in message and "--storage 'postgresql://" in message
    assert kept(here, "far/runs") == []


def test_data_that_changed_since_the_study_began(here: Path, refused: Refused) -> None:
    refused.said("tune", *DATA, "--name", "n", code=0)
    before = (here / "ranktune-runs" / "n" / "study.json").read_bytes()
    result = (here / "ranktune-runs" / "n" / "result.json").read_bytes()
    write(here / "train.txt", 1)
    for arguments in (["tune", *DATA, "--name", "n"], ["resume", "n", "--jobs", "1", "--trials", "4"]):
        message = refused(*arguments)
        assert "other data" in message and "--name" in message
    assert (here / "ranktune-runs" / "n" / "study.json").read_bytes() == before
    assert (here / "ranktune-runs" / "n" / "result.json").read_bytes() == result
