"""Queries that stand in two parts of a split: what is learnt from must not be what is scored.

Queries are the same where their documents and grades are, in any order; ids say little, since files that have nothing
to do with each other count their queries from 1. Queries that nothing can be learnt from (one grade) do not matter.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.digests import NOTHING, query_digests
from ranktune.tuner.evaluation.split import Split


def without_shared(split: Split) -> Split:
    """Return split with each query in one part only: test keeps its own, validation what is left, training the rest.

    Warns (RankTuneWarning) with the number left out. Raises DataError where a part is left with nothing to learn from.
    """
    parts = {name: getattr(split, name) for name in ("test", "vali", "train")}
    present = {name: part for name, part in parts.items() if part is not None}
    if len(present) == 1:
        return split
    taken: dict[int, str] = {}
    for name, part in present.items():
        digests = query_digests(part)
        shared = np.array([digest in taken for digest in digests])
        if shared.any():
            present[name] = _kept(name, part, shared, sorted({taken[digest] for digest in digests if digest in taken}))
        taken |= {digest: name for digest in digests if digest != NOTHING and digest not in taken}
    return replace(split, **present)


_CALLED = {"train": "training", "vali": "validation", "test": "test"}


def _kept(name: str, part: Queries, shared: NDArray[Any], others: list[str]) -> Queries:
    told = (
        f"{np.count_nonzero(shared)} of {part.n_queries} {_CALLED[name]} queries are also among the "
        f"{' and '.join(_CALLED[other] for other in others)} queries (same documents and grades)"
    )
    kept = part.select(np.flatnonzero(~shared))
    if kept.n_queries == 0 or not kept.has_pairs:
        remedy = "leave vali out: training queries are then cross-validated"
        if "test" in others:
            remedy = "give other test queries, or none: a fifth of the training queries is then set aside"
        raise DataError(
            f"{told}, and nothing is left to learn from. A score on what was learnt says nothing; {remedy}."
        )
    warnings.warn(f"{told}: they are left out of the {_CALLED[name]} queries.", RankTuneWarning, stacklevel=4)
    return kept
