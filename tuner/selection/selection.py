"""From candidates, and what they score on fresh folds, to the chosen one.

Candidates are the best trials of each solver (ranktune.tuner.selection.candidates). Those that validation does not tell
from the best of all, and the best of every solver, are scored again on fresh folds over all development queries, and
the highest there is chosen. Nothing here looks at the test queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.statistics.intervals import randomisation_test

PER_SOLVER, MOST = 3, 12
"""Candidates of each solver, and how many of all are scored on fresh folds at most."""
LEVEL = 0.05
"""A paired p-value above it does not tell two candidates apart."""


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
        """What candidates are ordered by: a score on fresh folds, if there is one, before that of the trial."""
        return (False, self.value) if self.again is None else (True, float(np.nanmean(self.again)))


def contenders(found: Sequence[Candidate], generator: np.random.Generator) -> list[int]:
    """Return the places in found of what is scored again: every solver's best, and what is as good as the best of all.

    The highest of many noisy scores is high by luck too, the more so the more flexible its solver; so a maximum alone
    does not choose between candidates that are as good within the noise, paired by query. The best of a solver that is
    told to be worse may still help in a blend. They are at most MOST, the best of each solver first.
    """
    close = [k for k in range(len(found)) if randomisation_test(found[k].vali, found[0].vali, generator) > LEVEL]
    solvers = [candidate.solver for candidate in found]
    first = [k for k in range(len(found)) if solvers[k] not in solvers[:k]]
    rest = sorted((k for k in close if k not in first), key=lambda k: (solvers[:k].count(solvers[k]), k))
    return [*first, *rest][:MOST]


def settled(found: Sequence[Candidate]) -> list[Candidate]:
    """Return one candidate a solver, the chosen first: by fresh folds where they were scored, else by their trial."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.merit, reverse=True):
        best.setdefault(candidate.solver, candidate)
    return list(best.values())
