"""Configurations of boosted rankers on many tasks, compared on test queries; bags of them without further fits.

A configuration is a mapping: solver, the name of a solver of ours, and its parameters; library, parameters that are
passed to its library unchanged. The solvers "lightgbm" and "catboost" are one call of the library, with its defaults.
A bag is {"bag": {name: number of seeds, ...}} of configurations.

Each configuration is fitted once a seed on each fold, and its scores of the test documents are kept, of which bags are
made. A query's value is the mean over seeds. Processor seconds are those of the fit alone.
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import ArrayLike

import ranktune
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.training_queries import TrainingQueries
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import ParameterError, RankTuneError, StudyError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import solver_class
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Cell, Finished, Results, failed, fingerprint_of, run_all
from ranktune.studies.benchmarks.turnkey.command import Data, Drop, Folds, KeptIn, Qid, Tasks, cases_of, read_options
from ranktune.studies.benchmarks.turnkey.peers import METRIC, fitted_catboost, fitted_lightgbm, given, with_validation
from ranktune.studies.benchmarks.turnkey.results import SIGNIFICANT, compared
from ranktune.tuner.statistics.comparisons import holm
from ranktune.tuner.statistics.intervals import randomisation_test

MOST_ROUNDS = 2000
"""Rounds at most where validation queries end boosting."""
NEXT_SEED = 1000
"""What the seeds of the members of a bag differ by."""

VARIANTS: dict[str, Json] = {
    "lambdamart": {"solver": "LambdaMART"},
    "lambdamart-8": {"solver": "LambdaMART", "leaves": 8},
    "smoothed": {"solver": "LambdaMART", "loss": "smoothed"},
    "smoothed-8": {"solver": "LambdaMART", "loss": "smoothed", "leaves": 8},
    "yetirank": {"solver": "LambdaMART", "loss": "yetirank"},
    "yetirank-8": {"solver": "LambdaMART", "loss": "yetirank", "leaves": 8},
    "gbdt": {"solver": "GBDTRanker"},
    "gbdt-linear": {"solver": "GBDTRanker", "start": "linear"},
    "symmetric": {"solver": "SymmetricGBDT"},
    "their-lightgbm": {"solver": "lightgbm"},
    "their-queryrmse": {"solver": "catboost", "loss_function": "QueryRMSE"},
    "lambdamart-x2": {"bag": {"lambdamart": 2}},
    "symmetric-x3": {"bag": {"symmetric": 3}},
    "mixed-x3": {"bag": {"symmetric": 1, "gbdt": 1, "smoothed-8": 1}},
}

_HELP = (
    'A variant, or NAME=JSON such as a={"solver": "LambdaMART", "leaves": 8} or b={"bag": {"a": 4}}. Repeatable. '
    f"Known: {', '.join(VARIANTS)}. (default: all)"
)

Score: TypeAlias = Callable[[Queries], ArrayLike]


def chosen(given: Sequence[str]) -> dict[str, Json]:
    """Return the variants of the names given, of all for none, and those that bags among them consist of.

    NAME=JSON declares one. Raises ParameterError for an unknown name and for an invalid variant.
    """
    known, names = dict(VARIANTS), list[str]()
    for text in given:
        name, declared, value = text.partition("=")
        names.append(name)
        if declared:
            try:
                known[name] = json.loads(value)
            except ValueError:
                raise ParameterError(f"'{value}' is no JSON: give NAME={{\"solver\": ...}}.") from None
    for name in list(names or known):
        members = known.get(name, {}).get("bag", {})
        for wanted in (name, *members):
            variant = known.get(wanted)
            if variant is None:
                raise ParameterError(f"there is no variant '{wanted}'. {nearest(wanted, known)}")
            if not {"solver", "bag"} & set(variant) or (wanted in members and "bag" in variant):
                raise ParameterError(
                    f"the variant '{wanted}' has no solver: give one, or a bag of those that have one."
                )
        names += [member for member in members if member not in names]
    return {name: known[name] for name in names or known}


def fitted(variant: JsonView, train: Queries, vali: Queries | None, rounds: int, seed: int) -> tuple[Score, int]:
    """Fit one configuration; return its scoring function and the number of trees.

    rounds is the number of rounds, or the most of them where vali, by which boosting is stopped, is given.
    """
    parameters = {name: value for name, value in variant.items() if name not in ("solver", "library")}
    if variant["solver"] == "lightgbm":
        fixed = {"n_estimators": rounds, "n_jobs": 1, "random_state": seed}
        booster = fitted_lightgbm(fixed | parameters, train, vali)
        return lambda queries: booster.predict(queries.features), booster.best_iteration_ or booster.n_estimators_
    if variant["solver"] == "catboost":
        model = fitted_catboost(
            {"iterations": rounds, "thread_count": 1, "random_seed": seed} | parameters, train, vali
        )
        return lambda queries: model.predict(queries.features), model.tree_count_
    solver: Any = solver_class(variant["solver"])
    if "library" in variant:
        solver = type(solver.__name__, (_Extended, solver), {"extra": variant["library"]})
    ranker = solver(**{"trees": rounds, "random_state": seed} | parameters).fit(train, vali=vali)
    return ranker.predict, sum(ranker.rounds_)


class _Extended:
    """A boosted ranker whose library gets the parameters extra, too."""

    extra: JsonView

    def _source(self, training: TrainingQueries) -> TrainingData:
        source = super()._source(training)  # type: ignore[misc]
        data: TrainingData = replace(source, parameters={**source.parameters, **self.extra})
        return data


def averaged(members: Sequence[Floats], queries: Queries) -> Floats:
    """Return the mean of scores, each divided by its standard deviation within queries."""
    spreads = [float(np.sqrt(np.mean(without_level(scores, queries) ** 2))) for scores in members]
    scaled = [scores / (spread or 1.0) for scores, spread in zip(members, spreads, strict=True)]
    return np.asarray(np.mean(scaled, axis=0))


def main(
    data: Data = None,
    task: Tasks = None,
    variant: Annotated[list[str] | None, typer.Option(help=_HELP)] = None,
    reference: Annotated[str | None, typer.Option(help="The variant to compare with. (default: the first)")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of all; 0: until validation queries end them.", min=0)] = 0,
    seed: Annotated[
        list[int] | None, typer.Option(help="Repeatable: means over seeds are compared. (default: 0)", min=0)
    ] = None,
    fold: Folds = None,
    qid: Qid = None,
    drop: Drop = None,
    keep_in: KeptIn = None,
) -> list[Table]:
    """Compare configurations of boosted rankers on many tasks."""
    variants = chosen(variant or ())
    first = reference or next(iter(variants))
    if first not in variants:
        raise ParameterError(f"the reference '{first}' is none of the variants. {nearest(first, variants)}")
    seeds, splits = list(dict.fromkeys(seed or [0])), dict[tuple[str, str], Split]()
    for case in cases_of(data, task, **read_options(qid, drop)):
        kept = [split for split in case.splits if not fold or split.name in fold]
        splits |= {(case.name, split.name): with_validation(split.allowing_missing()) for split in kept}
    plan: dict[tuple[str, str, str, int], Cell] = {}
    for (name, part), split in splits.items():
        mark = fingerprint_of(split)
        for each, settings in variants.items():
            for member, member_seed in _members(each, settings, seeds):
                text = json.dumps({"rounds": rounds, **variants[member]}, sort_keys=True)
                key = name, part, member, member_seed
                plan[key] = Cell(name, part, text, 0.0, 1, member_seed, None, ranktune.__version__, mark)
    cells = {cell: splits[key[:2]] for key, cell in plan.items()}
    with tempfile.TemporaryDirectory(prefix="ranktune-boosting-") as folder:
        path = keep_in or Path(folder) / "cells.jsonl"
        run = partial(_run, rounds=rounds)
        done, failures = run_all(list(cells.items()), path, lambda line: typer.echo(line, err=True), run)
    by_cell = {finished.cell: finished for finished in done}
    known = {key: by_cell[cell] for key, cell in plan.items() if cell in by_cell}
    results: Results = {}
    for (name, part), split in splits.items():
        for each, settings in variants.items():
            for first_seed in seeds:
                keys = [(name, part, *member) for member in _members(each, settings, [first_seed])]
                if all(key in known for key in keys):
                    results[name, part, each, first_seed] = _together([known[key] for key in keys], split)
    return [*tables(results, first), *failed(failures, len(cells))]


def _members(name: str, variant: JsonView, seeds: Sequence[int]) -> list[tuple[str, int]]:
    """Return the configurations and seeds that a variant consists of: itself, or the members of a bag."""
    return [
        (member, seed + NEXT_SEED * k)
        for seed in seeds
        for member, count in variant.get("bag", {name: 1}).items()
        for k in range(count)
    ]


def _run(cell: Cell, split: Split, rounds: int) -> Finished:
    """Fit the configuration of a cell and evaluate it. Raises StudyError where it cannot be fitted."""
    variant: Json = json.loads(cell.rival)
    rounds = variant.pop("rounds")
    train, vali, test = split.train, given(split, "vali"), given(split, "test")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            few = train.select(np.arange(min(train.n_queries, 10)))
            fitted(variant, few, None, 2, cell.seed)  # imports and compiles, which does not count
            begun = time.process_time()
            score, trees = fitted(variant, train, None if rounds else vali, rounds or MOST_ROUNDS, cell.seed)
            seconds = time.process_time() - begun
        scores = np.asarray(score(test), dtype=np.float32)
        estimate = parse_metric(METRIC).mean(np.asarray(score(vali), dtype=np.float64), vali)
    except (RankTuneError, ImportError, ValueError, TypeError) as error:
        raise StudyError(str(error)) from error
    text = base64.b64encode(scores.tobytes()).decode()
    return Finished(cell, _values(scores, split), seconds, estimate, detail={"trees": trees, "scores": text})


def _values(scores: np.ndarray[tuple[int], np.dtype[np.floating]], split: Split) -> dict[str, Floats]:
    test = given(split, "test")
    return {metric: parse_metric(metric).per_query(scores.astype(np.float64), test) for metric in METRICS}


def _together(members: Sequence[Finished], split: Split) -> Finished:
    """Return the result of a bag of finished cells, whose time is the sum of theirs."""
    if len(members) == 1:
        return members[0]
    every = [np.frombuffer(base64.b64decode(each.detail["scores"]), dtype=np.float32) for each in members]
    scores = averaged([each.astype(np.float64) for each in every], given(split, "test"))
    used, trees = sum(each.used for each in members), sum(each.detail["trees"] for each in members)
    return replace(members[0], values=_values(scores, split), used=used, detail={"trees": trees})


def tables(results: Results, reference: str) -> list[Table]:
    """Return the variants over all tasks, and a table of each by task, less the reference."""
    tasks, names = list(dict.fromkeys(key[0] for key in results)), list(dict.fromkeys(key[2] for key in results))
    summary: list[Row] = []
    by_task = []
    for name in names:
        rows = [row for task in tasks if (row := _on_task(results, name, reference, task)) is not None]
        adjusted = [p or 0.0 for p in holm([row["p"] for row in rows])]
        summary.append({"variant": name, "tasks": len(rows), **(_over_tasks(rows, adjusted) if rows else {})})
        if name != reference and rows:
            shown = [row | {"Holm": p} for row, p in zip(rows, adjusted, strict=True)]
            by_task.append(Table(f"{name} less {reference}, {METRIC}, paired by query", list(map(_shown, shown))))
    note = f"p over tasks; won and lost: tasks, in brackets those with Holm's p over queries below {SIGNIFICANT:g}."
    return [Table(f"{METRIC} on test queries, less {reference}", list(map(_shown, summary)), note), *by_task]


def _on_task(results: Results, name: str, reference: str, task: str) -> Json | None:
    comparison = compared(results, reference, [task], ours=name)
    if comparison is None:
        return None
    cells = [finished for key, finished in results.items() if (key[0], key[2]) == (task, name)]
    mean, seconds, trees = np.mean([(cell.mean(), cell.used, cell.detail["trees"]) for cell in cells], axis=0).tolist()
    row = {"task": task, "queries": comparison.queries, "mean": mean, "difference": comparison.difference}
    return row | {"p": comparison.p_value, "s": seconds, "trees": round(trees)}


def _over_tasks(rows: Sequence[Json], adjusted: Sequence[float]) -> Json:
    """Return the mean of a variant over the tasks that it and the reference have, and its difference."""
    differences, clear = np.array([row["difference"] for row in rows]), np.array(adjusted) < SIGNIFICANT
    ahead = {"won": differences > 0.0, "lost": differences < 0.0}
    return {
        **{what: f"{each.sum()} ({(each & clear).sum()})" for what, each in ahead.items()},
        "mean": float(np.mean([row["mean"] for row in rows])),
        "difference": float(differences.mean()),
        "p": randomisation_test(differences, np.zeros(len(rows)), np.random.default_rng(0)),
        "s": float(np.sum([row["s"] for row in rows])),
    }


def _shown(row: Row) -> Row:
    """Return a row whose means, differences and p-values have four decimals."""
    forms = {"mean": ".4f", "difference": "+.4f", "p": ".4f", "Holm": ".4f"}
    return {name: f"{value:{forms[name]}}" if name in forms else value for name, value in row.items()}
