"""`ranktune retune` is killed at random moments, and runs beside other commands that move what is current.

The same command goes on, and ends with the same decision. What is current is whole at any moment, and what the last
command said.
RANKTUNE_TEST_SEED chooses the moments of the races.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.daily.retuning import retune
from ranktune.tuner.drift.days import read_days, write_day
from ranktune.tuner.retuning.versions import current, make_current
from ranktune.tuner.study.home import free_name
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import succeeded, write_letor
from tests.support.process_samples import forked

SEED = int(os.environ.get("RANKTUNE_TEST_SEED", "0"))
TOGETHER = 0.05
MOMENTS = (1.0, 9.0)
"""Seconds after the start between which it is killed: from the imports to beyond the end of most runs."""


def retuned(home: Path, data: Path, wait: float | None = None) -> dict[str, Any] | None:
    """Return what the command prints, None where it is killed after so many seconds."""
    command = [sys.executable, "-m", "ranktune", "retune", "shop", str(data), "--home", str(home)]
    command += ["--jobs", "1", "--json", "--as", "new"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    assert process.returncode in (0, 10, 11), errors
    found: dict[str, Any] = json.loads(out)
    return found


def begun(folder: Path, count: int = 3) -> tuple[Path, list[Path]]:
    """Tune a study, and return its home and the files of so many days."""
    days = [folder / f"day{number}.txt" for number in range(count)]
    for seed, path in enumerate(days):
        X = np.random.default_rng(seed).normal(size=(400, 4))
        noise = 0.5 * np.random.default_rng(seed + 9).normal(size=400)
        grades = np.digitize(X @ np.roll([1.0, 1.0, 0.0, 0.0], seed) + noise, [0.5, 1.5])
        write_letor(path, X, grades, np.repeat(np.arange(40), 10))
    solvers, home = ["RidgeRanker", "RankSVM"], folder / "first"
    ranktune.tune(days[0], name="shop", solvers=solvers, trials=6, executor=InProcess(), home=home)
    return home, days


def check_killed(folder: Path, kills: int) -> None:
    """Kill it again and again, each time until it has ended once; compare with a run that was never killed."""
    generator = random.Random(kills)
    first, days = begun(folder)
    whole = Path(shutil.copytree(first, folder / "whole"))
    known = retuned(whole, days[1])
    assert known is not None
    killed, home = 0, Path(shutil.copytree(first, folder / "home"))
    while killed < kills:
        found = retuned(home, days[1], generator.uniform(*MOMENTS))
        if found is None:
            killed += 1
            continue
        _check_same(found, known)
        shutil.rmtree(home)
        shutil.copytree(first, home)
    found = retuned(home, days[1])
    assert found is not None
    _check_same(found, known)
    versions = json.loads(succeeded("retune", "shop", "--history", "--home", home, "--json"))["versions"]
    assert [each["version"] for each in versions] == ["shop", "new"]


def _check_same(found: dict[str, Any], known: dict[str, Any]) -> None:
    assert found["decision"] == known["decision"] and found["configuration"] == known["configuration"]
    for name, mean in known["means"].items():
        assert found["means"][name] == pytest.approx(mean, abs=1e-9)


def test_a_retuning_that_is_killed_goes_on(tmp_path: Path) -> None:
    check_killed(tmp_path, 4)


@pytest.mark.slow
def test_sixty_kills_of_a_retuning(tmp_path: Path) -> None:
    check_killed(tmp_path, 60)


def at_once(*functions: Callable[[], object]) -> list[BaseProcess]:
    """Start processes that call a function each, all at the same moment: once TOGETHER seconds have passed."""
    begin = time.monotonic() + TOGETHER

    def run(function: Callable[[], object]) -> None:
        time.sleep(max(0.0, begin - time.monotonic()))
        function()

    return [forked(run, function) for function in functions]


def check_writers(folder: Path, rounds: int) -> None:
    """Two processes move what is current at once, one of them is killed at times, and this one reads meanwhile."""
    generator, (home, days) = random.Random(SEED), begun(folder)
    retune("shop", days[1], version="v2", executor=InProcess(), home=home)
    for number in range(rounds):
        chosen = [generator.choice(["shop", "v2"]) for _ in range(2)]
        said = [folder / f"said-{number}-{k}" for k in range(2)]

        def move(k: int, chosen: list[str] = chosen, said: list[Path] = said) -> None:
            said[k].write_text(json.dumps(asdict(make_current(home, "shop", chosen[k]))))

        kill = TOGETHER + generator.uniform(0.0, 0.02) if generator.random() < 0.4 else None
        begin = time.monotonic()
        processes = at_once(*(partial(move, k) for k in range(2)))
        while any(process.is_alive() for process in processes):
            assert current(home, "shop").version in ("shop", "v2"), "it is never damaged"
            if kill is not None and time.monotonic() - begin > kill:
                processes[0].kill()
        for process in processes:
            process.join()
        was_killed = processes[0].exitcode == -9
        assert processes[1].exitcode == 0 and processes[0].exitcode in (0, -9)
        now, said_now = asdict(current(home, "shop")), [json.loads(each.read_text()) for each in said[was_killed:]]
        last = max(said_now, key=lambda each: str(each["since"]))
        assert now == last or (was_killed and now["since"] > last["since"]), "killed once it had moved"


def test_two_writers_of_what_is_current(tmp_path: Path) -> None:
    check_writers(tmp_path, 20)


@pytest.mark.slow
def test_two_hundred_races_of_two_writers(tmp_path: Path) -> None:
    check_writers(tmp_path, 200)


def names(home: Path) -> Callable[[int], object]:
    return lambda k: (home / free_name(home, "shop") / "mine").touch(exist_ok=False)


def a_day(home: Path) -> Callable[[int], object]:
    return lambda k: write_day(home, "2026-11-28", {"found": "x" * 1000 * k})


@pytest.mark.parametrize("kind", [names, a_day])
def test_several_writers_of_one_state_lose_and_damage_nothing(
    kind: Callable[[Path], Callable[[int], object]], tmp_path: Path
) -> None:
    write = kind(tmp_path)
    for _ in range(3):
        processes = at_once(*(partial(write, k) for k in range(8)))
        for process in processes:
            process.join()
            assert process.exitcode == 0
        if kind is a_day:
            assert len(read_days(tmp_path)) == 1
