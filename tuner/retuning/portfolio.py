"""What is kept of a study beside its models for the study that retunes it.

portfolio.json   the configurations that it ends with, which that study tries first
fitted.npz       digests of the development queries, on which its models are not judged again, and their latest time
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Array, JsonView
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.splits.digests import NOTHING, Bits, given_columns, query_digests
from ranktune.tuner.splits.seals import check_sealed, read_sealed, write_sealed
from ranktune.tuner.study.home import writing

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries
    from ranktune.tuner.selection.finals import Candidate, Finalist
    from ranktune.tuner.study.problem import SplitProblem

FILE, FITTED = "portfolio.json", "fitted.npz"


@dataclass(frozen=True)
class SolverConfiguration:
    """A configuration of one solver, with its parameters by their own names."""

    solver: str
    params: JsonView


@dataclass(frozen=True)
class DeliveredConfiguration:
    """A configuration, or a blend of several.

    Attributes
    ----------
    solver : str
        Its name, or that of the blend.
    parts : tuple of Part
        The configuration, or the members of the blend.
    shares : tuple of float
        Those of the members; a single 1 without a blend.
    """

    solver: str
    parts: tuple[SolverConfiguration, ...]
    shares: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, candidate: Candidate) -> DeliveredConfiguration:
        """Return the configuration of a candidate."""
        if not candidate.members:
            return cls(candidate.solver, (SolverConfiguration(candidate.solver, dict(candidate.params)),))
        parts = tuple(SolverConfiguration(member.solver, dict(member.params)) for member in candidate.members)
        return cls(candidate.solver, parts, tuple(float(str(share)) for share in candidate.params.values()))


@dataclass(frozen=True, eq=False)
class FittedQueryIds:
    """The queries that a model may have been fitted to.

    Attributes
    ----------
    digests : array of uint64 of shape (n,)
        Theirs.
    latest : float
        The time of the latest of them, minus infinity where it is not known.
    columns : tuple
        Which columns the digests are of: by name, or None for features by their places.
    """

    digests: Bits = field(default_factory=lambda: np.zeros(0, np.uint64))
    latest: float = -np.inf
    columns: tuple[tuple[str, ...] | None, ...] = ()

    @classmethod
    def of(cls, queries: Queries) -> FittedQueryIds:
        """Return these queries."""
        columns = given_columns(queries)
        digests = np.array(query_digests(queries, columns), dtype=np.uint64)
        latest = -np.inf if queries.times is None else float(queries.time_of_query.max())
        return cls(digests[digests != NOTHING], latest, (columns,))

    def comparable(self, queries: Queries) -> list[tuple[str, ...] | None]:
        """Return by which columns these queries can be compared: not by the places of what categories became."""
        named = queries.feature_names is not None
        return [by for by in self.columns if (named if by else queries.contents is None)]

    def judge(self, queries: Queries) -> NDArray[np.bool_]:
        """Return which queries may judge the model, (n_queries,): those that it does not know, and that are later."""
        unknown = np.ones(queries.n_queries, dtype=bool)
        for by in self.comparable(queries):
            unknown &= ~np.isin(np.array(query_digests(queries, by), dtype=np.uint64), self.digests)
        return unknown if queries.times is None else unknown & (queries.time_of_query > self.latest)

    def with_more(self, more: FittedQueryIds) -> FittedQueryIds:
        """Return these and more queries."""
        columns = tuple(dict.fromkeys((*self.columns, *more.columns)))
        return FittedQueryIds(np.union1d(self.digests, more.digests), max(self.latest, more.latest), columns)

    def arrays(self) -> dict[str, Array]:
        """Return it as the arrays of a file."""
        columns = np.frombuffer(json.dumps(self.columns).encode(), dtype=np.uint8)
        return {"fitted": self.digests, "latest": np.array(self.latest), "columns": columns}

    @classmethod
    def from_arrays(cls, arrays: MutableMapping[str, Array]) -> FittedQueryIds:
        """Take it out of the arrays of a file; earlier releases kept no columns."""
        digests, latest, columns = arrays.pop("fitted"), arrays.pop("latest", -np.inf), arrays.pop("columns", None)
        named = [None] * (len(digests) > 0) if columns is None else json.loads(columns.tobytes())
        return cls(np.asarray(digests, np.uint64), float(latest), tuple(by and tuple(by) for by in named))


def save_portfolio(ordered: Sequence[Candidate], chosen: Finalist, folder: Path) -> None:
    """Write the configurations of the candidates, that of the chosen entry first."""
    final = chosen.candidate
    first = [c for c in ordered if (c.solver, c.number) == (final.solver, final.number)]
    found = [DeliveredConfiguration.of(c) for c in (*first, *(c for c in ordered if c not in first))]
    with writing(folder):
        write_sealed(folder / FILE, json.dumps([asdict(each) for each in found]))


def save_fitted(problem: SplitProblem, folder: Path) -> None:
    """Write what models of a problem are fitted to."""
    found = FittedQueryIds.of(problem.development).arrays()
    with writing(folder):
        write_sealed(folder / FITTED, write_archive(found))


def load_fitted(folder: Path) -> FittedQueryIds:
    """Return what save_fitted wrote, nothing of a study of an older release. Raises Damaged."""
    check_sealed(folder / FITTED)
    if not (folder / FITTED).exists():
        return FittedQueryIds()
    return FittedQueryIds.from_arrays(dict(read_archive(folder / FITTED)))


def load_portfolio(folder: Path) -> list[DeliveredConfiguration]:
    """Return what save_portfolio wrote, nothing of a study of an older release. Raises Damaged."""
    return [typed(DeliveredConfiguration, one) for one in read_sealed(folder / FILE) or ()]
