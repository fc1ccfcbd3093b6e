"""What a model is worth day by day: tuned once, refitted, tuned anew, or retuned with a tenth of the budget.

Every way is judged on further queries of the same day, of which it has seen none. Refitted is the configuration of the
first day. Retuning keeps, refits or replaces; where nothing moves it should keep.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import ranktune
from ranktune.daily.retuning import retune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model
from ranktune.studies.benchmarks.days.generated import MOVES, queries_of, turn_of
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.retuning.versions import make_current
from ranktune.tuner.runner.retuning_stage import REFITTED
from ranktune.tuner.workers.executor import InProcess

ONCE, REFIT, FULL, DAILY = "tuned once", "refit only", "full study daily", "retuned daily"
WAYS = (ONCE, REFIT, FULL, DAILY)
METRIC, NAME = "ndcg@10", "stream"


@dataclass(frozen=True)
class Setting:
    """The size of a stream."""

    days: int
    queries: int
    test: int
    trials: int
    solvers: Sequence[str]


@dataclass(frozen=True)
class Stream:
    """What each way scored on each day after the first, and the decisions of retuning."""

    scores: Mapping[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    decisions: list[str] = field(default_factory=list)


def streamed(move: str, seed: int, setting: Setting) -> Stream:
    """Run one stream in a temporary folder."""
    stream, generator = Stream(), np.random.default_rng([seed, MOVES.index(move)])
    with tempfile.TemporaryDirectory() as folder:
        daily, first = Path(folder, "daily"), Path(folder, "first")
        begun = _tuned(queries_of(0.0, setting.queries, generator), NAME, daily, setting, seed).best_model
        shutil.copytree(daily, first)
        for day in range(1, setting.days):
            turn = turn_of(move, day, setting.days)
            data, test = (queries_of(turn, count, generator) for count in (setting.queries, setting.test))
            again = retune(NAME, data, version=f"day{day}", trials=1, executor=InProcess(), home=first)
            make_current(first, NAME, NAME)  # what is refitted is the configuration of the first day
            done = retune(NAME, data, version=f"day{day}", executor=InProcess(), home=daily)
            models = {
                ONCE: begun,
                REFIT: ranktune.load_model(Path(again.result.folder) / REFITTED),
                FULL: _tuned(data, f"full{day}", Path(folder, "full"), setting, seed).best_model,
                DAILY: ranktune.load_model(done.model),
            }
            for way, model in models.items():
                stream.scores[way].append(_score(model, test))
            stream.decisions.append(done.decision)
    return stream


def _tuned(data: Queries, name: str, home: Path, setting: Setting, seed: int) -> StudyResult:
    return ranktune.tune(
        data, name=name, metric=METRIC, solvers=list(setting.solvers), trials=setting.trials, seed=seed,
        executor=InProcess(), home=home,
    )  # fmt: skip


def _score(model: Model, test: Queries) -> float:
    values: Floats = parse_metric(METRIC).per_query(model.predict(test), test)
    return float(np.nanmean(values))


def table_of(streams: Mapping[str, Sequence[Stream]]) -> Table:
    """Return the means of all ways by movement, and the decisions."""
    rows: list[Row] = []
    for move, several in streams.items():
        means = {way: float(np.mean([stream.scores[way] for stream in several])) for way in WAYS}
        counts = Counter(decision for stream in several for decision in stream.decisions)
        gap = means[DAILY] - means[FULL]
        decided = {name: f"{counts[name] / counts.total():.0%}" for name in ("keep", "refit", "replace")}
        rows.append({"truth": move, **means, "retuned less full": gap, **decided})
    note = f"Mean {METRIC} on further queries of each day. The last columns are the decisions of retuning."
    return Table("Every day", rows, note)


def main(
    days: Annotated[int, typer.Option(help="Days of a stream.", min=2)] = 30,
    move: Annotated[list[str] | None, typer.Option(help=f"{', '.join(MOVES)}. Repeatable. (default: all)")] = None,
    seeds: Annotated[int, typer.Option(help="Streams of each kind.", min=1)] = 1,
    queries: Annotated[int, typer.Option(help="Queries of a day.", min=20)] = 100,
    test: Annotated[int, typer.Option(help="Further queries that judge a day.", min=20)] = 400,
    trials: Annotated[int, typer.Option(help="Trials of a full study.", min=1)] = 20,
    solver: Annotated[list[str] | None, typer.Option(help="Solvers. Repeatable. (default: three linear ones)")] = None,
) -> list[Table]:
    """Compare tuning once, refitting, a full study and retuning, day by day, where the truth moves or does not."""
    for each in move or ():
        if each not in MOVES:
            raise ParameterError(f"unknown movement '{each}'. {nearest(each, MOVES)}")
    setting = Setting(days, queries, test, trials, solver or ("RidgeRanker", "RankSVM", "ListNet"))
    streams = {each: [streamed(each, seed, setting) for seed in range(seeds)] for each in move or MOVES}
    return [table_of(streams)]
