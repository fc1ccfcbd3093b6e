"""Three commands begin at the same time on one empty database: each ends as it does alone."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from ranktune.command_line.production.retune import EXIT_CODES
from ranktune.solvers.core.arrays import Json
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.events import read_events
from tests.fuzzing.asked import stable
from tests.support.engine_samples import graded
from tests.support.postgres_server import Server
from tests.tuner.runner.test_joining import start, write

SOON = 240.0
TRIALS = 120
FAST = ("--solver", "RankSVM", "--solver", "RidgeRanker", "--sampler", "random", "--jobs", "1")
STUDY = f"""data = "train.txt"
name = "n"
solvers = ["RankSVM", "RidgeRanker"]
sampler = "random"
full = true
trials = {TRIALS}
"""
TUNE = ("tune", "n.toml", "--jobs", "1", "--json")
RETUNE = ("retune", "shop", "train.txt", "--as", "new", "--jobs", "1", "--json")


def ended(folder: Path, *command: str) -> tuple[int, Json]:
    """Return the exit code and the result of a command that runs alone."""
    process = start(folder, *command)
    out, errors = process.communicate(timeout=SOON)
    assert process.returncode in EXIT_CODES.values(), errors
    return process.returncode, result_of(out)


def result_of(out: str) -> Json:
    result: Json = json.loads(out)
    result.get("incumbent", {}).pop("since", "a time")
    return result


@pytest.mark.thorough
def test_tune_a_worker_and_retune_share_a_database_that_was_empty(postgres: Server, tmp_path: Path) -> None:
    alone, together, url = tmp_path / "alone", tmp_path / "together", postgres.new_database()
    alone.mkdir()
    write(graded(120, 0), alone / "old.txt")
    write(graded(120, 1), alone / "train.txt")
    (alone / "n.toml").write_text(STUDY)
    ended(alone, "tune", "old.txt", *FAST, "--name", "shop", "--trials", "6", "--json")
    shutil.copytree(alone, together)
    expected = [ended(alone, *TUNE), ended(alone, *RETUNE)]

    at = ("--storage", url)
    (together / "worker").mkdir()
    processes = [
        start(together / "worker", "resume", "n", "--join", "--jobs", "1", *at),
        start(together, *TUNE, *at),
        start(together, *RETUNE, *at),
    ]
    said = [process.communicate(timeout=SOON) for process in processes]
    assert [process.returncode for process in processes] == [0, *(code for code, _ in expected)], said
    for (out, _), (_, result) in zip(said[1:], expected, strict=True):
        assert stable(result_of(out), str(together)) == stable(result, str(alone))
    assert not any("Traceback" in text or postgres.password in text for pair in said for text in pair)

    home = together / "ranktune-runs"
    events = {name: list(read_events(home / name)) for name in ("n", "new")}
    asked = Counter(event["trial"] for event in events["n"] if event["event"] == "asked")
    assert asked == dict.fromkeys(range(TRIALS), 1)
    joined = {name: [event for event in events[name] if event["event"] == "worker_joined"] for name in events}
    assert (len(joined["n"]), len(joined["new"])) == (1, 0)
    ran = Counter(":" in str(event["worker"]) for event in events["n"] if event["event"] == "finished")
    assert ran[True] > 0, "the worker ran nothing"
    for name in ("n", "new"):
        record = Record(home / name, name, "ndcg@10", url)
        assert len(record.trials()) == len([event for event in events[name] if event["event"] == "asked"])
        record.close()
        assert not (home / name / "record.db").exists()
