"""What a model is worth day by day: tuned once, refitted, tuned anew, or retuned with a tenth of the budget.

Every way is judged on further queries of the same day, of which it has seen none. Refitted is the configuration of the
first day. Retuning keeps, refits or replaces; where nothing moves it should keep. Some of the days are judged: those
whose number is a multiple of `every`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import ranktune
from ranktune.daily.retuning import retune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files import private_folder
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model
from ranktune.studies.benchmarks.days.generated import MOVES, World, normal_pool, turn_of
from ranktune.studies.benchmarks.results import append_result, stored_results
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.retuning.versions import make_current
from ranktune.tuner.runner.retuning_stage import REFITTED
from ranktune.tuner.workers.executor import InProcess

ONCE, REFIT, FULL, DAILY = "once", "refit", "full", "retuned"
WAYS = (ONCE, REFIT, FULL, DAILY)
METRIC, NAME = "ndcg@10", "stream"
SOLVERS = "RidgeRanker", "RankSVM", "LambdaMART"


@dataclass(frozen=True)
class Setting:
    """The size of a stream, and how many days it goes on from one that is judged to the next."""

    days: int
    every: int
    queries: int
    test: int
    trials: int
    solvers: tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """What each way scored on the days that are judged, and the decisions of retuning on all days after the first."""

    days: list[int] = field(default_factory=list)
    scores: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    decisions: list[str] = field(default_factory=list)
    key: str = ""


def streamed(pool: Queries | None, move: str, seed: int, setting: Setting, key: str = "") -> Stream:
    """Run one stream in a temporary folder."""
    stream, generator = Stream(key=key), np.random.default_rng([seed, MOVES.index(move)])
    world = World.of(normal_pool(generator) if pool is None else pool, seed)
    with tempfile.TemporaryDirectory() as folder:
        daily, first = Path(folder, "daily"), Path(folder, "first")
        begun = _tuned(world.day(0.0, setting.queries, generator), NAME, daily, setting, seed).best_model
        shutil.copytree(daily, first)
        for day in range(1, setting.days):
            turn = turn_of(move, day, setting.days)
            data = world.day(turn, setting.queries, generator)
            done = retune(NAME, data, version=f"day{day}", executor=InProcess(), home=daily)
            stream.decisions.append(done.decision)
            if day % setting.every:
                continue
            again = retune(NAME, data, version=f"day{day}", trials=1, executor=InProcess(), home=first)
            make_current(first, NAME, NAME)  # what is refitted is the configuration of the first day
            models = {
                ONCE: begun,
                REFIT: ranktune.load_model(Path(again.result.folder) / REFITTED),
                FULL: _tuned(data, f"full{day}", Path(folder, "full"), setting, seed).best_model,
                DAILY: ranktune.load_model(done.model),
            }
            test = world.day(turn, setting.test, generator, judging=True)
            stream.days.append(day)
            for way, model in models.items():
                stream.scores[way].append(_score(model, test))
    return stream


def _tuned(data: Queries, name: str, home: Path, setting: Setting, seed: int) -> StudyResult:
    return ranktune.tune(
        data, name=name, metric=METRIC, solvers=list(setting.solvers), trials=setting.trials, seed=seed,
        executor=InProcess(), home=home,
    )  # fmt: skip


def _score(model: Model, test: Queries) -> float:
    values: Floats = parse_metric(METRIC).per_query(model.predict(test), test)
    return float(np.nanmean(values))


def tables_of(streams: Mapping[tuple[str, str], Sequence[Stream]]) -> list[Table]:
    """Return the means and decisions by data and movement, and the means of each day by movement."""
    rows: list[Row] = []
    for (data, move), several in streams.items():
        gaps = [_mean(stream, DAILY) - _mean(stream, FULL) for stream in several]
        counts = Counter(decision for stream in several for decision in stream.decisions)
        means = {way: float(np.mean([_mean(stream, way) for stream in several])) for way in WAYS}
        error = float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else None
        rows.append({
            "data": data, "truth": move, "streams": len(several), **means, "less full": float(np.mean(gaps)),
            "se": error, "kept": f"{counts['keep'] / counts.total():.0%}",
        })  # fmt: skip
    note = (
        f"Mean {METRIC} on further queries of the days that are judged: tuned once, refitted, a daily full study, "
        "retuned daily. less full: retuned less full; se: its standard error over streams. kept: days without a change."
    )
    by_day: list[Row] = []
    for move in dict.fromkeys(move for _, move in streams):
        some = [stream for (_, other), several in streams.items() if other == move for stream in several]
        for k, day in enumerate(some[0].days):
            scores = {way: float(np.mean([stream.scores[way][k] for stream in some])) for way in WAYS}
            by_day.append({"truth": move, "day": day, **scores})
    return [Table("Every day", rows, note), Table("By day", by_day, f"Mean {METRIC} of all streams.")]


def _mean(stream: Stream, way: str) -> float:
    return float(np.mean(stream.scores[way]))


def main(
    data: Annotated[
        list[Path] | None, typer.Option(help="Files whose features are used. Repeatable. (default: drawn features)")
    ] = None,
    days: Annotated[int, typer.Option(help="Days of a stream.", min=2)] = 30,
    every: Annotated[int, typer.Option(help="Days from one that is judged to the next.", min=1)] = 3,
    move: Annotated[list[str] | None, typer.Option(help=f"{', '.join(MOVES)}. Repeatable. (default: all)")] = None,
    seeds: Annotated[int, typer.Option(help="Streams of each kind.", min=1)] = 1,
    queries: Annotated[int, typer.Option(help="Queries of a day.", min=20)] = 300,
    test: Annotated[int, typer.Option(help="Further queries that judge a day.", min=20)] = 600,
    trials: Annotated[int, typer.Option(help="Trials of a full study.", min=1)] = 20,
    solver: Annotated[
        list[str] | None, typer.Option(help=f"Solvers. Repeatable. (default: {', '.join(SOLVERS)})")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="File of finished streams, not repeated. (default: in the cache folder)")
    ] = None,
) -> list[Table]:
    """Compare tuning once, refitting, a full study and retuning, day by day, where the truth moves or does not."""
    for each in move or ():
        if each not in MOVES:
            raise ParameterError(f"unknown movement '{each}'. {nearest(each, MOVES)}")
    setting = Setting(days, every, queries, test, trials, tuple(solver or SOLVERS))
    pools: dict[str, Queries | None] = {path.stem: ranktune.read(path) for path in data or ()}
    pools = pools or {"drawn": None}
    kept = keep or private_folder() / "streams.jsonl"
    known = {stream.key: stream for stream in stored_results(kept, lambda fields: Stream(**fields))}
    streams: dict[tuple[str, str], list[Stream]] = {(name, each): [] for name in pools for each in move or MOVES}
    for seed in range(seeds):
        for name, each in streams:
            key = f"{name} {each} {seed} {setting}"
            if key not in known:
                known[key] = streamed(pools[name], each, seed, setting, key)
                append_result(kept, asdict(known[key]))
            streams[name, each].append(known[key])
    return tables_of(streams)
