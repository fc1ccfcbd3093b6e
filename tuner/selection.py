"""From the record of trials to the chosen model: the best of each solver, compared by query.

Candidates are the best trials of each solver. Those that validation does not tell from the best of all are scored again
on fresh folds over training and validation queries together, and the highest there is chosen. Nothing here looks at
the test queries to choose.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.arrays import Floats
from ranktune.solvers.errors import RankTuneWarning, StudyError
from ranktune.solvers.model import Model
from ranktune.solvers.space import Value
from ranktune.tuner.record import ERROR, Record, number_of
from ranktune.tuner.results import CHOSEN, Failure, Row
from ranktune.tuner.space import UnionSpace
from ranktune.tuner.statistics import randomisation_test, stratified_interval

PER_SOLVER, MOST = 3, 10
"""Candidates of each solver, and how many of all are scored on fresh folds at most."""
LEVEL = 0.05
"""A paired p-value above it does not tell two candidates apart."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that may be chosen on one split.

    vali    (n validation queries,) what its trial scored, value is the mean
    again   (n development queries,) what it scored on fresh folds; None where its trial settled that it loses
    trials  how many trials of its solver succeeded
    """

    solver: str
    params: Mapping[str, Value]
    value: float
    vali: Floats
    trials: int
    again: Floats | None = None

    @property
    def merit(self) -> tuple[bool, float]:
        """What candidates are ordered by: a score on fresh folds, if there is one, before that of the trial."""
        return (False, self.value) if self.again is None else (True, float(np.nanmean(self.again)))


@dataclass(frozen=True, eq=False)
class Entry:
    """A candidate learnt again: its model, and what it scored per test query, metric -> (n,); empty without test."""

    candidate: Candidate
    model: Model
    test: Mapping[str, Floats]
    microseconds: float
    seconds: float


def candidates(record: Record, space: UnionSpace) -> list[Candidate]:
    """Return the few best trials of each solver, best first; ties go to the earlier trial.

    Raises StudyError, with the shared cause, where no trial succeeded.
    """
    by_solver: dict[str, list[FrozenTrial]] = {}
    trials = record.trials()
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            by_solver.setdefault(space.split(trial.params)[0], []).append(trial)
    if not by_solver:
        causes = sorted({str(trial.user_attrs.get(ERROR)) for trial in trials})
        raise StudyError(f"none of {len(trials)} trials succeeded: {'; '.join(causes[:3])}")
    _warn_if_all_alike([trial for own in by_solver.values() for trial in own], record.metric)
    found = []
    for solver, own in by_solver.items():
        for trial in sorted(own, key=lambda trial: (-(trial.value or 0.0), number_of(trial)))[:PER_SOLVER]:
            assert trial.value is not None
            per_query = record.per_query(trial)[record.metric]
            found.append(Candidate(solver, space.split(trial.params)[1], trial.value, per_query, len(own)))
    return sorted(found, key=lambda candidate: -candidate.value)


def _warn_if_all_alike(trials: Sequence[FrozenTrial], metric: str) -> None:
    values = {trial.value for trial in trials}
    if len(values) == 1 and len(trials) > 1:
        warnings.warn(
            f"all {len(trials)} trials scored {values.pop():g} by {metric}: on these data it tells nothing apart, "
            "and the choice is arbitrary. Choose by another metric (a smaller cutoff, other conventions).",
            RankTuneWarning,
            stacklevel=3,
        )


def contenders(found: Sequence[Candidate], generator: np.random.Generator) -> list[int]:
    """Return the places in found of the best and of those that its trial does not tell from it, at most MOST.

    The highest of many noisy scores is high by luck too, the more so the more flexible its solver; so a maximum alone
    does not choose between candidates that are as good within the noise, paired by query.
    """
    close = [k for k in range(1, len(found)) if randomisation_test(found[k].vali, found[0].vali, generator) > LEVEL]
    solvers = [candidate.solver for candidate in found]
    return sorted([0, *close], key=lambda k: (solvers[:k].count(solvers[k]), k))[:MOST]  # every solver's best first


def settled(found: Sequence[Candidate]) -> list[Candidate]:
    """Return one candidate a solver, the chosen first: by fresh folds where they were scored, else by their trial."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.merit, reverse=True):
        best.setdefault(candidate.solver, candidate)
    return list(best.values())


def failures(record: Record, space: UnionSpace, split: str) -> list[Failure]:
    """Return the trials that failed, by their number, and why."""
    return [
        Failure(split, number_of(trial), space.split(trial.params)[0], str(trial.user_attrs.get(ERROR)))
        for trial in record.trials()
        if trial.state == TrialState.FAIL
    ]


def leaderboard(splits: Sequence[Sequence[Entry]], metric: str, generator: np.random.Generator) -> list[Row]:
    """Return a row for each solver, the chosen first, then by validation.

    splits holds the entries of each split, the chosen entry first. Over several splits a first row shows what
    choosing on every split by its own validation gives; solvers that succeeded on every split follow.
    """
    chosen = [entries[0] for entries in splits]
    if len(splits) == 1:
        return [_row(entry.candidate.solver, [entry], chosen, metric, generator) for entry in splits[0]]
    by_solver = [{entry.candidate.solver: entry for entry in entries} for entries in splits]
    names = [name for name in by_solver[0] if all(name in entries for entries in by_solver)]
    rows = [_row(name, [own[name] for own in by_solver], chosen, metric, generator) for name in names]
    total = sum(entry.candidate.trials for entries in splits for entry in entries)
    first = replace(_row(CHOSEN, chosen, chosen, metric, generator), trials=total)
    return [first, *sorted(rows, key=_merit, reverse=True)]


def _merit(row: Row) -> tuple[bool, float]:
    return (False, row.vali.mean) if row.again is None else (True, row.again.mean)


def _row(name: str, own: Sequence[Entry], chosen: Sequence[Entry], metric: str, generator: np.random.Generator) -> Row:
    tested = all(entry.test for entry in own)
    values = [entry.test[metric] if tested else entry.candidate.vali for entry in own]
    rivals = [entry.test[metric] if tested else entry.candidate.vali for entry in chosen]
    again = [entry.candidate.again for entry in own if entry.candidate.again is not None]
    same = all(a is b for a, b in zip(own, chosen, strict=True))
    params = [dict(entry.candidate.params) for entry in own]
    return Row(
        solver=name,
        params=params[0] if len(own) == 1 else None,
        vali=stratified_interval([entry.candidate.vali for entry in own], generator),
        again=stratified_interval(again, generator) if len(again) == len(own) else None,
        test=stratified_interval(values, generator) if tested else None,
        p_value=None if same else randomisation_test(np.concatenate(values), np.concatenate(rivals), generator),
        nonzeros=float(np.mean([entry.model.nonzeros for entry in own])),
        microseconds=float(np.mean([entry.microseconds for entry in own])),
        seconds=float(np.sum([entry.seconds for entry in own])),
        trials=sum(entry.candidate.trials for entry in own),
    )


def mean_metrics(chosen: Sequence[Entry], metrics: Sequence[str]) -> dict[str, float]:
    """Return metric -> mean over splits of the chosen entries' mean over test queries; empty without test."""
    if not all(entry.test for entry in chosen):
        return {}
    return {name: float(np.mean([np.nanmean(entry.test[name]) for entry in chosen])) for name in metrics}
