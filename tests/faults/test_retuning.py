"""`ranktune retune` runs beside other commands that move what is current, one of which is killed at times.

What is current is whole at any moment, and what the last command said. RANKTUNE_TEST_SEED chooses the moments of the
races. That a retuning which is killed goes on is tested by tests.fuzzing.other_commands.
"""

import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.daily.retuning import retune
from ranktune.tuner.drift import watch
from ranktune.tuner.drift.watching import read_days, write_day
from ranktune.tuner.retuning.versions import DELIVERED, current, make_current
from ranktune.tuner.splits.seals import file_digest
from ranktune.tuner.study.home import free_name
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import succeeded, write_letor

SEED = int(os.environ.get("RANKTUNE_TEST_SEED", "0"))
FORK = multiprocessing.get_context("fork")
TOGETHER = 0.05
MOMENTS = (1.0, 9.0)
"""Seconds after the start at which a rollback begins: from the imports to beyond the end of most runs."""
REFUSED = 2


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


def forked(*functions: Callable[[], object]) -> list[multiprocessing.process.BaseProcess]:
    """Start processes that call a function each, all at the same moment: once TOGETHER seconds have passed."""
    begin = time.monotonic() + TOGETHER

    def run(function: Callable[[], object]) -> None:
        time.sleep(max(0.0, begin - time.monotonic()))
        function()

    processes = [FORK.Process(target=run, args=(function,)) for function in functions]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking where a library has threads
        for process in processes:
            process.start()
    return [*processes]


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
        processes = forked(*(partial(move, k) for k in range(2)))
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


def check_commands(folder: Path, rounds: int) -> None:
    """Going back, resume and retune at once: what is current is whole, and what the last one said."""
    generator, (first, days) = random.Random(SEED), begun(folder)
    retune("shop", days[1], version="v2", executor=InProcess(), home=first)
    for number in range(rounds):
        home = Path(shutil.copytree(first, folder / f"home{number}"))
        back, before = generator.choice(["shop", "v2"]), current(home, "shop")
        commands: dict[str, list[object]] = {
            "retune": ["retune", "shop", days[2], "--as", "v3", "--jobs", "1", "--json"],
            "resume": ["resume", "v2", "--trials", "12", "--jobs", "1"],
            "rollback": ["retune", "shop", "--rollback", back],
        }
        waits = {"retune": 0.0, "resume": generator.uniform(0.0, 2.0), "rollback": generator.uniform(*MOMENTS)}
        running = dict[str, subprocess.Popen[str]]()
        begin = time.monotonic()
        for name in sorted(commands, key=lambda name: waits[name]):
            time.sleep(max(0.0, begin + waits[name] - time.monotonic()))
            command = [sys.executable, "-m", "ranktune", *map(str, commands[name]), "--home", str(home)]
            running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ended = {name: process.communicate() for name, process in running.items()}
        codes = {name: process.returncode for name, process in running.items()}
        assert codes["retune"] in (0, 10, 11) and codes["resume"] == 0, (codes, ended)
        if is_refused := codes["rollback"] == REFUSED:  # no version has a copy that may be replaced meanwhile
            assert back == "v2" and "study 'v2' is being run by process" in ended["rollback"][1], ended
        else:
            assert ended["rollback"][0].startswith(f"The current model of shop is that of {back}: "), ended
        stays = (before.version, before.since.split()[0]) if is_refused else (back, "rollback")
        now, said_now = current(home, "shop"), json.loads(ended["retune"][0])["current"]
        moved = said_now.startswith("The current model of shop is that of v3: ")
        assert (now.version, now.since.split()[0]) in {stays, *([("v3", "retune")] if moved else [])}
        if not moved and codes["retune"]:
            assert "`ranktune retune shop --rollback v3` makes that of v3 current" in said_now, said_now
        assert file_digest(now.path(home))[:16] == now.copy and (home / now.study / DELIVERED / now.copy).is_dir()
        assert watch("shop", days[2], home=home, save=False).quality is not None
        versions = json.loads(succeeded("retune", "shop", "--history", "--home", home, "--json"))["versions"]
        assert [line["version"] for line in versions if line["current"]] == [now.version]
        shutil.rmtree(home)


def test_two_writers_of_what_is_current(tmp_path: Path) -> None:
    check_writers(tmp_path, 20)


def test_a_rollback_beside_a_retuning_and_a_resumed_version(tmp_path: Path) -> None:
    check_commands(tmp_path, 1)


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
        processes = forked(*(partial(write, k) for k in range(8)))
        for process in processes:
            process.join()
            assert process.exitcode == 0
        if kind is a_day:
            assert len(read_days(tmp_path)) == 1
