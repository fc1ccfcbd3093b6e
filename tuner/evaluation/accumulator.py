"""Scores and costs of a configuration, or of each value along its path, summed up part by part of the plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.task import Outcome, Task


class ScoreAccumulator:
    """Sums the scores and costs of the models of a task on the development queries.

    `place` counts the values of the task's path; a task without a path has one place. `numbers`, `judged` are numbers
    of development queries. Means are weighted where these have weights.
    """

    def __init__(self, development: Queries, task: Task) -> None:
        size = max(len(task.path), 1)
        self._task, self._weights = task, development.query_weights
        self._metrics = {name: parse_metric(name) for name in task.metrics}
        self._sums = {name: np.zeros((size, development.n_queries)) for name in task.metrics}
        self._times = np.zeros((size, development.n_queries))
        self._scores = np.zeros((size, development.n_documents)) if task.keep_scores or task.keep else None
        self._nonzeros: list[list[int]] = [[] for _ in range(size)]
        self._bytes: list[list[int]] = [[] for _ in range(size)]
        self._costs: list[list[float]] = [[] for _ in range(size)]
        costs = None if task.budget is None else task.budget.costs
        self._features = costs.of(development) if costs is not None and costs.entries else None
        self._parts: list[list[float]] = [[] for _ in range(size)]
        self._steps: list[tuple[float, str]] = []
        self._fitting, self._scoring, self._scored = 0.0, np.zeros(size), np.zeros(size)

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Count the processor time of the block as that of fitting."""
        begun = time.process_time()
        yield
        self._fitting += time.process_time() - begun

    def score(
        self,
        place: int,
        ranker: BaseRanker,
        queries: Queries,
        numbers: Ints,
        documents: Ints | slice | None,
        columns: Ints | None = None,
    ) -> None:
        """Score queries by a ranker that was fitted on these columns of the development queries, None for all."""
        begun = time.process_time()
        scores = ranker.predict(queries)
        self._scoring[place] += time.process_time() - begun
        self._scored[place] += queries.n_documents
        if self._scores is not None and documents is not None:
            self._scores[place, documents] += scores
        self.add(place, ranker, scores, queries, numbers, columns)

    def add(
        self,
        place: int,
        ranker: BaseRanker,
        scores: Floats,
        queries: Queries,
        numbers: Ints | slice,
        columns: Ints | None = None,
    ) -> Floats:
        """Add the metrics of the scores of queries, (n_documents,), and the size of the ranker's model.

        Return the values of the first metric, (n_queries,).
        """
        self._times[place, numbers] += 1.0
        first = np.empty(0)
        for name, metric in self._metrics.items():
            values = metric.per_query(scores, queries)
            self._sums[name][place, numbers] += values
            if name == self._task.metrics[0]:
                first = values
        self._parts[place].append(mean_of(first, queries.query_weights))
        model = ranker.as_model()
        self._nonzeros[place].append(model.nonzeros)
        self._bytes[place].append(model.bytes)
        if self._features is not None:
            used = model.used_features if columns is None else columns[model.used_features]
            self._costs[place].append(self._features.cost_of(used))
        return first

    def end_part(self, part: str) -> None:
        """Note that all models that are still in the race have been scored on a part of the plan."""
        self._steps.append((time.time(), part))

    def parts(self, place: int, count: int) -> Floats:
        """Return the metric by part of the plan, (count,), NaN for those to come."""
        found = np.full(count, np.nan)
        found[: len(self._parts[place])] = self._parts[place]
        return found

    def values(self, place: int, judged: Ints, name: str | None = None) -> Floats:
        """Return the metric by query, (len(judged),), NaN for those to come."""
        sums, times = self._sums[name or self._task.metrics[0]][place, judged], self._times[place, judged]
        found: Floats = np.divide(sums, times, out=np.full(len(judged), np.nan), where=times > 0.0)
        return found

    def weights(self, judged: Ints) -> Floats | None:
        """Return the weights of judged, None if they have none."""
        return None if self._weights is None else self._weights[judged]

    def best(self, judged: Ints, count: int) -> int:
        """Return the best of the first places, the first of equals; all were scored on the same queries."""
        means = [mean_of(self.values(place, judged), self.weights(judged)) for place in range(count)]
        return int(np.argmax(np.nan_to_num(means, nan=-np.inf)))

    def outcome(self, best: int, judged: Ints, stopped: str) -> Outcome:
        """Return what the model at the best place showed on judged."""
        task = self._task
        with np.errstate(over="ignore"):  # scores beyond single precision take no part in a blend
            scores = None if self._scores is None else self._scores[best].astype(np.float32)
        steps = zip(self._steps, self._parts[best], strict=True)
        return Outcome(
            {name: self.values(best, judged, name) for name in self._metrics},
            float(np.mean(self._nonzeros[best])),
            self._fitting,
            bytes=float(np.mean(self._bytes[best])),
            cost=float(np.mean(self._costs[best])) if self._costs[best] else float("nan"),
            microseconds=float(self._scoring[best] / self._scored[best] * 1e6) if self._scored[best] else float("nan"),
            scores=scores,
            steps=tuple((at, part, value) for (at, part), value in steps),
            stopped=stopped,
            path_parameter=task.path_parameter,
            chosen=task.path[best] if task.path else None,
            bulk=float(np.mean(self._bytes[self._reached(best) - 1])) if task.path else 0.0,
            path=tuple(zip(task.path, self._means(best, judged), strict=False)) if task.path else (),
        )

    def _reached(self, best: int) -> int:
        """Return how many values of the path were scored; of rounds of boosting, by as many folds as the best ones."""
        least = len(self._parts[best]) if self._task.bound else 1
        return sum(len(parts) >= least for parts in self._parts)

    def _means(self, best: int, judged: Ints) -> list[float]:
        """Return the mean of the metric at each place: that of the best, and the mean differences from it."""
        leader, weights = self.values(best, judged), self.weights(judged)
        ahead = [mean_of(self.values(place, judged) - leader, weights) for place in range(self._reached(best))]
        return [mean_of(leader, weights) + difference for difference in ahead]
