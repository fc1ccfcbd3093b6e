"""A PostgreSQL server that goes away while an owner and workers run a study in it, and workers that go away."""

import json
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from optuna.trial import TrialState

from ranktune.tuner.storage.attributes import RESTARTS
from ranktune.tuner.storage.record import number_of
from ranktune.tuner.study.events import read_events
from tests.faults.test_survival import acknowledged, checked, joined_events, start, wait_for
from tests.fuzzing.asked import stable
from tests.support.engine_samples import graded
from tests.support.postgres_server import Server
from tests.support.tcp_proxy import Proxy
from tests.tuner.runner import test_joining

SOON = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    return tmp_path / "s"


def more_than(folder: Path, count: int) -> bool:
    return len(acknowledged(folder)) > count


def said_only_warnings(errors: str) -> bool:
    """Whether nothing but our own warnings, and where they were given, is on standard error."""
    lines = [line for line in errors.splitlines() if not line.startswith(" ")]  # Python quotes the source, indented
    return all("RankTuneWarning: the record" in line or line.startswith("trial ") for line in lines)


def gone_through(
    postgres: Server, folder: Path, trials: int, outages: list[float], proxy: Proxy | None = None
) -> list[str]:
    """Run a study with three workers that joined, the server being away for so many seconds each; return stderr.

    With a proxy the server stays, and they lose their connections.
    """
    url = postgres.new_database()
    if proxy is not None:
        url = url.replace(str(postgres.port), str(proxy.port))
    owner = start(folder, trials, 1, 0.2, url)
    wait_for(lambda: acknowledged(folder), owner)
    workers = [start(folder, trials, 1, 0.2, url, role="join") for _ in range(3)]
    wait_for(lambda: len(set(joined_events(folder))) == 3, owner)
    for away in outages:
        before = len(acknowledged(folder))
        (postgres.crash if proxy is None else proxy.cut)(away)
        wait_for(partial(more_than, folder, before + 2), owner)
    out, errors = owner.communicate(timeout=SOON + 5.0 * trials)
    assert owner.returncode == 0, errors
    assert out.split()[-1] == "finished"
    (folder / "over").touch()
    ends = [worker.communicate(timeout=SOON) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], ends
    result = checked(folder, trials, url)
    assert {trial.state for trial in result} == {TrialState.COMPLETE}
    assert sorted(acknowledged(folder)) == list(range(trials))
    assert all(int(ran) > 0 for ran, _ in ends)
    asked = Counter(event["trial"] for event in read_events(folder) if event["event"] == "asked")
    assert asked == dict.fromkeys(range(trials), 1)
    assert not any(trial.user_attrs.get(RESTARTS) for trial in result), "nobody was away but the server"
    events = [event["event"] for event in read_events(folder)]
    assert events.count("storage_away") == events.count("storage_back")
    return [errors, *(said for _, said in ends)]


@pytest.mark.parametrize("away", [1.5, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_server_that_crashes_repeatedly_costs_nothing(postgres: Server, folder: Path, away: float) -> None:
    errors = gone_through(postgres, folder, 72, [0.0, away])
    assert all(map(said_only_warnings, errors)), errors


@pytest.mark.parametrize("seconds", [2.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_connections_that_drop_cost_nothing(postgres: Server, folder: Path, seconds: float) -> None:
    with Proxy(postgres.port) as proxy:
        errors = gone_through(postgres, folder, 60, [seconds], proxy)
    assert all(map(said_only_warnings, errors)), errors


def test_a_worker_that_comes_back_too_late_hands_in_nothing(postgres: Server, folder: Path) -> None:
    """It is stopped for longer than its lease holds: the trial is somebody else's by then, and counted once."""
    url = postgres.new_database()
    owner = start(folder, 40, 1, 0.4, url)
    wait_for(lambda: acknowledged(folder), owner)
    worker = start(folder, 40, 2, 3.0, url, role="join")
    wait_for(lambda: joined_events(folder), owner)
    time.sleep(1.5)  # it has taken trials, none of which is done
    worker.send_signal(signal.SIGSTOP)
    wait_for(lambda: [e for e in read_events(folder) if e["event"] == "reissued"], owner)
    worker.send_signal(signal.SIGCONT)
    succeeded(owner)
    (folder / "over").touch()
    ran, _ = succeeded(worker)
    result = checked(folder, 40, url)
    assert {trial.state for trial in result} == {TrialState.COMPLETE}
    reissued = {e["trial"] for e in read_events(folder) if e["event"] == "reissued"}
    assert {number_of(trial) for trial in result if trial.user_attrs.get(RESTARTS)} == reissued
    by_joined = sum(":" in trial.user_attrs.get("worker", "") for trial in result)
    assert int(ran) == by_joined, "what it handed in too late would be counted as its own"


def at(url: str) -> list[str]:
    return ["--name", "n", "--storage", url, "--jobs", "1"]


def begun(folder: Path, url: str, *words: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a study in a database; return its process and log, once a trial has finished."""
    test_joining.write(graded(120, 0), folder / "train.txt")
    log = folder / "ranktune-runs" / "n" / "events.jsonl"
    tune = ["tune", "train.txt", "--test", "none", "--sampler", "random", "--solver", "RankSVM"]
    owner = test_joining.start(folder, *tune, *words, *at(url))
    wait_for(lambda: log.exists() and '"finished"' in log.read_text(), owner)
    return owner, log


def succeeded(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a command wrote to each stream, which must succeed."""
    out, errors = process.communicate(timeout=4 * SOON)
    assert process.returncode == 0, errors
    return out, errors


def test_commands_wait_for_a_server_that_is_away(postgres: Server, tmp_path: Path) -> None:
    """The same from the command line: an owner with its lanes and a worker, each with all that it reads and writes."""
    url = postgres.new_database()
    owner, log = begun(tmp_path, url, "--solver", "ElasticRank", "--trials", "200", "--json")
    worker = test_joining.start(tmp_path, "resume", "n", "--join", *at(url)[2:])
    wait_for(lambda: '"worker_joined"' in log.read_text(), owner)
    postgres.crash(1.0)
    out, errors = succeeded(owner)
    assert json.loads(out)["trials"] == 200
    _, said = succeeded(worker)
    events = Counter(event["event"] for event in read_events(log.parent))
    assert events["storage_away"] == events["storage_back"] > 0
    assert (events["asked"], events["finished"] + events["pruned"]) == (200, 200)
    for text in (errors, said):
        assert postgres.password not in text
        assert "does not answer" in text and "answers again after" in text
        lines = [line for line in text.splitlines() if not line.startswith("error ignored terminating <psycopg")]
        assert "Traceback" not in text and "error" not in "\n".join(lines).lower()
        warned = [line for line in text.splitlines() if line.startswith("warning:")]
        assert all("the record postgresql://" in line for line in warned), text


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGINT]], ids=["once", "twice"])
def test_a_signal_ends_the_wait_for_a_server(postgres: Server, tmp_path: Path, signals: list[signal.Signals]) -> None:
    """The server does not come back; once it does, the study goes on to the end."""
    url = postgres.new_database()
    owner, log = begun(tmp_path, url, "--trials", "100")
    worker = test_joining.start(tmp_path, "resume", "n", "--join", *at(url)[2:])
    wait_for(lambda: '"worker_joined"' in log.read_text(), owner)
    postgres.stop(signal.SIGQUIT)
    try:
        wait_for(lambda: '"storage_away"' in log.read_text(), owner)
        time.sleep(3.0)  # by now both wait for seconds between two tries
        for process in (owner, worker):
            sent = time.monotonic()
            for number in signals:
                process.send_signal(number)
                time.sleep(0.2)
            _, said = process.communicate(timeout=SOON)
            assert process.returncode == 130 and time.monotonic() - sent < 15.0, said
            assert "Interrupted." in said and "Traceback" not in said and postgres.password not in said
    finally:
        postgres.start()
    out, _ = succeeded(test_joining.start(tmp_path, "resume", "n", *at(url)[2:], "--json"))
    assert json.loads(out)["trials"] == 100


def test_a_server_that_crashes_in_every_stage_changes_no_result(postgres: Server, tmp_path: Path) -> None:
    """A second coordinator that comes meanwhile is refused."""
    test_joining.write(graded(200, 0), tmp_path / "train.txt")
    tune = ("tune", "train.txt", "--solver", "RankSVM", "--solver", "RidgeRanker", "--sampler", "random", "--json")
    end = ("--trials", "30", "--jobs", "1")
    calm = test_joining.start(tmp_path, *tune, *end, "--name", "calm")
    expected, _ = succeeded(calm)
    place = ("--name", "n", "--storage", postgres.new_database())
    owner, log = test_joining.start(tmp_path, *tune, *end, *place), tmp_path / "ranktune-runs" / "n" / "events.jsonl"
    for stage in ("search", "rescoring", "refitting", "saving", "beginning"):
        while owner.poll() is None and not (log.exists() and f'"{stage}"' in log.read_text()):
            time.sleep(0.002)
        postgres.crash(0.5)
        if stage == "search":
            second = test_joining.start(tmp_path, *tune, *end, *place)
            assert second.wait(4 * SOON) == 2 and "is being run by" in second.communicate()[1]
    out, errors = succeeded(owner)
    assert "Traceback" not in errors
    assert stable(json.loads(out), "") == stable(json.loads(expected.replace("calm", "n")), "")
    events = Counter(event["event"] for event in read_events(log.parent))
    assert events["storage_away"] == events["storage_back"] > 0


@pytest.fixture
def small_database(postgres: Server, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a database on a file system of 12 megabytes, and the folder of that; or a skip."""
    folder = postgres.folder / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    (folder / "space").mkdir()
    shutil.chown(folder / "space", "nobody")
    postgres.execute(f"CREATE TABLESPACE small LOCATION '{folder / 'space'}'")
    postgres.execute("CREATE DATABASE small TABLESPACE small")
    yield postgres.url("small"), folder
    postgres.execute("DROP DATABASE small WITH (FORCE)")
    postgres.execute("DROP TABLESPACE small")
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_of_the_server_is_said_and_costs_nothing(
    small_database: tuple[str, Path], postgres: Server, tmp_path: Path
) -> None:
    url, disk = small_database
    owner, log = begun(tmp_path, url, "--trials", "120")
    with suppress(OSError), (disk / "ballast").open("ab", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    _, said = owner.communicate(timeout=2 * SOON)
    assert owner.returncode == 2 and "Free space on the server" in said, said
    assert "Traceback" not in said and postgres.password not in said
    finished = sum(event["event"] == "finished" for event in read_events(log.parent))
    (disk / "ballast").unlink()
    out, _ = succeeded(test_joining.start(tmp_path, "resume", "n", *at(url)[2:], "--json"))
    assert 0 < finished < 120 == json.loads(out)["trials"]
    ended = [event["trial"] for event in read_events(log.parent) if event["event"] in ("finished", "pruned")]
    assert sorted(ended) == list(range(120))
