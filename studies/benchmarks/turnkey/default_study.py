"""The default study: how long `ranktune tune` takes on the example data, and what its model is worth beside others.

Each study is a command in a new process. The first begins with an empty cache, in which it compiles the kernels; the
others, of one seed each, find them there. The peers get the same training and validation queries and as many threads as
the machine has cores: single calls, which stop early by validation NDCG@10 or after a number of seconds, and LightGBM
under Optuna for the time of a study.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from ranktune.solvers.data.api_search import NAME
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, judged
from ranktune.studies.benchmarks.turnkey.cells import CellPlan, Finished, failed, planned, run_all
from ranktune.studies.benchmarks.turnkey.data import load_cases
from ranktune.studies.benchmarks.turnkey.libraries import METRIC
from ranktune.studies.benchmarks.turnkey.peers import SINGLE_CALLS, check_installed
from ranktune.studies.benchmarks.waiting import times_of
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.home import StudyFolder

KERNELS, EMPTY = "kernels there", "empty cache"
EQUAL = "lightgbm-optuna"
"""The peer that has the time of a study: LightGBM under Optuna."""
TOOLS = (*SINGLE_CALLS, EQUAL)


def measured(seed: int, cache: str, folder: Path, options: Sequence[str]) -> Row:
    """Return what a study takes and what its model is worth; folder has the cache and the studies."""
    name = f"{cache.replace(' ', '-')}-{seed}"
    took = times_of(["tune", "--name", name, "--seed", str(seed), *options], folder)
    result = load_result(StudyFolder(folder / "home" / name).result)
    return {
        "seed": str(seed), "cache": cache, "conclusion s": took.answer, "wall s": took.wall, "cpu s": took.cpu,
        METRIC: result.test_metrics[METRIC],
    }  # fmt: skip


def goals(studies: Sequence[Row]) -> list[Row]:
    """Return what is wanted of studies: medians of those that found the kernels, their worst, and the empty cache."""
    first, *others = studies
    warm = {name: np.array([row[name] for row in others], float) for name in ("conclusion s", "cpu s", METRIC)}
    middle = {name: float(np.median(values)) for name, values in warm.items()}
    wanted = (
        (f"seconds to the conclusion, {KERNELS}", middle["conclusion s"], "<= 30"),
        (f"seconds to the conclusion, {EMPTY}", first["conclusion s"], "<= 45"),
        (f"processor seconds, {KERNELS}", middle["cpu s"], "<= 65"),
        (f"test {METRIC}, median", middle[METRIC], ">= 0.915"),
        (f"test {METRIC}, worst", float(warm[METRIC].min()), ">= 0.905"),
    )
    return [judged({"what": what, "found": found}, limit) for what, found, limit in wanted]


def beside(studies: Sequence[Row], peers: Sequence[Finished]) -> list[Row]:
    """Return the tools: the studies that found the kernels, by their medians, and each peer."""
    ours = {name: float(np.median([row[name] for row in studies[1:]])) for name in ("wall s", METRIC)}
    rows: list[Row] = [{"tool": "ranktune tune", "s": ours["wall s"], METRIC: ours[METRIC]}]
    for peer in peers:
        rows.append({
            "tool": peer.cell.rival, "s": peer.used, METRIC: peer.mean(), "trees": peer.detail.get("trees"),
            "stopped": "by time" if peer.detail.get("cut_by_deadline") else "",
            "ranktune more": ours[METRIC] - peer.mean(),
        })  # fmt: skip
    return rows


def main(
    seeds: int = 5,
    tool: list[str] | None = None,
    seconds: float = 60.0,
    trials: int | None = None,
) -> list[BenchmarkTable]:
    """Measure the default study on the example data: seconds, processor seconds and test NDCG@10, beside peers.

    Parameters
    ----------
    seeds : int
        Studies with the kernels there, each with another seed.
    tool : list of str
        Of {TOOLS}. Repeatable. (default: all)
    seconds : float
        The most seconds of a single call.
    trials : int
        Trials of a study. (default: until it ends)
    """
    tools = tool or TOOLS
    for name in tools:
        check_installed(name)
    options = [] if trials is None else ["--trials", str(trials)]
    studies: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, cache in ((0, EMPTY), *((seed, KERNELS) for seed in range(seeds))):
            studies.append(measured(seed, cache, Path(folder), options))
            typer.echo(" ".join(f"{name} {value}" for name, value in studies[-1].items()), err=True)
    equal = float(np.median([row["wall s"] for row in studies[1:]]))
    cases, threads = load_cases([Path(NAME)]), os.cpu_count() or 1
    plans = [CellPlan([name], [equal if name == EQUAL else seconds], threads=threads) for name in tools]
    cells = [cell for plan in plans for cell in planned(cases, plan)]
    peers, failures = run_all(cells, None, lambda line: typer.echo(line, err=True))
    return [
        BenchmarkTable("Goals of the default study", goals(studies), f"{seeds} seeds, {NAME}"),
        BenchmarkTable(f"ranktune tune on {NAME}", studies),
        BenchmarkTable(f"Beside other tools, {threads} threads", beside(studies, peers)),
        *failed(failures, len(cells)),
    ]
