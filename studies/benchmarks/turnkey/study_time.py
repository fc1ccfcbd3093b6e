"""Where the time of a study goes: by stage and by solver, by its log of events; and what it takes beside the fits.

A request is what happens between the end of a trial and the begin of the next. The fixed cost is all that a study takes
in a new process, with its imports and its report, beside the fits of its trials. Both are in processor time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.search.searches import Search
from ranktune.tuner.storage.attributes import SECONDS, VARIANCE
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event

READING = "reading"
"""The stage before the first event of a stage."""
STAGE = "stage"
"""The event at the begin of a stage; its field "name" names the stage."""


REQUESTS = {30: 0.005, 100: 0.005, 300: 0.005, 1000: 0.020}
"""Seconds that a request may take, by the number of observations."""
FIXED, EACH = 3.0, 0.002
"""Seconds that a study may take beside the fits, and for each trial."""
STUDY = """
import sys, tempfile, time
from pathlib import Path
import numpy as np
import ranktune
from ranktune.dashboards.web.report import write_report
generator = np.random.default_rng(0)
X = generator.normal(size=(600, 8))
y = np.digitize(X @ generator.normal(size=8) + generator.normal(size=600), (0.3, 1.0, 1.7))
with tempfile.TemporaryDirectory() as home:
    result = ranktune.tune(
        (X, y, np.arange(600) // 10), solvers="RidgeRanker", trials=int(sys.argv[1]), jobs=1, home=home,
    )
    folder = Path(result.folder)
    write_report(folder, folder / "report.html", brief=True)
    spent = time.process_time()
    from ranktune.dashboards.records.study import open_study
    print(spent, sum(trial.seconds for trial in open_study(folder).trials))
"""
"""A study of 600 documents in a new process: prints its processor seconds, and those of the fits of its trials."""


def request_seconds(solvers: Sequence[str], n: int, repeats: int = 10) -> list[float]:
    """Return the processor seconds of requests after n trials: refits of hyperparameters are in their mean."""
    space, generator = Study(solvers=tuple(solvers)).union_space(), np.random.default_rng(0)
    search, taken = Search("", space, learns=True), []
    for k in range(n + repeats):
        begun = time.process_time()
        sampler = (
            RandomSampler(seed=k) if k < n else make_sampler("thompson", seed=0, number=k, space=space, costs=True)
        )
        trial, params = search.ask(sampler, None)
        taken.append(time.process_time() - begun)
        known = {SECONDS: generator.uniform(1.0, 10.0), VARIANCE: generator.uniform(0.01, 0.02)}
        numbers = [abs(value) for value in params.values() if isinstance(value, float | int)]
        value = float(np.tanh(np.log1p(numbers).sum() / 10.0) + 0.03 * generator.normal())
        distributions = {name: space.distributions[name] for name in params}
        state = TrialState.COMPLETE
        done = create_trial(state=state, value=value, params=params, distributions=distributions, user_attrs=known)
        search.tell(trial, done, [done])
    return taken[n:]


def fixed_seconds(trials: int, compiled: Path) -> float:
    """Return the processor seconds of a study in a new process beside the fits of its trials.

    compiled is the folder of the modules' bytecode, which an installed package has beside them.
    """
    command = [sys.executable, "-W", "ignore", "-c", STUDY, str(trials)]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    given["PYTHONPYCACHEPREFIX"] = str(compiled)
    spent, fits = subprocess.run(command, check=True, capture_output=True, text=True, env=given).stdout.split()[-2:]
    return float(spent) - float(fits)


def main(
    solvers: Annotated[str, typer.Option(help="Of the requests, separated by commas.")] = "RidgeRanker",
    rounds: Annotated[int, typer.Option(help="Studies of each size, of which the median counts.", min=1)] = 3,
) -> list[Table]:
    """Measure what a study takes beside its fits: requests, and the fixed cost with imports and report."""
    rows: list[Row] = []
    for n, limit in REQUESTS.items():
        taken = request_seconds(solvers.split(","), n)
        mean = statistics.mean(taken)
        rows.append({
            "observations": n, "mean ms": 1e3 * mean, "median ms": 1e3 * statistics.median(taken),
            "wanted": f"<= {1e3 * limit:g}", "met": mean <= limit,
        })  # fmt: skip
    fixed: list[Row] = []
    with tempfile.TemporaryDirectory() as compiled:
        fixed_seconds(2, Path(compiled))  # what an earlier study leaves: kernels and bytecode
        for trials in (5, 30):
            taken = [fixed_seconds(trials, Path(compiled)) for _ in range(rounds)]
            seconds, limit = statistics.median(taken), FIXED + EACH * trials
            fixed.append({"trials": trials, "s": seconds, "wanted": f"<= {limit:.2f}", "met": seconds <= limit})
    note = (
        "All stages in a new process, with imports and report, beside the fits of trials: 600 documents, RidgeRanker. "
        "Bytecode and machine code are there, as after an earlier study."
    )
    return [
        Table(f"Processor time of a request, {solvers}", rows, "What met says is of the mean, with refits."),
        Table("Processor time of a study beside its fits", fixed, note),
    ]


def seconds_by_stage(events: Sequence[JsonView], begun: float, ended: float) -> dict[str, float]:
    """Return the seconds of each stage of a study that ran from begun to ended (seconds since 1970), in order.

    A stage lasts until the next one begins; stages of one name are added.
    """
    begins = [(min(max(_at(event), begun), ended), str(event["name"])) for event in events if event["event"] == STAGE]
    stages: dict[str, float] = {}
    for (start, name), (end, _) in pairwise([(begun, READING), *begins, (ended, "")]):
        stages[name] = stages.get(name, 0.0) + end - start
    return stages


def time_by_solver(events: Sequence[JsonView]) -> dict[str, Json]:
    """Return what the trials of each solver took, in the order in which the solvers were first tried.

    trials counts those that have ended, pruned and failed ones among them; seconds is the sum of their times from begin
    to end, over all workers; best the highest validation value of a trial in full, None without one.
    """
    solver_of: dict[tuple[object, object], str] = {}
    begun: dict[tuple[object, object], float] = {}
    times: dict[str, Json] = {}
    for event in events:
        kind, trial = event["event"], (event.get("split"), event.get("trial"))
        if kind == Event.ASKED:
            solver_of[trial] = event["params"][SOLVER]
            times.setdefault(solver_of[trial], {"trials": 0, "pruned": 0, "failed": 0, "seconds": 0.0, "best": None})
        elif kind == Event.STARTED:
            begun[trial] = _at(event)
        elif kind in (Event.FINISHED, Event.PRUNED, Event.FAILED) and trial in solver_of:
            time = times[solver_of[trial]]
            time["trials"] += 1
            time["pruned"] += kind == Event.PRUNED
            time["failed"] += kind == Event.FAILED
            time["seconds"] += max(_at(event) - begun.pop(trial, _at(event)), 0.0)
            if kind == Event.FINISHED and event.get("value") is not None:
                time["best"] = event["value"] if time["best"] is None else max(time["best"], event["value"])
    return times


def _at(event: JsonView) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()
