"""Regret per second of evaluation: whole searches with racing and paths against Optuna's TPE with full evaluations.

Every trial is cross-validated. TPE evaluates a given number of trials in full; our search has a share of the processor
time that TPE's evaluations took. The table shows, by seed, the share of that time after which our search had a fully
evaluated trial at least as good as TPE's best, and the regrets. A seed also determines the folds; the best trial of any
search with the same seed has regret 0. Searches are stored in a file, so that a comparison can be made in parts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files import private_folder
from ranktune.solvers.data.sources import catalogue
from ranktune.studies.benchmarks.results import add_missing, append_result, stored_results
from ranktune.studies.benchmarks.search.regret import mann_whitney, quartiles
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import InProcess

RIVAL = "tpe"
WAYS: dict[str, dict[str, str | bool]] = {
    RIVAL: {"sampler": "tpe", "full": True},
    "random": {"sampler": "random", "full": True},
    "thompson full": {"full": True},
    "thompson": {},
    "thompson timed": {},
}
"""Options of a search. "timed" ones weigh trials by their seconds, as studies with a deadline do, not by size."""
FOREVER = 1e6
MORE = 5
"""Our searches may have this many times as many trials as TPE in the same time: most are stopped early."""


@dataclass(frozen=True)
class Search:
    """A search: after each trial, the seconds of evaluation so far and the best fully evaluated value."""

    data: str
    way: str
    seed: int
    trials: int
    seconds: list[float]
    best: list[float]

    def reached(self, value: float) -> float:
        """Return the seconds after which the best was at least value, or infinity."""
        return next((spent for spent, best in zip(self.seconds, self.best, strict=True) if best >= value), np.inf)

    def after(self, seconds: float) -> float:
        """Return the best value after so many seconds; minus infinity before the first."""
        return max(
            (best for spent, best in zip(self.seconds, self.best, strict=True) if spent <= seconds), default=-np.inf
        )


@dataclass
class _Meter:
    """Evaluates tasks until the budget of processor time is spent, and records the time spent after each trial."""

    budget: float
    spent: float = 0.0
    seconds: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)

    def evaluate(self, task: Task) -> Outcome:
        """Evaluate a task, unless the budget is spent."""
        if self.spent >= self.budget:
            return Outcome(error="the budget of processor time is spent", given_up=True)
        begun = time.process_time()
        outcome = attempt(task)
        self.spent += time.process_time() - begun
        return outcome

    def note(self, report: TrialReport) -> None:
        """Record a finished trial."""
        self.seconds.append(round(self.spent, 4))
        self.best.append(-np.inf if report.best is None else report.best)


class _MeterDisplay(Silent):
    """Passes finished trials to a meter."""

    def __init__(self, meter: _Meter) -> None:
        self._meter = meter

    def trial(self, report: TrialReport) -> None:
        """Record the trial."""
        self._meter.note(report)


def search(data: str, way: str, seed: int, trials: int, budget: float, solvers: Sequence[str]) -> Search:
    """Return one search on the first split of data, within budget seconds of evaluation."""
    study = Study.from_dict({**WAYS[way], "data": data, "seed": seed, "trials": trials, "solvers": tuple(solvers)})
    meter = _Meter(budget)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "study"
        home.mkdir()
        (problem,) = prepare(study, catalogue.load(data)[:1], StudyFolder(home))
        record = Record(Path(name) / "record", "race", study.metric)
        deadline = Deadline.after(FOREVER if way.endswith("timed") else None)
        TrialLoop(
            study, "", record, Tasks(study, problem.folder), InProcess(), _MeterDisplay(meter), meter.evaluate,
            deadline, options=SearchOptions(per_solver=False),
        ).run()  # fmt: skip
        record.close()
    return Search(data, way, seed, trials, meter.seconds, meter.best)


def table(searches: Sequence[Search], data: Sequence[str], ways: Sequence[str], seeds: Sequence[int]) -> Table:
    """Return a table of medians over seeds, with quartiles."""
    rows: list[Row] = []
    known = {(run.data, run.way, run.seed): run for run in searches}
    for source in data:
        top = {
            seed: max(run.best[-1] for run in searches if (run.data, run.seed) == (source, seed) and run.best)
            for seed in seeds
            if (source, RIVAL, seed) in known
        }
        rivals = {seed: known[source, RIVAL, seed] for seed in seeds if (source, RIVAL, seed) in known}
        for way in ways:
            by_seed = {seed: known[source, way, seed] for seed in rivals if (source, way, seed) in known}
            if by_seed:
                rows.append(_row(Path(source).name or source, way, by_seed, rivals, top))
    return Table(f"Searches of {len(seeds)} seeds: medians [quartiles]", rows)


def _row(source: str, way: str, by_seed: dict[int, Search], rivals: dict[int, Search], top: dict[int, float]) -> Row:
    shares = [run.reached(rivals[seed].best[-1]) / rivals[seed].seconds[-1] for seed, run in by_seed.items()]
    ends = np.array([top[seed] - run.best[-1] for seed, run in by_seed.items()])
    of_rival = np.array([top[seed] - rivals[seed].best[-1] for seed in by_seed])
    third = np.array([top[seed] - run.after(rivals[seed].seconds[-1] / 3.0) for seed, run in by_seed.items()])
    spent = [run.seconds[-1] for run in by_seed.values()]
    return {
        "data": source, "search": way, "seconds": float(np.median(spent)), "regret": quartiles(ends),
        "to TPE's best, of its time": quartiles(np.array(shares)), "regret after a third": quartiles(third),
        "p": None if way == RIVAL else mann_whitney(third, of_rival),
    }  # fmt: skip


def main(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Data to search on; of a folder of folds, the first. (default: api-search)"),
    ] = None,
    ways: Annotated[str, typer.Option(help=f"Of {', '.join(WAYS)}, separated by commas; tpe is always run.")] = (
        "thompson,thompson timed"
    ),
    trials: Annotated[int, typer.Option(help="Full evaluations of TPE.", min=2)] = 60,
    seeds: Annotated[int, typer.Option(help="Searches of each way.", min=1)] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of the seeds.", min=0)] = 0,
    solver: Annotated[list[str] | None, typer.Option(help="Solvers. (default: the standard ones)")] = None,
    share: Annotated[float, typer.Option(help="Share of TPE's time for the others.", min=0.01)] = 1.0,
    seconds: Annotated[float, typer.Option(help="Start no search after so many seconds.", min=0)] = 1e9,
    keep_in: Annotated[
        Path | None,
        typer.Option("--keep", help="File of finished searches, not repeated. (default: in the cache folder)"),
    ] = None,
) -> list[Table]:
    """Compare searches by the seconds of evaluation that they need."""
    sources = data or ["api-search"]
    wanted = [RIVAL, *(way for way in ways.split(",") if way and way != RIVAL)]
    for way in wanted:
        if way not in WAYS:
            raise ParameterError(f"unknown way '{way}'. {nearest(way, WAYS)}")
    path = keep_in or private_folder() / "races.jsonl"
    known = {
        (run.data, run.way, run.seed): run
        for run in stored_results(path, lambda fields: Search(**fields))
        if run.trials in (trials, trials * MORE)
    }
    every = range(first_seed, first_seed + seeds)

    def run(key: tuple[str, str, int]) -> Search:
        source, way, seed = key
        rival = known.get((source, RIVAL, seed))
        is_full = bool(WAYS[way].get("full"))
        budget = FOREVER if rival is None or is_full else share * rival.seconds[-1]
        finished = search(source, way, seed, trials if is_full else trials * MORE, budget, solver or ())
        append_result(path, asdict(finished))
        return finished

    add_missing(((source, way, seed) for source, seed, way in product(sources, every, wanted)), known, run, seconds)
    return [table(list(known.values()), sources, wanted, every)]
