"""What a user waits for: what commands take, and what a study takes beside fits.

A request is what happens between the end of a trial and the begin of the next, in processor time.
"""

from __future__ import annotations

import math
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial

from ranktune.solvers.core.errors import StudyError
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, judged
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.search.searches import Search
from ranktune.tuner.storage.attributes import SECONDS, VARIANCE
from ranktune.tuner.study.declaration import Study

ANSWER = "Use "
"""How the first line of the conclusion of a study begins."""


@dataclass(frozen=True)
class CommandTimes:
    """The processor and the wall seconds of a command, and those until it printed a conclusion; NaN without one."""

    cpu: float
    wall: float
    answer: float


def times_of(command: list[str], folder: Path) -> CommandTimes:
    """Return what a command of ranktune takes that keeps its files in a folder.

    Raises StudyError where it fails.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"RANKTUNE_CACHE": str(folder), "RANKTUNE_HOME": str(folder / "home")}
    begun, before, answer, printed = time.perf_counter(), _of_children(), math.nan, list[str]()
    with subprocess.Popen(
        [sys.executable, "-m", "ranktune", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            printed.append(line)
            if math.isnan(answer) and line.startswith(ANSWER):
                answer = time.perf_counter() - begun
    if process.returncode:
        raise StudyError(f"ranktune {shlex.join(command)} failed: {''.join(printed[-1:])}")
    return CommandTimes(_of_children() - before, time.perf_counter() - begun, answer)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


REQUESTS = {30: 0.005, 100: 0.005, 300: 0.005, 1000: 0.020}
"""Seconds that a request may take, by the number of observations."""


def request_seconds(solvers: Sequence[str], n: int, repeats: int = 10) -> list[float]:
    """Return the processor seconds of requests after n trials: refits of hyperparameters are in their mean."""
    space, generator = Study(solvers=tuple(solvers)).union_space(), np.random.default_rng(0)
    search, asked = Search("", space, learns=True), []
    for k in range(n + repeats):
        begun = time.process_time()
        sampler = (
            RandomSampler(seed=k) if k < n else make_sampler("thompson", seed=0, number=k, space=space, costs=True)
        )
        trial, params = search.ask(sampler, None)
        asked.append(time.process_time() - begun)
        attrs = {SECONDS: generator.uniform(1.0, 10.0), VARIANCE: generator.uniform(0.01, 0.02)}
        numbers = [abs(value) for value in params.values() if isinstance(value, float | int)]
        value = float(np.tanh(np.log1p(numbers).sum() / 10.0) + 0.03 * generator.normal())
        distributions = {name: space.distributions[name] for name in params}
        state = TrialState.COMPLETE
        done = create_trial(state=state, value=value, params=params, distributions=distributions, user_attrs=attrs)
        search.tell(trial, done, [done])
    return asked[n:]


def study_cost(solvers: str = "RidgeRanker") -> list[BenchmarkTable]:
    """Measure what a study takes between its trials: requests.

    Parameters
    ----------
    solvers : str
        Of the requests, separated by commas.
    """
    rows: list[Row] = []
    for n, limit in REQUESTS.items():
        spent = request_seconds(solvers.split(","), n)
        mean = statistics.mean(spent)
        times = {"mean ms": 1e3 * mean, "median ms": 1e3 * statistics.median(spent)}
        rows.append(judged({"observations": n, **times}, f"mean ms <= {1e3 * limit:g}"))
    note = "What met says is of the mean, with refits."
    return [BenchmarkTable(f"Processor time of a request, {solvers}", rows, note)]
