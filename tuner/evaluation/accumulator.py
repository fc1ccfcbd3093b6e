"""What a configuration, or each of several along a path, scored and cost, as the parts of the plan come in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric


@dataclass
class _Candidate:
    """One place of the path: sums by metric and times judged, (n development queries,); its models; time to score."""

    sums: Mapping[str, Floats]
    times: Floats
    kept: Floats | None
    nonzeros: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    scoring: float = 0.0
    documents: int = 0


class ScoreAccumulator:
    """The scores and costs of size candidates, which learn together, on development queries.

    Where keep is set, the scores of documents are kept too. seconds: of the processor, to learn, all together.
    """

    def __init__(self, development: Queries, metrics: Sequence[str], size: int, *, keep: bool = False) -> None:
        self._metrics = {name: parse_metric(name) for name in metrics}
        self._main = metrics[0]
        self._candidates = [
            _Candidate(
                {name: np.zeros(development.n_queries) for name in metrics},
                np.zeros(development.n_queries),
                np.zeros(development.n_documents) if keep else None,
            )
            for _ in range(size)
        ]
        self._parts: list[list[float]] = [[] for _ in range(size)]
        self._steps: list[tuple[float, str]] = []
        self.seconds = 0.0

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count the processor time of the block as learning."""
        begun = time.process_time()
        yield
        self.seconds += time.process_time() - begun

    def judge(self, place: int, ranker: BaseRanker, queries: Queries, numbers: Ints, documents: Ints | None) -> None:
        """Score queries, which are the development queries of those numbers, with the candidate at place."""
        own = self._candidates[place]
        begun = time.process_time()
        scores = ranker.predict(queries)
        own.scoring += time.process_time() - begun
        own.documents += queries.n_documents
        if own.kept is not None and documents is not None:
            own.kept[documents] += scores
        self.add(place, scores, queries, numbers)
        self.model(place, ranker)

    def add(self, place: int, scores: Floats, queries: Queries, numbers: Ints | slice) -> None:
        """Add what the scores of queries, (n documents,), are worth to the candidate at place."""
        own = self._candidates[place]
        own.times[numbers] += 1.0
        for name, metric in self._metrics.items():
            values = metric.per_query(scores, queries)
            own.sums[name][numbers] += values
            if name == self._main:
                self._parts[place].append(mean(values))

    def model(self, place: int, ranker: BaseRanker) -> None:
        """Take note of the size of a fitted ranker's model."""
        model = ranker.as_model()
        self._candidates[place].nonzeros.append(float(model.nonzeros))
        self._candidates[place].bytes.append(float(model.bytes))

    def step(self, what: str) -> None:
        """Take note that a part of the plan is done by all candidates that are still in the race."""
        self._steps.append((time.time(), what))

    def parts(self, place: int, count: int) -> Floats:
        """Return what the candidate at place scored by part of the plan, (count,), NaN where that is not done."""
        found = np.full(count, np.nan)
        found[: len(self._parts[place])] = self._parts[place]
        return found

    def values(self, place: int, judged: Ints, name: str | None = None) -> Floats:
        """Return what the candidate at place scored by query of those numbers, NaN where that is not done."""
        own = self._candidates[place]
        sums, times = own.sums[name or self._main][judged], own.times[judged]
        found: Floats = np.divide(sums, times, out=np.full(len(judged), np.nan), where=times > 0.0)
        return found

    def best(self, judged: Ints, count: int) -> int:
        """Return the place of the best so far, the first of equals, among the first count: all judged on the same."""
        return int(np.argmax([np.nan_to_num(mean(self.values(place, judged)), nan=-np.inf) for place in range(count)]))

    def means(self, judged: Ints, best: int) -> list[float]:
        """Return the mean of the best, and of the others by their difference from it where both are known."""
        leader = self.values(best, judged)
        ahead = [mean(self.values(place, judged) - leader) for place in range(len(self._candidates))]
        return [mean(leader) + difference for difference in ahead]

    def bulk(self) -> float:
        """Return the bytes of the last candidate's models: means over the parts that it was judged on."""
        return float(np.mean(self._candidates[-1].bytes))

    def shown(self, place: int, judged: Ints) -> Shown:
        """Return what the candidate at place showed on the queries of those numbers."""
        own = self._candidates[place]
        with np.errstate(over="ignore"):  # of features beyond single precision: such scores take no part in a blend
            kept = None if own.kept is None else own.kept.astype(np.float32)
        moments = zip(self._steps, self._parts[place], strict=True)
        return Shown(
            {name: self.values(place, judged, name) for name in self._metrics},
            float(np.mean(own.nonzeros)),
            float(np.mean(own.bytes)),
            own.scoring / own.documents * 1e6 if own.documents else float("nan"),
            kept,
            tuple((at, what, value) for (at, what), value in moments),
        )


@dataclass(frozen=True, eq=False)
class Shown:
    """What a candidate showed, as in ranktune.tuner.evaluation.objective.Outcome."""

    per_query: Mapping[str, Floats]
    nonzeros: float
    bytes: float
    microseconds: float
    scores: NDArray[np.float32] | None
    steps: tuple[tuple[float, str, float], ...]


def mean(values: Floats) -> float:
    """Return the mean over the queries that are judged, NaN where none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
