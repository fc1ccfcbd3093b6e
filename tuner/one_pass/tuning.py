"""The pass: blocks of queries are scored by all configurations, then learned from; looks drop configurations.

The state of a pass is one file, an npz archive with one text. From it the pass, or that of the next day, goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from ranktune.solvers.abilities import MONOTONE, QUERY_WEIGHTS, VERBS
from ranktune.solvers.core.arrays import Array, Floats, Json, JsonView
from ranktune.solvers.core.errors import AllFailed, Damaged, DataError, StudyError
from ranktune.solvers.core.files.archives import read_headed, write_archive
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import for_fitting
from ranktune.solvers.joint.learners import JointLearners
from ranktune.solvers.metrics.metrics import Judgements, Metric
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.optimizers.one_pass import OVERFLOW
from ranktune.tuner.evaluation.evaluate import evaluate
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.one_pass import result as race
from ranktune.tuner.one_pass.result import ConfigurationSpace, OnePassResult, PassConfiguration, PassEntry
from ranktune.tuner.splits.seals import file_digest
from ranktune.tuner.statistics.intervals import stratified_interval

SAMPLE_ROWS = 32_768
"""Documents of the first queries, from which the scales of features are learned."""

BLOCK_ROWS = 16_384
"""Documents of a block: their scores by all configurations stay in cache."""
FORMAT = 1
SECONDS = 10.0
"""Seconds between two checkpoints; more where writing one takes a noticeable part of that."""
SHARE_OF_WRITING = 0.05
"""The largest share of the time that is spent on checkpoints."""


class OnePassTuning:
    """A pass over queries, from the first on or from where a checkpoint was written.

    after     the state that an earlier pass ended with: its configurations learn on, and new ones join them
    looks     when configurations are dropped and join, by default as `race.looks` says; the last is after all queries
    learners  the configurations that remain, with their weights
    """

    def __init__(
        self,
        queries: Queries,
        metric: Metric,
        solvers: tuple[str, ...],
        configurations: int,
        survivors: int,
        seed: int,
        path: Path | None = None,
        progress: Callable[[str], None] | None = None,
        looks: Sequence[race.Look] | None = None,
        after: Path | None = None,
    ) -> None:
        check_usable(queries)
        queries = for_fitting(queries)
        self._queries, self._metric = queries, metric
        self._report = progress or (lambda text: None)
        self._space = ConfigurationSpace(solvers or None, queries.is_sparse)
        declared: Json = {"metric": str(metric), "solvers": list(solvers), "configurations": configurations}
        declared |= {"survivors": survivors, "seed": seed, "data": queries.fingerprint}
        declared |= {"after": None if after is None else file_digest(after)}
        self._checkpoint = PassCheckpoint(path, declared)
        self._looks = looks or race.looks(queries.n_queries, configurations, survivors)
        self._generator = np.random.default_rng(seed)
        self._entries: dict[int, PassEntry] = {}
        self._numbered = 0
        self._log: list[Json] = []
        self._window: list[Floats] = []
        self._done, self._look = 0, 0
        sample = block_of(queries, *next(query_ranges(queries.starts, SAMPLE_ROWS)))
        saved = self._checkpoint.load()
        if saved is not None:
            self._restore(sample, *saved)
            self._report(f"going on after {self._done} of {queries.n_queries} queries")
        elif after is not None:
            self._carry_on(sample, after, configurations)
        else:
            self.learners = JointLearners(sample)
            if not queries.is_sparse and (count := self.learners.n_without_scale):
                self._report(
                    f"{count} of {queries.n_features} features do not vary within queries among the first "
                    f"{sample.n_documents} documents, which set the scales: they are left out"
                )
            self._join(self._space.first(configurations, self._generator))

    def run(self) -> OnePassResult:
        """Learn from all queries that are left; return the result, without a test."""
        while self._done < self._queries.n_queries:
            self._learn()
            if self._done >= self._looks[self._look].after:
                self._decide()
            if self._checkpoint.is_due:
                self.save()
        return self._result()

    def _learn(self) -> None:
        """Score the next block by all configurations, and learn from it."""
        look = self._looks[self._look]
        _, count = next(query_ranges(self._queries.starts[self._done : look.after + 1], BLOCK_ROWS))
        block = block_of(self._queries, self._done, self._done + count)
        self._done += count
        judgements = Judgements.of(block)
        numbers = np.array(self.learners.numbers)
        scores = self.learners.learn(block)
        finite = (np.abs(scores) < OVERFLOW).all(axis=1)
        if not finite.all():
            for number in numbers[~finite]:
                self._entries[number].end = "diverged"
            if not finite.any():
                raise AllFailed(
                    "the weights of all configurations overflowed: the features are too large for them as they are. "
                    "Scale the features, for example to [0, 1]."
                )
            numbers, scores = numbers[finite], scores[finite]
            self.learners.keep(numbers.tolist())
            self._window = [values[finite] for values in self._window]
        values = np.array([self._metric.per_query(row, judgements) for row in scores])
        for number, row in zip(numbers, values, strict=True):
            self._entries[number].add(row)
        if self._done > look.after - look.counted:
            self._window.append(values)

    def _decide(self) -> None:
        """Drop configurations, let new ones join, and begin a new window."""
        look, numbers = self._looks[self._look], self.learners.numbers
        values = np.concatenate(self._window, axis=1)[:, -look.counted :]
        standing = race.Standing.of(values, len(self._looks))
        best, going_on = standing.best, sorted(numbers[row] for row in standing.going_on(look.survivors))
        for row, number in enumerate(numbers):
            entry = self._entries[number]
            entry.difference, entry.error = float(standing.gaps[row]), float(standing.errors[row])
            if number not in going_on:
                entry.end = "worse" if standing.worse[row] else "places"
        dropped = {why: [n for n in numbers if self._entries[n].end == why] for why in ("worse", "places")}
        self.learners.keep(going_on)
        joined = self._join(self._fresh(going_on, look.places - len(going_on))) if look.fresh else []
        self._window, self._look = [], min(self._look + 1, len(self._looks) - 1)
        mean = float(np.nanmean(values[best])) if not np.isnan(values[best]).all() else float("nan")
        self._log.append(
            {
                "after": self._done,
                "judged": values.shape[1],
                "best": numbers[best],
                "mean": None if np.isnan(mean) else mean,
                "going_on": going_on,
                **dropped,
                "joined": joined,
            }
        )
        self._report(
            f"{self._done} of {self._queries.n_queries} queries: {self._metric} {mean:.4f} before learning, best "
            f"configuration {numbers[best]} ({self._entries[numbers[best]].solver}), {len(going_on)} go on, "
            f"{len(joined)} join"
        )

    def _fresh(self, going_on: list[int], count: int) -> list[PassConfiguration]:
        """Return new configurations: every second is near a configuration that remains, the others are drawn."""
        result = []
        for index in range(count):
            if index % 2 == 0:
                parent = self._entries[going_on[int(self._generator.integers(len(going_on)))]]
                result.append(self._space.near(parent.configuration, self._generator))
            else:
                result.append(self._space.drawn(self._generator))
        return result

    def _join(self, configurations: list[PassConfiguration]) -> list[int]:
        """Let configurations learn from the next block on, and return their numbers."""
        rankers = dict(enumerate((each.ranker() for each in configurations), start=self._numbered))
        for number, each in zip(rankers, configurations, strict=True):
            self._entries[number] = PassEntry(number, each.solver, each.parameters, self._done)
        self._numbered += len(rankers)
        self.learners.join(rankers)
        return list(rankers)

    def _result(self) -> OnePassResult:
        """Return the result: the best configuration at the last look, with its weights now."""
        best = self._entries[self._log[-1]["best"]]
        weights = self.learners.weights()[self.learners.numbers.index(best.number)]
        model = LinearModel(
            weights,
            best.solver,
            parameters=dict(best.parameters),
            feature_names=self._queries.feature_names,
            metric=str(self._metric),
            fingerprint=self._checkpoint.declared["data"],
            encoding=self._queries.encoding,
        )

        def place(entry: PassEntry) -> tuple[object, ...]:
            last = entry.joined + entry.queries
            return entry is not best, -last, -entry.difference if np.isfinite(entry.difference) else np.inf

        entries = sorted(self._entries.values(), key=place)
        queries = self._queries
        return OnePassResult(
            model, best, entries, self._log, str(self._metric), None, queries.n_queries, queries.n_documents
        )

    def save(self) -> None:
        """Write a checkpoint of the state between two blocks, or after the last one."""
        about = {
            "done": self._done,
            "look": self._look,
            "generator": self._generator.bit_generator.state,
            "entries": [entry.as_json() for entry in self._entries.values()],
            "numbered": self._numbered,
            "log": self._log,
        }
        window = np.concatenate(self._window, axis=1) if self._window else np.zeros((0, 0))
        self._checkpoint.save(about, {**self.learners.arrays(), "window": window})

    def _restore(self, sample: Queries, about: JsonView, arrays: Mapping[str, Array]) -> None:
        self._done, self._look, self._log = about["done"], about["look"], about["log"]
        self._generator.bit_generator.state = about["generator"]
        self._entries = {entry["number"]: PassEntry(**entry) for entry in about["entries"]}
        self._numbered = about.get("numbered", len(self._entries))  # releases up to 0.2.1 always began with 0
        rankers = {number: entry.configuration.ranker() for number, entry in self._entries.items() if not entry.end}
        self.learners = JointLearners.restored(sample, rankers, arrays)
        self._window = [arrays["window"]] if arrays["window"].size else []

    def _carry_on(self, sample: Queries, after: Path, configurations: int) -> None:
        """Take up the configurations that remained at the end of an earlier pass; new ones get the other places."""
        saved = PassCheckpoint(after, {"solvers": self._checkpoint.declared["solvers"]}).load()
        assert saved is not None, "its digest is known"
        if saved[0]["declared"]["data"] == self._checkpoint.declared["data"]:
            raise StudyError(f"{after} has learned from these data already. Give those of the next day.")
        self._restore(sample, *saved)
        self._done, self._look, self._log, self._window = 0, 0, [], []
        self._entries = {number: self._entries[number].carried_on() for number in self.learners.numbers}
        numbers = list(self._entries)
        joined = self._join(self._fresh(numbers, configurations - len(numbers)))
        self._report(f"{len(numbers)} configurations go on from {after}, {len(joined)} join")


def check_usable(queries: Queries) -> None:
    """Raise DataError for what configurations that learn together cannot use."""
    if queries.has_missing:
        raise DataError("a pass needs features without missing values. Read the data with missing='zero'.")
    for name in {QUERY_WEIGHTS, MONOTONE} & queries.columns.keys():
        raise DataError(f"a pass cannot {VERBS[name]}: leave {name} out, or call tune.")
    if not queries.has_pairs:
        raise DataError("no query has two different grades, so that there is nothing to learn. Check the grades.")


def tested(model: LinearModel, queries: Queries, metric: Metric, seed: int) -> Json:
    """Return the metric of model on queries that were not learned from, with its interval."""
    task = Task("", (str(metric),), model.solver, model.parameters, seed)
    per_query = evaluate(Final(model=model, test=queries), task).per_query[str(metric)]
    interval = stratified_interval([per_query], np.random.default_rng(seed))
    return {**asdict(interval), "queries": int(np.count_nonzero(~np.isnan(per_query)))}


@dataclass
class PassCheckpoint:
    """The file of a pass, if it has one, which is written now and then.

    declared  the declaration of the pass, JSON values by name: it continues only under the same declaration
    last      when the file was written, or the pass began, by the steady clock; cost: the seconds that writing took
    """

    path: Path | None
    declared: Json
    last: float = field(default_factory=time.monotonic)
    cost: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the next one."""
        return self.path is not None and time.monotonic() - self.last > max(SECONDS, self.cost / SHARE_OF_WRITING)

    def save(self, about: JsonView, arrays: Mapping[str, Array]) -> None:
        """Write the state in place of the previous one. Raises StudyError where it cannot be written."""
        assert self.path is not None
        begun = time.monotonic()
        about = {"format": FORMAT, "declared": self.declared, **about}
        try:
            atomic_write(self.path, write_archive(arrays, about))
        except OSError as error:
            raise StudyError(
                f"cannot write {self.path}: {error.strerror}. Give a folder you may write to, with room."
            ) from None
        self.last = time.monotonic()
        self.cost = self.last - begun

    def load(self) -> tuple[Json, dict[str, Array]] | None:
        """Return what save wrote, None where there is nothing.

        Raises StudyError for a file that is damaged, has an unknown format, or is of another pass.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            about, arrays = read_headed(self.path)
            version = about["format"]
        except (Damaged, KeyError, TypeError) as error:
            raise StudyError(f"{self.path} is damaged ({error}). Remove it, and the pass begins again.") from None
        if version != FORMAT:
            raise StudyError(
                f"{self.path} has the format {version}, this RankTune reads {FORMAT}. Remove it to begin again."
            )
        for name, declared in self.declared.items():
            if (stored := about["declared"].get(name)) != declared:
                raise StudyError(
                    f"{self.path} is the checkpoint of another pass: its {name} is {stored!r}, not {declared!r}. Give "
                    "what was given then, or another folder. Releases before 0.2.2 knew data by other digests: remove "
                    "such a file, and the pass begins again."
                )
        return about, {
            name.removeprefix("state-"): array for name, array in arrays.items()
        }  # as older releases named them
