"""Configurations of boosted rankers on many tasks, compared on test queries; bags of them without further fits.

Each configuration is fitted once a seed on each fold, and its scores of the test documents are kept, of which bags are
made. A query's value is the mean over seeds. Processor seconds are those of the fit alone.
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import ranktune
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import ParameterError, RankTuneError, StudyError, nearest
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.boosting.variants import MOST_ROUNDS, VARIANTS, averaged, chosen, fitted
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Cell, Finished, Results, fingerprint_of, run_all
from ranktune.studies.benchmarks.turnkey.command import Data, Drop, Folds, KeptIn, Qid, Tasks, cases_of, read_options
from ranktune.studies.benchmarks.turnkey.peers import METRIC, given, with_validation
from ranktune.studies.benchmarks.turnkey.results import SIGNIFICANT, compared
from ranktune.tuner.statistics.comparisons import holm
from ranktune.tuner.statistics.intervals import randomisation_test

NEXT_SEED = 1000
"""What the seeds of the members of a bag differ by."""
_VARIANTS = (
    'A variant, or NAME=JSON such as a={"solver": "LambdaMART", "leaves": 8} or b={"bag": {"a": 4}}. Repeatable. '
    f"Known: {', '.join(VARIANTS)}. (default: all)"
)


def main(
    data: Data = None,
    task: Tasks = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(help=_VARIANTS),
    ] = None,
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
    return [*tables(results, first), *_failed(failures)]


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
        rows = _by_task(results, name, reference, tasks)
        summary.append(_over_tasks(results, name, rows, tasks))
        if name != reference and rows:
            adjusted = holm([float(row["p"]) for row in rows])
            shown = [
                {
                    **row, "mean": f"{row['mean']:.4f}", "difference": f"{row['difference']:+.4f}",
                    "p": f"{row['p']:.4f}", "Holm": f"{p or 0.0:.4f}",
                }
                for row, p in zip(rows, adjusted, strict=True)
            ]  # fmt: skip
            by_task.append(Table(f"{name} less {reference}, {METRIC}, paired by query", shown))
    note = f"p over tasks; won and lost: tasks, in brackets those with Holm's p over queries below {SIGNIFICANT:g}."
    return [Table(f"{METRIC} on test queries, less {reference}", summary, note), *by_task]


def _by_task(results: Results, name: str, reference: str, tasks: Sequence[str]) -> list[Json]:
    rows = []
    for task in tasks:
        comparison = compared(results, reference, [task], ours=name)
        if comparison is not None:
            cells = _cells(results, name, task)
            mean, seconds, trees = (
                float(np.mean([value(cell) for cell in cells]))
                for value in (Finished.mean, lambda cell: cell.used, lambda cell: cell.detail["trees"])
            )
            row = {"task": task, "queries": comparison.queries, "mean": mean, "difference": comparison.difference}
            rows.append(row | {"p": comparison.p_value, "s": seconds, "trees": round(trees)})
    return rows


def _cells(results: Results, name: str, task: str) -> list[Finished]:
    return [finished for key, finished in results.items() if (key[0], key[2]) == (task, name)]


def _over_tasks(results: Results, name: str, rows: Sequence[Mapping[str, float]], tasks: Sequence[str]) -> Row:
    """Return the mean of a variant over the tasks that it and the reference have, and its difference."""
    differences = np.array([row["difference"] for row in rows])
    adjusted = [p or 0.0 for p in holm([row["p"] for row in rows])]
    row: Json = {"variant": name, "tasks": len(rows)}
    if not rows:
        return row
    p = randomisation_test(differences, np.zeros(len(rows)), np.random.default_rng(0))
    for what, sign in (("won", 1.0), ("lost", -1.0)):
        ahead = differences * sign > 0.0
        row[what] = f"{ahead.sum()} ({(ahead & (np.array(adjusted) < SIGNIFICANT)).sum()})"
    row |= {"mean": f"{np.mean([row['mean'] for row in rows]):.4f}", "difference": f"{differences.mean():+.4f}"}
    return row | {"p": f"{p:.4f}", "s": float(np.sum([row["s"] for row in rows]))}


def _failed(failures: Sequence[str]) -> list[Table]:
    if not failures:
        return []
    return [Table(f"{len(failures)} cells failed", [{"failure": text} for text in failures], failed=True)]
