"""The same seed gives the same study: with one job always, with several where trials end in the same order."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranktune import api
from ranktune.tuner.search.dispatcher import Clock
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import SOLVERS, letor, ranktune
from tests.support.engine_samples import graded
from tests.tuner.search.test_loop import STUDY, smooth, task_of

SAMPLERS = ("thompson", "random", "tpe")


def trials(folder: Path) -> list[tuple[Any, ...]]:
    """Return number, parameters, value and values by query, to the last bit, of all trials in a record."""
    record = Record(folder, "n", "ndcg@10")
    try:
        return [
            (number_of(trial), trial.params, trial.value, record.per_query(trial)["ndcg@10"].tobytes())
            for trial in record.trials()
        ]
    finally:
        record.close()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_job_gives_the_same_trials_to_the_last_bit(tmp_path: Path, sampler: str) -> None:
    """Wherever it runs."""
    data = graded(40, 0)
    for home, executor in (("one", "processes"), ("other", "joblib" if sampler == "thompson" else "processes")):
        api.tune(
            data, home=tmp_path / home, name="n", trials=14, seed=3, sampler=sampler, jobs=1, test="none",
            solvers=("RankSVM", "RidgeRanker"), executor=executor, progress=Silent(),
        )  # fmt: skip
    result = trials(tmp_path / "one" / "n")
    assert len(result) == 14
    assert result == trials(tmp_path / "other" / "n")
    assert len({str(params) for _, params, _, _ in result}) > 10  # the best of two paths may be the same


class Scripted(InProcess):
    """Four lanes whose functions end one at a time, in an order that a seed decides."""

    jobs = 4

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.waiting: list[tuple[Future[Any], Any]] = []

    def submit(self, function: Any, *arguments: Any, limits: Any = None) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: function(*arguments)))
        return future

    def release(self) -> None:
        future, act = self.waiting.pop(int(self.generator.integers(len(self.waiting))))
        future.set_result(act())


class Releasing(Clock):
    """A clock that lets one function end whenever somebody waits."""

    def __init__(self, lanes: Scripted) -> None:
        self.lanes, self.orders = lanes, 0

    def wait(self, futures: Any, seconds: float) -> set[Future[Any]]:
        self.lanes.release()
        return {future for future in futures if future.done()}


def four_jobs(folder: Path, sampler: str, seed: int) -> list[Any]:
    study = replace(STUDY, sampler=sampler, trials=24)
    lanes = Scripted(seed)
    record = Record(folder, "n", "ndcg@10")
    TrialLoop(study, "", record, task_of, lanes, Silent(), smooth, clock=Releasing(lanes)).run()
    record.close()
    assert not lanes.waiting
    return trials(folder)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_four_jobs_that_end_in_the_same_order_give_the_same_trials(tmp_path: Path, sampler: str) -> None:
    result = four_jobs(tmp_path / "one", sampler, 5)
    assert len(result) == 24
    assert result == four_jobs(tmp_path / "other", sampler, 5)
    if sampler == "random":  # which looks at nothing: the order does not matter either
        assert result == four_jobs(tmp_path / "differently", sampler, 6)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_killed_study_of_one_job_ends_as_an_uninterrupted_study(tmp_path: Path, weighted: bool) -> None:
    letor(tmp_path / "train.txt", 40, 1)
    data: tuple[str, ...] = ("train.txt",)
    if weighted:
        known, data = graded(40, 1), ("train.csv", "--weight", "traffic")
        table = pd.DataFrame(known.features).add_prefix("f").assign(grade=known.grades, qid=known.query_of_document)
        table.assign(traffic=1.0 + known.query_of_document % 7).to_csv(tmp_path / "train.csv", index=False)
    given = (*data, "--trials", "20", *SOLVERS[:-1], "thompson", "--name", "n", "--test", "none")
    process = subprocess.Popen(
        [sys.executable, "-m", "ranktune", "tune", *given, "--home", "killed"], cwd=tmp_path,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    artifacts = tmp_path / "killed" / "n" / "artifacts"
    while not artifacts.is_dir() or len(list(artifacts.iterdir())) < 6:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(trials(tmp_path / "killed" / "n")) < 20, "it ended too early to be a test"
    ranktune("resume", "n", "--jobs", 1, "--home", "killed", cwd=tmp_path)
    ranktune("tune", *given, "--home", "whole", cwd=tmp_path)
    assert trials(tmp_path / "killed" / "n") == trials(tmp_path / "whole" / "n")
    ends = [json.loads((tmp_path / home / "n" / "result.json").read_text()) for home in ("killed", "whole")]
    for name in ("estimate", "estimate_interval"):
        assert ends[0][name] == ends[1][name]
