"""Click models on logs of simulated users over real data sets: propensities, rankers, and counterfactual intervals.

Users click by known rules on the pages of a weak ranker. Rankers learn from the judgments of each model, and are tested
on the true grades of the test queries, beside rankers that know all grades.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import ranktune
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.split import Split
from ranktune.studies.benchmarks.cases import seeds_of
from ranktune.studies.benchmarks.clicks.learning import CTR, MODELS, USERS, logging_scores, measured
from ranktune.studies.benchmarks.clicks.outcomes import INTERVALS, LOG, Key, intervals, propensities, rankings
from ranktune.studies.benchmarks.clicks.policies import Pages, coverage, open_bandit
from ranktune.studies.benchmarks.results import add_missing, append_result, stored_results
from ranktune.studies.benchmarks.tables import Table
from ranktune.studies.benchmarks.turnkey.cells import fingerprint_of
from ranktune.studies.benchmarks.turnkey.command import Data, Drop, Folds, KeptIn, Qid, cases_of, read_options


def main(
    data: Data = None,
    fold: Folds = None,
    users: Annotated[
        list[str] | None, typer.Option(help=f"How users click: {'; '.join(USERS)}. Repeatable. (default: all)")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help=f"Besides {CTR}: {', '.join(MODELS[1:])}. Repeatable. (default: all)")
    ] = None,
    sessions: Annotated[int, typer.Option(help="Sessions of a log.", min=1)] = 100_000,
    seeds: Annotated[str, typer.Option(help="Seeds of logs: so many, or first:last without the last.")] = "1",
    replications: Annotated[int, typer.Option(help="Small logs for intervals; 0: none.", min=0)] = 500,
    bandit: Annotated[Path | None, typer.Option(help="A folder of the sample of the Open Bandit Dataset.")] = None,
    qid: Qid = None,
    drop: Drop = None,
    keep_in: KeptIn = None,
) -> list[Table]:
    """Compare click models on logs of users whose behaviour is known."""
    for known_names, what, chosen in ((USERS, "users", users), (MODELS, "model", model)):
        for name in chosen or ():
            if name not in known_names:
                raise ParameterError(f"there are no {what} '{name}'. {nearest(name, known_names)}")
    options: ReadOptions = {"missing": "zero", **read_options(qid, drop)}
    splits = {
        (case.name, split.name): split
        for case in cases_of(data, None, **options)
        for split in case.splits
        if not fold or len(case.splits) == 1 or split.name in fold
    }
    marks = {place: f"{ranktune.__version__} {fingerprint_of(split)}" for place, split in splits.items()}

    models = ",".join(name for name in MODELS if name == CTR or not model or name in model)

    def planned(kind: str, size: int, numbers: Sequence[int]) -> list[Key]:
        every = product(numbers, users or USERS, splits)
        return [
            Key(kind, *place, name, size, seed, models if kind == LOG else "", marks[place])
            for seed, name, place in every
        ]

    def run(key: Key) -> Json:
        found = _run(key, splits[key.data, key.fold])
        append_result(keep_in, {"key": key, "found": found})
        typer.echo(" ".join(map(str, key[:-1])), err=True)
        return found

    logs = planned(LOG, sessions, seeds_of(seeds))
    small = planned(INTERVALS, replications, [0] * (replications > 0))
    known = dict(stored_results(keep_in, lambda line: (Key(*line["key"]), line["found"])))
    add_missing([*small, *logs], known, run)
    results = {key: known[key] for key in [*small, *logs]}
    tables = [*rankings(results), propensities(results), *intervals(results)]
    if bandit is not None:
        note = "agree: whether they differ by less than the interval of their difference."
        tables.append(Table("Clicks an impression of a policy of Open Bandit", list(open_bandit(bandit)), note))
    return tables


def _run(key: Key, split: Split) -> Json:
    """Return what is measured of one log, or of the replications of small logs."""
    users = USERS[key.users]
    if key.kind == LOG:
        return measured(split, users, key.size, key.seed, key.models.split(","))
    train, generator = split.train, np.random.default_rng(key.seed)
    scores = [logging_scores(train, generator)(train) for _ in range(2)]  # of the log's policy and of a new one
    return coverage(Pages.of(train, users, *scores), users, key.size, generator)
