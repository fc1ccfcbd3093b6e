"""The candidates of a split: the best trials of each solver, and which of them are finalists.

Candidates that validation does not distinguish from the best of all, and the best of every solver, are scored again on
fresh folds over all development queries; the highest there is chosen. Test queries are not used.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import AllFailed, RankTuneWarning, StudyError
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.selection.results import Failure
from ranktune.tuner.statistics.intervals import randomisation_test
from ranktune.tuner.statistics.pareto import within_limits
from ranktune.tuner.storage.record import ERROR, Record, number_of, seconds_of

PER_SOLVER, MAX_FINALISTS = 3, 12
"""Candidates of each solver, and the largest number of those scored on fresh folds."""
ALPHA = 0.05
"""Paired p-value above which two candidates are not distinguished."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that may be chosen on one split.

    number   of its trial; -1 for a blend, whose params are the shares of its members
    vali     (n validation queries,) what its trial scored, value is the mean; empty for a blend
    again    (n development queries,) what it scored on fresh folds; None where it was not scored there
    scores   (n_documents,) float32, of the development documents on fresh folds; None likewise
    trials   how many trials of its solver succeeded; seconds: wall time of its own
    members  of a blend, with their shares in the order of params
    """

    solver: str
    params: Mapping[str, Value]
    value: float
    vali: Floats
    trials: int
    again: Floats | None = None
    number: int = -1
    seconds: float = 0.0
    scores: NDArray[np.float32] | None = None
    members: tuple[Candidate, ...] = field(default=())

    @property
    def merit(self) -> tuple[bool, float]:
        """Sort key: a score on fresh folds, if there is one, before that of the trial."""
        return (False, self.value) if self.again is None else (True, float(np.nanmean(self.again)))


def best_candidates(record: Record, space: UnionSpace, limits: Mapping[str, float] | None = None) -> list[Candidate]:
    """Return the few best trials of each solver that keep the limits, best first; ties go to the earlier trial.

    Raises StudyError, with the shared cause, where no trial succeeded (AllFailed where there were some), or none keeps
    the limits.
    """
    by_solver: dict[str, list[FrozenTrial]] = {}
    trials = record.trials()
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            by_solver.setdefault(space.split(trial.params)[0], []).append(trial)
    if not by_solver:
        causes = sorted({str(trial.user_attrs.get(ERROR)) for trial in trials})
        kind = AllFailed if trials else StudyError
        raise kind(f"none of {len(trials)} trials succeeded: {'; '.join(causes[:3])}")
    tried = Counter(space.split(trial.params)[0] for trial in trials if trial.state != TrialState.FAIL)
    _warn_if_all_alike([trial for own in by_solver.values() for trial in own], record.metric)
    kept = {solver: [t for t in own if within_limits(t.user_attrs, limits or {})] for solver, own in by_solver.items()}
    by_solver = {solver: own for solver, own in kept.items() if own}
    if not by_solver:
        wanted = ", ".join(f"{cost}<={most:g}" for cost, most in (limits or {}).items())
        raise StudyError(
            f"none of {len(trials)} trials keeps within {wanted}. Allow more, or try more trials; "
            "the trade-offs of what was tried are in the report."
        )
    found = []
    for solver, own in by_solver.items():
        for trial in sorted(own, key=lambda trial: (-(trial.value or 0.0), number_of(trial)))[:PER_SOLVER]:
            assert trial.value is not None
            found.append(
                Candidate(
                    solver,
                    space.split(trial.params)[1],
                    trial.value,
                    record.per_query(trial)[record.metric],
                    tried[solver],
                    number=number_of(trial),
                    seconds=seconds_of(trial),
                )
            )
    return sorted(found, key=lambda candidate: (-candidate.value, candidate.number))


def _warn_if_all_alike(trials: Sequence[FrozenTrial], metric: str) -> None:
    values = {trial.value for trial in trials}
    if len(values) == 1 and len(trials) > 1:
        warnings.warn(
            f"all {len(trials)} trials scored {values.pop():g} by {metric}: on these data it distinguishes none, "
            "and the choice is arbitrary. Choose by another metric (a smaller cutoff, other conventions).",
            RankTuneWarning,
            stacklevel=3,
        )


def failures(record: Record, space: UnionSpace, split: str) -> list[Failure]:
    """Return the trials that failed, by their number, and why."""
    return [
        Failure(split, number_of(trial), space.split(trial.params)[0], str(trial.user_attrs.get(ERROR)))
        for trial in record.trials()
        if trial.state == TrialState.FAIL
    ]


def finalists(found: Sequence[Candidate], generator: np.random.Generator) -> list[int]:
    """Return the places in found of the finalists: every solver's best, and those not worse than the best of all.

    The maximum of many noisy scores is biased, so it does not decide between candidates that paired queries do not
    distinguish. The best of a significantly worse solver may still help in a blend. At most MAX_FINALISTS, the best of
    each solver first.
    """
    close = [k for k in range(len(found)) if randomisation_test(found[k].vali, found[0].vali, generator) > ALPHA]
    solvers = [candidate.solver for candidate in found]
    first = [k for k in range(len(found)) if solvers[k] not in solvers[:k]]
    rest = sorted((k for k in close if k not in first), key=lambda k: (solvers[:k].count(solvers[k]), k))
    return [*first, *rest][:MAX_FINALISTS]


def best_by_solver(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the best candidate of each solver, best first: by fresh folds where rescored, else by their trial."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.merit, reverse=True):
        best.setdefault(candidate.solver, candidate)
    return list(best.values())
