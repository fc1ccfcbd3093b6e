"""RankSVM on blocks: measured seconds and bytes of every step, and a model of the time on 1 to 64 machines.

Measured here: the processor seconds of a pass over a block in this process, the bytes that a call sends to each worker
and gets back, and the steps of a fit; with --address, the wall time of a call that does nothing on a Dask cluster.
The rest is a model: machines hold equal shares of the documents and compute at the speed measured, all messages pass
the coordinator's network, and it solves the sample by itself.

    seconds = own + sum over calls of (seconds a document * documents / machines + latency + machines * bytes / network)

The sample is of a twentieth of the documents, at most MAX_SAMPLE_BYTES; what is the coordinator's own grows with it.
Blocks were in memory (the page cache) when they were measured: where a machine reads them from its disk at every pass,
the time of that comes on top.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ranktune.solvers import RankSVM, fit_blocks
from ranktune.solvers.blocks.workers import BlockWorkers, LocalBlocks, OpenBlock, Source
from ranktune.solvers.data.disk.stored import write_queries
from ranktune.solvers.optimizers.sampling import sample_size
from ranktune.studies.benchmarks.cases import many_queries
from ranktune.studies.benchmarks.tables import Row, Table

MACHINES = (1, 2, 4, 8, 16, 32, 64)


@dataclass
class Calls:
    """The calls of one function: how many, and in total their seconds, and the bytes sent to and got from a worker."""

    count: int = 0
    seconds: float = 0.0
    sent: float = 0.0
    received: float = 0.0


class Metered:
    """Other workers, whose calls are counted and timed by clock."""

    def __init__(self, workers: BlockWorkers, clock: Any) -> None:
        self.calls: dict[str, Calls] = {}
        self._workers, self._clock, self._blocks = workers, clock, 1

    def open(self, sources: Sequence[Source]) -> None:
        """Make these the blocks."""
        self._workers.open(sources)
        self._blocks = len(sources)

    def map(self, function: Any, *arguments: Any, **named: Any) -> list[Any]:
        """Return function(block, *arguments) of each block."""
        calls = self.calls.setdefault(function.__name__.strip("_"), Calls())
        begun = self._clock()
        results = self._workers.map(function, *arguments, **named)
        calls.seconds += self._clock() - begun
        calls.count += 1
        calls.sent += len(pickle.dumps((function, arguments)))
        calls.received += len(pickle.dumps(results)) / self._blocks
        return results


def nothing(block: OpenBlock) -> None:
    """Do nothing: what a call costs by itself."""


@dataclass(frozen=True)
class Model:
    """What the time of a fit is made of: the calls measured on so many rows and blocks, and the coordinator's seconds.

    latency is in seconds, network in bytes a second.
    """

    calls: Mapping[str, Calls]
    own: float
    rows: int
    features: int
    latency: float
    network: float

    def seconds(self, rows: float, machines: int) -> tuple[float, float, float]:
        """Return the seconds of computing, of messages, and of the coordinator alone."""
        size = 4.0 * self.features  # float32
        of_all, of_measured = (sample_size(int(count), self.features, size) for count in (rows, self.rows))
        computing = sum(one.seconds for one in self.calls.values()) * rows / self.rows / machines
        waits = self.latency * sum(one.count for one in self.calls.values())
        steps = sum(one.sent + one.received for name, one in self.calls.items() if name != "sample")
        sample = size * of_all if "sample" in self.calls else 0.0
        return computing, waits + (steps * machines + sample) / self.network, self.own * of_all / of_measured


def main(
    rows: Annotated[int, typer.Option(min=1000, help="Documents of a block that is measured.")] = 120_000,
    blocks: Annotated[int, typer.Option(min=1, help="Blocks that are measured.")] = 4,
    features: Annotated[int, typer.Option(min=1)] = 136,
    total: Annotated[float, typer.Option(min=1, help="Documents of the model, in millions.")] = 100.0,
    network: Annotated[float, typer.Option(min=0.1, help="Network of the coordinator, in MB a second.")] = 125.0,
    latency: Annotated[float, typer.Option(min=0.0, help="Milliseconds of a call, where no cluster is given.")] = 5.0,
    tol: Annotated[float, typer.Option(min=1e-15)] = 1e-3,
    address: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster that sees these files.")] = None,
) -> list[Table]:
    """RankSVM on blocks: what a step costs here, and a model of 1 to 64 machines."""
    with tempfile.TemporaryDirectory() as home:
        folders = list(_stored(Path(home), blocks, rows, features))
        documents = blocks * rows
        fit_blocks(RankSVM(tol=tol), folders[0])  # compiled
        metered = Metered(LocalBlocks(), time.process_time)
        begun = time.process_time()
        ranker = fit_blocks(RankSVM(tol=tol), folders, metered)
        whole = time.process_time() - begun
        calls = metered.calls
        own = whole - sum(one.seconds for one in calls.values())
        about = f"Measured here: {blocks} blocks of about {rows:,} documents with {features} features, {whole:.2f} s"
        tables = [Table(about, [*(_row(name, one, blocks) for name, one in calls.items()), _once(own)])]
        if address is not None:
            with _dask(address) as workers:
                latency, found = _on_cluster(workers, folders, ranker.coef_, tol)
                tables.append(found)
    model = Model(calls, own, documents, features, 1e-3 * latency, 1e6 * network)
    title = f"Model, not measured: {total:g} million documents, {network:g} MB/s, {latency:.1f} ms a call"
    return [*tables, Table(title, [_modelled(model, 1e6 * total, machines) for machines in MACHINES])]


def _row(name: str, one: Calls, blocks: int) -> Row:
    each = {"seconds": one.seconds / blocks, "sent": one.sent, "got": one.received}
    per_call = {name: total / one.count for name, total in each.items()}
    figures = {
        "ms a block": 1e3 * per_call["seconds"], "KB sent": per_call["sent"] / 1e3, "KB got": per_call["got"] / 1e3,
    }  # fmt: skip
    return {"call": name, "calls": one.count, **figures}


def _once(seconds: float) -> Row:
    return {"call": "coordinator, all its time", "calls": None, "ms a block": 1e3 * seconds}


def _modelled(model: Model, documents: float, machines: int) -> Row:
    computing, messages, alone = model.seconds(documents, machines)
    seconds, first = computing + messages + alone, sum(model.seconds(documents, 1))
    return {
        "machines": machines, "compute s": computing, "messages s": messages, "alone s": alone, "total s": seconds,
        "speed-up": first / seconds,
    }  # fmt: skip


def _stored(home: Path, blocks: int, rows: int, features: int) -> Iterator[Path]:
    for number in range(blocks):
        queries = many_queries(max(rows // 120, 1), number, features)
        write_queries(queries, home / str(number))
        yield home / str(number)


@contextmanager
def _dask(address: str) -> Iterator[BlockWorkers]:
    from ranktune.tuner.workers.clusters.dask_blocks import DaskBlocks

    with DaskBlocks(address) as workers:
        yield workers


def _on_cluster(workers: BlockWorkers, folders: Sequence[Path], expected: Any, tol: float) -> tuple[float, Table]:
    """Return the milliseconds of a call that does nothing on a cluster, and what was measured there."""
    fit_blocks(RankSVM(tol=tol), folders, workers)  # compiled, and blocks opened
    begun = time.perf_counter()
    found = fit_blocks(RankSVM(tol=tol), folders, workers)
    seconds, waits = time.perf_counter() - begun, []
    for _ in range(21):
        begun = time.perf_counter()
        workers.map(nothing)
        waits.append(time.perf_counter() - begun)
    latency = 1e3 * float(np.median(waits))
    same = np.array_equal(found.coef_, expected)
    return latency, Table("Measured on the cluster", [{"wall s": seconds, "ms a call": latency, "same weights": same}])
