"""The leaderboard: a row for each refitted candidate and the baseline, compared with the chosen candidate.

A baseline is fixed: nothing is fitted to any fold, so that its scores on the validation queries of all folds count as
one. Its comparison was planned, and is not corrected for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.solvers.data.columns.usual import TODAY_WORDS, named_like
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import name_of
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.solvers.models.blend import needs_of
from ranktune.solvers.names import ONE_COLUMN
from ranktune.tuner.evaluation.evaluate import evaluate
from ranktune.tuner.evaluation.models import has_model
from ranktune.tuner.evaluation.plans import Final, FinalOutcome
from ranktune.tuner.selection.finals import Candidate, Finalist, ScoredRanking, task_of
from ranktune.tuner.selection.rows import (
    ALIKE,
    BASELINE,
    BETTER,
    CHOSEN,
    CLICKS,
    FIRST,
    WORSE,
    Gain,
    LeaderboardRow,
    Preference,
    TuningGain,
)
from ranktune.tuner.splits.seals import read_sealed
from ranktune.tuner.statistics.comparisons import compare_splits, holm
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Comparison, Interval, direction
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.workers.executor import Executor


def leaderboard(
    splits: Sequence[Sequence[Finalist]], metric: str, generator: np.random.Generator, serve: Sequence[str] = ()
) -> list[LeaderboardRow]:
    """Return a row for each solver and blend, the chosen first, then by validation; serve are the systems to load it.

    splits holds the entries of each split, the chosen entry first. Over several splits a first row shows what
    choosing on every split by its own validation gives; what succeeded on every split follows.
    """
    chosen = [entries[0] for entries in splits]
    by_row = sorted(_by_row(splits).items(), key=lambda row: row[0] == CHOSEN)
    rows = [_row(name, scored, chosen, metric, generator, serve) for name, scored in by_row]
    if len(splits) == 1:
        return _with_verdicts(rows)
    total = sum(entry.candidate.trials for entries in splits for entry in entries)
    first = replace(rows.pop(), trials=total)
    return _with_verdicts([first, *sorted(rows, key=_merit, reverse=True)])


def baseline_row(
    baselines: Sequence[ScoredRanking], chosen: Sequence[Finalist], metric: str, generator: np.random.Generator
) -> LeaderboardRow:
    """Return the row of the baseline, whose difference is the baseline less the chosen model, split by split."""
    row = _row(BASELINE, baselines, chosen, metric, generator)
    return replace(row, verdict=ALIKE if row.p_value is None else _verdict(row, row.p_value))


def gain_over(
    name: str,
    baselines: Sequence[ScoredRanking],
    chosen: Sequence[Finalist],
    estimates: Sequence[Interval],
    metric: str,
    generator: np.random.Generator,
) -> Gain | None:
    """Return the gain of the chosen models over the baseline; None without queries that both scored.

    It is compared on test; without test queries on those that validation scored, where the means of the chosen models
    are estimates, corrected for the selection bias.
    """
    pairs = _pairs(chosen, baselines, metric)
    if pairs is None:
        return None
    ours, theirs, weights = pairs
    if all(scored.test for scored in baselines):
        return Gain(name, "test", compare_splits(ours, theirs, generator, weights=weights))
    fair = [
        values + (estimate.mean - mean_of(values, per_query))
        for values, per_query, estimate in zip(ours, weights, estimates, strict=True)
    ]
    corrected, plain = (compare_splits(values, theirs, generator, weights=weights) for values in (fair, ours))
    return Gain(name, "validation", replace(corrected, wins=plain.wins, ties=plain.ties, losses=plain.losses))


def uncompared(splits: Sequence[Sequence[Finalist]]) -> list[LeaderboardRow]:
    """Return the rows of a leaderboard without what the models scored, where their comparison fails."""
    if len(splits) > 1:
        return [_uncompared(CHOSEN, [entries[0] for entries in splits])]
    chosen, *others = (_uncompared(entry.candidate.solver, [entry]) for entry in splits[0])
    return [chosen, *(replace(row, verdict=ALIKE) for row in others)]


def _merit(row: LeaderboardRow) -> tuple[bool, float]:
    if row.again is not None:
        return (True, row.again.mean)
    return (False, row.vali.mean if row.vali else float("-inf"))


def _row(
    name: str,
    scored: Sequence[ScoredRanking],
    chosen: Sequence[Finalist],
    metric: str,
    generator: np.random.Generator,
    serve: Sequence[str] = (),
) -> LeaderboardRow:
    """Return a row of what was scored on each split."""
    candidates = [entry.candidate for entry in scored]
    against = compared(scored, chosen, metric, generator)

    def interval(parts: Sequence[tuple[Floats | None, Floats | None]]) -> Interval | None:
        scores = [values for values, _ in parts if values is not None and len(values)]
        if len(scores) < len(scored):
            return None
        return stratified_interval(scores, generator, weights=[weights for _, weights in parts])

    tested = against is not None and all(entry.test for entry in (*scored, *chosen))
    return replace(
        _uncompared(name, scored, serve),
        vali=interval([(candidate.vali, candidate.vali_weights) for candidate in candidates]),
        again=interval([(candidate.rescored, candidate.rescored_weights) for candidate in candidates]),
        test=interval([(entry.test.get(metric), entry.test_weights) for entry in scored]),
        difference=None if against is None else Interval(against.difference, against.low, against.high),
        p_value=None if against is None else against.p_randomisation,
        against=against,
        validated=_validated(scored, chosen, generator.spawn(1)[0]) if tested else None,
    )


def _validated(
    scored: Sequence[ScoredRanking], chosen: Sequence[ScoredRanking], generator: np.random.Generator
) -> Interval | None:
    """Return the difference on the queries that chose; the generator is its own, and changes no other number."""
    pairs = [_validated_pair(a, b) for a, b in zip(scored, chosen, strict=True)]
    complete = [pair for pair in pairs if pair is not None]
    if len(complete) < len(pairs):
        return None
    return stratified_interval([a - b for a, b, _ in complete], generator, weights=[each for _, _, each in complete])


def _uncompared(name: str, scored: Sequence[ScoredRanking], serve: Sequence[str] = ()) -> LeaderboardRow:
    """Return a row without what was scored; what models cost is NaN where there are none."""
    models = [entry for entry in scored if isinstance(entry, Finalist)]

    def mean(values: Sequence[float | None]) -> float:
        present = [value for value in values if value is not None]
        return float(np.mean(present)) if present else float("nan")

    used = {name_of(int(k), entry.model.feature_names) for entry in models for k in entry.model.used_features}
    return LeaderboardRow(
        solver=name,
        params=dict(models[0].candidate.params) if len(models) == 1 else None,
        vali=None,
        again=None,
        test=None,
        difference=None,
        p_value=None,
        p_holm=None,
        against=None,
        verdict=FIRST,
        nonzeros=mean([entry.model.nonzeros for entry in models]),
        bytes=mean([entry.model.bytes for entry in models]),
        microseconds=mean([entry.microseconds for entry in models]),
        seconds=float(np.sum([entry.seconds for entry in models])) if models else float("nan"),
        trials=sum(entry.candidate.trials for entry in scored),
        cost=None if any(entry.cost is None for entry in models) else mean([entry.cost for entry in models]),
        is_served=all(can_load(serve, needs_of(entry.model)) for entry in models),
        needs_queries=any(entry.model.needs_queries for entry in models),
        feature=used.pop() if name == ONE_COLUMN and len(used) == 1 else "",
    )


def compared(
    scored: Sequence[ScoredRanking], chosen: Sequence[ScoredRanking], metric: str, generator: np.random.Generator
) -> Comparison | None:
    """Return scored compared with chosen; None for the chosen itself, or without queries that both scored."""
    if all(a is b for a, b in zip(scored, chosen, strict=True)):
        return None
    pairs = _pairs(scored, chosen, metric)
    return None if pairs is None else compare_splits(pairs[0], pairs[1], generator, weights=pairs[2])


def _pairs(
    scored: Sequence[ScoredRanking], others: Sequence[ScoredRanking], metric: str
) -> tuple[list[Floats], list[Floats], list[Floats | None]] | None:
    """Return what both scored on the same queries of each split, and the weights of these; None where some has none."""
    found = [pair for a, b in zip(scored, others, strict=True) if (pair := _pair(a, b, metric)) is not None]
    if len(found) < len(scored):
        return None
    return [a for a, _, _ in found], [b for _, b, _ in found], [weights for _, _, weights in found]


def _pair(a: ScoredRanking, b: ScoredRanking, metric: str) -> tuple[Floats, Floats, Floats | None] | None:
    """Return what both scored on the same queries, and their weights: on test, else on fresh folds, else in trials."""
    if a.test and b.test:
        return a.test[metric], b.test[metric], a.test_weights
    return _validated_pair(a, b)


def _validated_pair(a: ScoredRanking, b: ScoredRanking) -> tuple[Floats, Floats, Floats | None] | None:
    """Return what both scored on the same queries on fresh folds, else in trials, and their weights."""
    if a.candidate.rescored is not None and b.candidate.rescored is not None:
        return a.candidate.rescored, b.candidate.rescored, a.candidate.rescored_weights
    (values, weights), (others, _) = (
        (c.rescored, c.rescored_weights) if c.rescored is not None and not len(c.vali) else (c.vali, c.vali_weights)
        for c in (a.candidate, b.candidate)
    )
    return (values, others, weights) if 0 < len(values) == len(others) else None


def _with_verdicts(rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    """Return rows with p-values corrected for their number, and verdicts."""
    corrected = holm([row.p_value for row in rows])
    return [replace(row, p_holm=p, verdict=_verdict(row, p)) for row, p in zip(rows, corrected, strict=True)]


def _verdict(row: LeaderboardRow, p: float | None) -> str:
    if row.difference is None or p is None:
        return FIRST if row.p_value is None else ALIKE
    return (ALIKE, BETTER, WORSE)[direction(row.difference.low, row.difference.high, p)]


def likely_baselines(queries: Queries) -> tuple[str, ...]:
    """Return the feature whose name suggests that it is the score of the ranking of today, if there is one."""
    return tuple(named_like(TODAY_WORDS, queries.feature_names or ())[:1])


def mean_metrics(chosen: Sequence[Finalist], metrics: Sequence[str]) -> dict[str, float]:
    """Return metric -> mean over splits of the chosen entries' mean over test queries; empty without test."""
    if not all(entry.test for entry in chosen):
        return {}

    def mean(entry: Finalist, name: str) -> float:
        return mean_of(entry.test[name], entry.test_weights)

    return {name: float(np.mean([mean(entry, name) for entry in chosen])) for name in metrics}


@dataclass(frozen=True, eq=False)
class DefaultModel:
    """The best of the defaults of a split: its solver, its values by test query, and whether it is delivered."""

    solver: str
    test: Floats
    is_delivered: bool


def default_model(
    study: Study,
    problem: SplitProblem,
    default: Candidate | None,
    chosen: Finalist,
    refitted: Mapping[Candidate, FinalOutcome],
    executor: Executor,
    deadline: Deadline,
) -> DefaultModel | None:
    """Return the best default with its values on the test queries; None without them, or without time to fit it.

    It is fitted like the chosen model: where this is a model that trials left, so is the default's. refitted are the
    models of the chosen candidates, which are not fitted again.
    """
    if default is None or problem.test is None:
        return None
    if is_default(chosen.candidate, default):
        return DefaultModel(default.solver, chosen.test[study.metric], is_delivered=True)
    made = next((made for member, made in refitted.items() if is_default(member, default)), None)
    parts = [refitted[member] for member in chosen.candidate.members or (chosen.candidate,) if member in refitted]
    on_everything = all(member.on_everything for member in parts)
    task, durations = task_of(study, problem, default), problem.durations
    if made is None and (on_everything or not has_model(task)):
        if durations.refit(default.seconds) > durations.free(deadline.left, 1):
            return None
        task = replace(task, limit=durations.free(deadline.left, 1))
    plan = Final(
        on_everything and (study.refit or not problem.given_split),
        model=None if made is None else made.model,
        test=problem.test,
    )
    scored = executor.submit(evaluate, plan, task)
    deadline.before(durations.reporting()).end([scored], executor.stop)
    # The study does not fail by a model that it does not deliver.
    if scored.exception() is not None or scored.result().unfinished:
        return None
    return DefaultModel(default.solver, scored.result().per_query[study.metric], is_delivered=False)


def tuning_gain(
    defaults: Sequence[DefaultModel | None],
    chosen: Sequence[Floats],
    generator: np.random.Generator,
    weights: Sequence[Floats | None] | None = None,
) -> TuningGain | None:
    """Return what the chosen models gain over the best defaults; None where some split has none.

    chosen holds the values of the chosen model by test query, one array a split, and weights those of these queries.
    """
    found = [default for default in defaults if default is not None]
    if not found or len(found) < len(defaults):
        return None
    (name, _), *_ = Counter(default.solver for default in found).most_common(1)
    if all(default.is_delivered for default in found):
        return TuningGain(name, None, None)
    comparison = compare_splits(chosen, [default.test for default in found], generator, weights=weights)
    interval = Interval(comparison.difference, comparison.low, comparison.high)
    return TuningGain(name, interval, comparison.p_randomisation)


def is_default(chosen: Candidate, default: Candidate) -> bool:
    """Return whether the chosen candidate is a default, or a bag of seeds of it, unless seeds are tuned."""
    params = {name: value for name, value in chosen.params.items() if name != "seeds" or name in default.params}
    return chosen.solver == default.solver and params == dict(default.params)


def beside_of(study: Study) -> str:
    """Return the first metric of clicks where grades choose, of grades where clicks choose."""
    return next(name for name in study.also if is_of_clicks(name) != is_of_clicks(study.metric))


def with_beside(
    rows: Sequence[LeaderboardRow],
    splits: Sequence[Sequence[Finalist]],
    baselines: Sequence[ScoredRanking],
    study: Study,
) -> list[LeaderboardRow]:
    """Return rows with their means on test by the metric beside the one that chooses."""
    scored = {**_by_row(splits), BASELINE: baselines}
    return [replace(row, beside=_mean(scored[row.solver], study)) for row in rows]


def preference(study: Study, splits: Sequence[Sequence[Finalist]], folder: Path) -> Preference:
    """Return which row the metric beside would choose on test, and how that differs from the chosen one there."""
    by_row = _by_row(splits)
    chosen = [entries[0] for entries in splits]
    log: JsonView = read_sealed(folder / CLICKS) or {}
    if not all(entry.test for entry in chosen):
        return Preference(beside_of(study), "", None, None, log)
    means = {
        name: float(np.mean([mean_of(each.test[beside_of(study)], each.test_weights) for each in scored]))
        for name, scored in by_row.items()
    }
    if np.isnan(list(means.values())).any():  # no test query is in the log
        return Preference(beside_of(study), "", None, None, log)
    best = max(means, key=lambda name: (means[name], by_row[name] is next(iter(by_row.values()))))
    generator = _generator(study)
    pairs = [compared(by_row[best], chosen, metric, generator) for metric in (beside_of(study), study.metric)]
    beside, of_metric = (None if pair is None else Interval(pair.difference, pair.low, pair.high) for pair in pairs)
    return Preference(beside_of(study), best, beside, of_metric, log)


def _by_row(splits: Sequence[Sequence[Finalist]]) -> dict[str, Sequence[ScoredRanking]]:
    """Return the entries of each row of the leaderboard, one a split, the chosen ones first."""
    by_solver = [{entry.candidate.solver: entry for entry in entries} for entries in splits]
    rows: dict[str, Sequence[ScoredRanking]] = {CHOSEN: [entries[0] for entries in splits]} if len(splits) > 1 else {}
    every = (name for name in by_solver[0] if all(name in entries for entries in by_solver))
    return {**rows, **{name: [entries[name] for entries in by_solver] for name in every}}


def _mean(scored: Sequence[ScoredRanking], study: Study) -> Interval | None:
    found = [each.test[beside_of(study)] for each in scored if each.test]
    if not found or len(found) < len(scored):
        return None
    return stratified_interval(found, _generator(study), weights=[each.test_weights for each in scored])


def _generator(study: Study) -> np.random.Generator:
    """Return a generator that nothing else uses: a click log beside changes no other number of a study."""
    return np.random.default_rng([study.seed, 11])
