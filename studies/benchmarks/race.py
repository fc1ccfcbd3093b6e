"""Regret per second of solving: whole searches with racing and paths against Optuna's TPE with full evaluations.

Every trial is cross-validated. TPE judges each in full, so many; ours goes on until it has used a share of the
processor time for learning and scoring that TPE used. Told is after what part of that time ours had a trial, judged in
full, that was at least as good as the best that TPE found in all of it, seed by seed; and what each had found by then.
A seed is also a dealing into folds; no regret is what the best trial of any search with that seed has. Runs are kept in
a file, so that a comparison can be made in parts.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.studies import catalogue
from ranktune.studies.benchmarks.regret import mann_whitney
from ranktune.tuner.evaluation.archive import cache_folder
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.loop import TrialLoop
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.runner.progress import Silent, TrialReport
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import InProcess

RIVAL = "tpe"
WAYS: dict[str, dict[str, Any]] = {
    RIVAL: {"sampler": "tpe", "full": True},
    "random": {"sampler": "random", "full": True},
    "thompson full": {"full": True},
    "thompson": {},
    "thompson timed": {},
}
"""How a search is run. The last goes by the seconds of trials, as studies with a time do, not by the size of models."""
FOREVER = 1e6
MORE = 5
"""How many times as many trials ours may make in the same time: most are stopped early."""


@dataclass(frozen=True)
class Search:
    """A search: after each trial, the seconds of solving so far and the best value that was judged in full."""

    data: str
    way: str
    seed: int
    trials: int
    seconds: list[float]
    best: list[float]

    def reached(self, value: float) -> float:
        """Return the seconds after which the best was at least value, infinity where it never was."""
        return next((spent for spent, best in zip(self.seconds, self.best, strict=True) if best >= value), np.inf)

    def after(self, seconds: float) -> float:
        """Return the best value that was known after so many seconds; minus infinity before the first."""
        return max(
            (best for spent, best in zip(self.seconds, self.best, strict=True) if spent <= seconds), default=-np.inf
        )


@dataclass
class _Meter:
    """Evaluates tasks until their processor time is used up, and keeps what was spent when each trial was told."""

    budget: float
    spent: float = 0.0
    seconds: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)

    def evaluate(self, task: Task) -> Outcome:
        """Evaluate a task, unless the time is over."""
        if self.spent >= self.budget:
            return Outcome(error="the time is over", given_up=True)
        begun = time.process_time()
        outcome = evaluate(task)
        self.spent += time.process_time() - begun
        return outcome

    def note(self, report: TrialReport) -> None:
        """Take note of a trial that was told."""
        self.seconds.append(round(self.spent, 4))
        self.best.append(-np.inf if report.best is None else report.best)


class _Listening(Silent):
    """Tells a meter."""

    def __init__(self, meter: _Meter) -> None:
        self._meter = meter

    def trial(self, report: TrialReport) -> None:
        """Pass it on."""
        self._meter.note(report)


def search(data: str, way: str, seed: int, trials: int, budget: float, solvers: Sequence[str]) -> Search:
    """Return one search on the first split of data, within budget seconds of solving."""
    options = WAYS[way] | {"data": data, "seed": seed, "trials": trials, "solvers": tuple(solvers)}
    study = Study.from_dict(options)
    meter = _Meter(budget)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "study"
        home.mkdir()
        (problem,) = prepare(study, catalogue.load(data)[:1], StudyFolder(home))
        record = Record(Path(name) / "record", "race", study.metric)
        deadline = Deadline.after(FOREVER if way.endswith("timed") else None)
        TrialLoop(
            study, "", record, Tasks(study, problem.folder), InProcess(), _Listening(meter), meter.evaluate, deadline,
            per_solver=False,
        ).run()  # fmt: skip
        record.close()
    return Search(data, way, seed, trials, meter.seconds, meter.best)


def table(searches: Sequence[Search], data: Sequence[str], ways: Sequence[str], seeds: Sequence[int]) -> str:
    """Return a Markdown table: medians over seeds, with quartiles where they are told."""
    heads = ["data", "search", "seconds", "regret", "to TPE's best, of its time", "regret after a third", "p"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    known = {(one.data, one.way, one.seed): one for one in searches}
    for source in data:
        top = {
            seed: max(one.best[-1] for one in searches if (one.data, one.seed) == (source, seed) and one.best)
            for seed in seeds
            if (source, RIVAL, seed) in known
        }
        rivals = {seed: known[source, RIVAL, seed] for seed in seeds if (source, RIVAL, seed) in known}
        for way in ways:
            own = {seed: known[source, way, seed] for seed in rivals if (source, way, seed) in known}
            if own:
                lines.append(_row(Path(source).name or source, way, own, rivals, top))
    return "\n".join(lines)


def _row(source: str, way: str, own: dict[int, Search], rivals: dict[int, Search], top: dict[int, float]) -> str:
    shares = [one.reached(rivals[seed].best[-1]) / rivals[seed].seconds[-1] for seed, one in own.items()]
    ends = np.array([top[seed] - one.best[-1] for seed, one in own.items()])
    theirs = np.array([top[seed] - rivals[seed].best[-1] for seed in own])
    third = np.array([top[seed] - one.after(rivals[seed].seconds[-1] / 3.0) for seed, one in own.items()])
    spent = [one.seconds[-1] for one in own.values()]
    p = "" if way == RIVAL else f"{mann_whitney(third, theirs):.2g}"
    cells = [source, way, f"{np.median(spent):.1f}", _told(ends), _told(np.array(shares)), _told(third), p]
    return f"| {' | '.join(cells)} |"


def _told(values: Floats) -> str:
    """Return the median with quartiles; of values that may be infinite, those that are in the middle."""
    low, middle, high = (float(np.sort(values)[int(q * (len(values) - 1))]) for q in (0.25, 0.5, 0.75))
    return f"{middle:.3g} [{low:.2g}, {high:.2g}]"


def kept_searches(path: Path) -> list[Search]:
    """Return the searches that a file keeps, none where it is not there."""
    if not path.exists():
        return []
    return [Search(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line]


def main(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Data to search on; of a folder of folds, the first. (default: api-search)"),
    ] = None,
    ways: Annotated[str, typer.Option(help=f"Of {', '.join(WAYS)}, separated by commas; tpe is always there.")] = (
        "thompson,thompson timed"
    ),
    trials: Annotated[int, typer.Option(help="Full evaluations of TPE.", min=2)] = 60,
    seeds: Annotated[int, typer.Option(help="Searches of each way.", min=1)] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of the seeds.", min=0)] = 0,
    solver: Annotated[list[str] | None, typer.Option(help="What competes. (default: the standard ones)")] = None,
    share: Annotated[float, typer.Option(help="Of TPE's time, that the others have.", min=0.01)] = 1.0,
    seconds: Annotated[float, typer.Option(help="Begin no search after so many; those made are kept.", min=0)] = 1e9,
    keep: Annotated[
        Path | None, typer.Option(help="File of the searches made, which are not made again; one in the cache.")
    ] = None,
) -> None:
    """Compare searches by the seconds of solving that they need."""
    sources = data or ["api-search"]
    wanted = [RIVAL, *(way for way in ways.split(",") if way and way != RIVAL)]
    for way in wanted:
        if way not in WAYS:
            raise ParameterError(f"unknown way '{way}'. {nearest(way, WAYS)}")
    path = keep or cache_folder() / "races.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    searches = [one for one in kept_searches(path) if one.trials in (trials, trials * MORE)]
    known = {(one.data, one.way, one.seed): one for one in searches}
    every = range(first_seed, first_seed + seeds)
    begun = time.monotonic()
    for source in sources:
        for seed in every:
            for way in wanted:
                if (source, way, seed) in known or time.monotonic() - begun > seconds:
                    continue
                rival = known.get((source, RIVAL, seed))
                budget = FOREVER if rival is None or WAYS[way].get("full") else share * rival.seconds[-1]
                most = trials if WAYS[way].get("full") else trials * MORE
                known[source, way, seed] = search(source, way, seed, most, budget, solver or ())
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(known[source, way, seed])) + "\n")
    typer.echo(table(list(known.values()), sources, wanted, every))
