"""`ranktune retune` is killed at random moments: the same command goes on, and ends with the same decision.

Where the file holds other data by then, the decision is about these, or it is refused.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import succeeded, write_letor

MOMENTS = (1.0, 9.0)
"""Seconds after the start between which it is killed: from the imports to beyond the end of most runs."""


REFUSED = 2


def retuned(home: Path, data: Path, wait: float | None = None, version: str | None = "new") -> dict[str, Any] | None:
    """Return what the command prints, None where it is killed after so many seconds, nothing where it is refused."""
    command = [sys.executable, "-m", "ranktune", "retune", "shop", str(data), "--home", str(home)]
    command += ["--jobs", "1", "--json", *(["--as", version] if version else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    if process.returncode == REFUSED and "was interrupted, on other data than these" in errors:
        return {}
    assert process.returncode in (0, 10, 11), errors
    found: dict[str, Any] = json.loads(out)
    return found


def begun(folder: Path, count: int) -> tuple[Path, list[Path]]:
    """Return the home of a study of the first of so many days, and the files of all."""
    days = [folder / f"day{number}.txt" for number in range(count)]
    for seed, path in enumerate(days):
        X = np.random.default_rng(seed).normal(size=(400, 4))
        noise = 0.5 * np.random.default_rng(seed + 9).normal(size=400)
        write_letor(
            path,
            X,
            np.digitize(X @ np.roll([1.0, 1.0, 0.0, 0.0], seed) + noise, [0.5, 1.5]),
            np.repeat(np.arange(40), 10),
        )
    first = folder / "first"
    succeeded(
        "tune", days[0], "--name", "shop", "--solver", "RidgeRanker", "--solver", "RankSVM", "--trials", "6",
        "--home", first, "--jobs", "1",
    )  # fmt: skip
    return first, days


def check_killed(folder: Path, kills: int) -> None:
    """Kill it again and again, each time until it has ended once; compare with a run that was never killed."""
    generator, (first, days) = random.Random(kills), begun(folder, 2)
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
    versions = json.loads(succeeded("history", "shop", "--home", home, "--json"))["versions"]
    assert [each["version"] for each in versions] == ["shop", "new"]


def check_changed(folder: Path, kills: int, seed: int) -> None:
    """Kill it again and again, the file of the day with the data of any day; compare with runs on these alone."""
    generator, (first, days) = random.Random(seed), begun(folder, 4)
    known = [retuned(Path(shutil.copytree(first, folder / f"alone{k}")), day) for k, day in enumerate(days)]
    killed = refused = 0
    home, today = Path(shutil.copytree(first, folder / "home")), folder / "today.txt"
    while killed < kills:
        which = generator.randrange(1, len(days))
        shutil.copyfile(days[which], today)
        os.utime(today, (1e9, 1e9))
        found = retuned(home, today, generator.uniform(*MOMENTS), generator.choice(["new", None]))
        killed += found is None
        refused += found == {}
        expected = known[which]
        if found and expected:
            _check_same(found, expected)
            shutil.rmtree(home)
            shutil.copytree(first, home)
    print(f"seed {seed}: {killed} kills, {refused} refused")


def _check_same(found: dict[str, Any], known: dict[str, Any]) -> None:
    assert found["decision"] == known["decision"] and found["configuration"] == known["configuration"]
    for name, mean in known["means"].items():
        assert found["means"][name] == pytest.approx(mean, abs=1e-9)


def test_a_retuning_that_is_killed_goes_on(tmp_path: Path) -> None:
    check_killed(tmp_path, 4)


@pytest.mark.slow
def test_sixty_kills_of_a_retuning(tmp_path: Path) -> None:
    check_killed(tmp_path, 60)


@pytest.mark.slow
def test_forty_kills_with_other_data_in_between(tmp_path: Path) -> None:
    check_changed(tmp_path, int(os.environ.get("KILLS", "40")), int(os.environ.get("SEED", "0")))
