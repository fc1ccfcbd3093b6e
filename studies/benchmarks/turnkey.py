"""RankTune against other whole tools at equal time: on LETOR folders, compared on test queries.

Each tool has a new process of one thread on each fold, and a number of seconds for all its tuning. Run this on an idle
machine, with one run before that does not count: RankTune compiles its kernels at first use and caches them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.studies.benchmarks.peers import METRIC, PEERS, check_installed
from ranktune.studies.benchmarks.turnkey_cells import FOLDS, METRICS, Finished, Results, planned, run_all
from ranktune.studies.papers.reproduce import load_datasets
from ranktune.tuner.statistics.intervals import randomisation_test

OURS = "ranktune"
TARGETS = {"MQ2008": 0.700, "OHSUMED": 0.460}
"""Our targets of the mean test NDCG@10 over the published folds."""

OPTIMISM = 0.01  # the estimate may be this far from the test value, on the mean of the folds
SIGNIFICANT = 0.05
LATE = 1.05  # our longest run may take this many times the seconds


@dataclass(frozen=True)
class Comparison:
    """Difference of METRIC to a rival, paired by query, on the folds that both ran, data sets pooled.

    difference  the mean over queries; p_value: two-sided, of the randomisation test
    wins, losses  folds whose mean is higher, or lower, than the rival's
    """

    rival: str
    queries: int
    difference: float
    p_value: float
    wins: int
    losses: int


@dataclass(frozen=True)
class Verdict:
    """A target, the value found, and whether it meets the target."""

    what: str
    wanted: str
    found: str
    met: bool


def summary(results: Results, data: str, rival: str) -> Json:
    """Return a rival's means over the folds and seeds of a data set.

    optimism is its estimate less the test value, lateness the longest run's time as a multiple of the given seconds,
    inside_interval the number of runs whose test value is within their interval for so few test queries.
    """
    cells = [finished for key, finished in results.items() if (key[0], key[2]) == (data, rival)]
    inside = [bool(finished.inside) for finished in cells if finished.inside is not None]
    tried = [f.tried for f in cells if f.tried is not None]
    return {
        "data": data,
        "rival": rival,
        "folds": len({finished.cell.fold for finished in cells}),
        "runs": len(cells),
        **{metric: float(np.mean([finished.mean(metric) for finished in cells])) for metric in METRICS},
        "optimism": float(np.mean([finished.estimate - finished.mean() for finished in cells])),
        "inside_interval": sum(inside) if inside else None,
        "seconds": float(np.mean([finished.used for finished in cells])),
        "lateness": max(finished.used / finished.cell.seconds for finished in cells),
        "tried": float(np.mean(tried)) if tried else None,
    }


def compared(results: Results, rival: str) -> Comparison | None:
    """Return the comparison with a rival over all queries of the folds that both ran; None where there are none.

    A query's value is the mean over the seeds that both ran, which removes the variance of single runs.
    """
    folds: dict[tuple[str, str], list[tuple[Floats, Floats]]] = {}
    for (data, fold, name, seed), theirs in results.items():
        if name == rival and (data, fold, OURS, seed) in results:
            ours = results[data, fold, OURS, seed]
            folds.setdefault((data, fold), []).append((ours.values[METRIC], theirs.values[METRIC]))
    if not folds:
        return None
    means = [np.mean(pairs, axis=0) for pairs in folds.values()]
    ours_all, theirs_all = np.concatenate(means, axis=1)
    difference = ours_all - theirs_all
    return Comparison(
        rival,
        int(np.count_nonzero(~np.isnan(difference))),
        float(np.nanmean(difference)),
        randomisation_test(ours_all, theirs_all, np.random.default_rng(0)),
        sum(bool(np.nanmean(a) > np.nanmean(b)) for a, b in means),
        sum(bool(np.nanmean(a) < np.nanmean(b)) for a, b in means),
    )


def verdicts(rows: Sequence[Json], comparisons: Sequence[Comparison]) -> Iterator[Verdict]:
    """Yield our targets with the values found; those of quality only where all published folds were run."""
    for row in (row for row in rows if row["rival"] == OURS):
        target = TARGETS.get(row["data"])
        if target is not None and row["folds"] == FOLDS:
            found = row[METRIC]
            yield Verdict(f"{row['data']}: mean test {METRIC}", f">= {target:.3f}", f"{found:.4f}", found >= target)
        off = row["optimism"]
        what = f"{row['data']}: estimate less test"
        yield Verdict(what, f"within {OPTIMISM:g}", f"{off:+.4f}", abs(off) <= OPTIMISM)
        late = row["lateness"]
        yield Verdict(f"{row['data']}: longest run, of its time", f"<= {LATE:g}", f"{late:.2f}", late <= LATE)
    for one in comparisons:
        met = one.p_value < SIGNIFICANT and one.difference > 0.0
        found = f"{one.difference:+.4f}, p = {one.p_value:.4f}"
        yield Verdict(f"better than {one.rival}", f"p < {SIGNIFICANT:g}", found, met)


def main(
    folders: Annotated[list[Path], typer.Argument(help="LETOR folders: Fold1 ... each with train, vali and test.txt.")],
    seconds: Annotated[float, typer.Option(help="Wall time of a tool on a fold.", min=0.1)] = 60.0,
    rival: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(PEERS)}. Repeatable. (default: all)")] = None,
    fold: Annotated[list[str] | None, typer.Option(help="A fold, such as Fold1. Repeatable. (default: all)")] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Given to every rival. Repeatable: means over seeds are compared.", min=0)
    ] = None,
    split_seed: Annotated[
        int | None,
        typer.Option(
            help="Deal all queries at random by this seed into five new folds 3:1:1, to check decisions that were made "
            "on the published folds.",
            min=0,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    keep_in: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            help="Append results to this file (JSON lines), and do not repeat those in it. Use another file after a "
            "change of the code that leaves the version as it is.",
        ),
    ] = None,
) -> None:
    """Compare whole tools at equal time by their models' values on test queries."""
    rivals, seeds = list(dict.fromkeys(rival or PEERS)), list(dict.fromkeys(seed or [0]))
    for name in rivals:
        if name not in PEERS:
            raise ParameterError(f"there is no rival '{name}'. {nearest(name, PEERS)}")
        check_installed(name)
    plan = list(planned(load_datasets(folders), rivals, fold or (), seconds, seeds, split_seed))
    results = run_all(plan, keep_in, lambda line: typer.echo(line, err=True))
    rows = [summary(results, data, name) for data in dict.fromkeys(key[0] for key in results) for name in rivals]
    comparisons = [one for name in rivals if name != OURS and (one := compared(results, name)) is not None]
    found = list(verdicts([row | ({"folds": 0} if split_seed is not None else {}) for row in rows], comparisons))
    if as_json:
        plain = {"seconds": seconds, "seeds": seeds, "split_seed": split_seed, "rows": rows}
        plain |= {"comparisons": [asdict(one) for one in comparisons], "verdicts": [asdict(one) for one in found]}
        typer.echo(json.dumps(plain | {"cells": [_cell(finished) for finished in results.values()]}, indent=1))
        return
    partition = "published folds" if split_seed is None else f"folds dealt by seed {split_seed}"
    for table in _tables(
        rows, comparisons, found, f"{seconds:g} s a fold, seed {', '.join(map(str, seeds))}, {partition}"
    ):
        Console(width=120).print(table)


def _cell(finished: Finished) -> Json:
    """Return a cell with its means in place of the values of queries."""
    return asdict(replace(finished, values={})) | {"values": {metric: finished.mean(metric) for metric in METRICS}}


def _tables(
    rows: Sequence[Json], comparisons: Sequence[Comparison], found: Sequence[Verdict], how: str
) -> Iterator[Table]:
    for data in dict.fromkeys(row["data"] for row in rows):
        table = _table(f"{data}: test queries, means over folds and seeds ({how})", "rival", *METRICS)
        for name in ("estimate - test", "in interval", "configurations", "seconds"):
            table.add_column(name, justify="right")
        for row in (row for row in rows if row["data"] == data):
            inside = "-" if row["inside_interval"] is None else f"{row['inside_interval']} of {row['runs']}"
            tried = "-" if row["tried"] is None else f"{row['tried']:.0f}"
            figures = [f"{row[metric]:.4f}" for metric in METRICS]
            table.add_row(row["rival"], *figures, f"{row['optimism']:+.4f}", inside, tried, f"{row['seconds']:.1f}")
        yield table
    if comparisons:
        table = _table(f"{OURS} less a rival, {METRIC}, paired by query, all data pooled", "rival", "queries")
        for name in ("difference", "p (randomisation)", "folds won", "lost"):
            table.add_column(name, justify="right")
        for one in comparisons:
            figures = [f"{one.difference:+.4f}", f"{one.p_value:.4f}"]
            table.add_row(one.rival, str(one.queries), *figures, str(one.wins), str(one.losses))
        yield table
    if found:
        table = _table("wanted of ranktune", "what", "wanted", "found", "met")
        for verdict in found:
            table.add_row(verdict.what, verdict.wanted, verdict.found, "yes" if verdict.met else "NO")
        yield table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
