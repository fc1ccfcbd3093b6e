"""One list from two rankings, by team draft or balanced.

Rankings are lists of document ids, best first. "A" and "B" stand for the first and the second ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries

A, B, NEITHER = "A", "B", "-"
TEAM_DRAFT, BALANCED = "team-draft", "balanced"


@dataclass(frozen=True)
class InterleavedList:
    """A list to show, best first.

    Attributes
    ----------
    documents : list
        The ids of its documents.
    teams : list of str
        The ranking that gave each: "A", "B", or "-" for a document whose clicks count for neither.
    ranks_a, ranks_b : list of int or None
        The rank of each in the rankings, from 1; None where a ranking does not have it, or below the list's length.
    """

    documents: list[Hashable]
    teams: list[str]
    ranks_a: list[int | None]
    ranks_b: list[int | None]


def team_draft(
    a: Sequence[Hashable], b: Sequence[Hashable], rng: np.random.Generator, length: int = 10
) -> InterleavedList:
    """Return a list by team draft: in each round a coin says which ranking picks first, and each picks its next best.

    Clicks on the documents of a team count for its ranking. Who clicks at random prefers neither, whatever the
    rankings are: positions beyond the shorter ranking are filled, and belong to no team.

    Parameters
    ----------
    a, b : sequence of hashable
        The document ids of the two rankings, best first, each once. Rankings may share documents, or not.
    rng : numpy.random.Generator
        What tosses the coins.
    length : int, default=10
        The most documents to show.

    Returns
    -------
    Shown
        documents and teams, of at most length documents.

    Raises
    ------
    DataError
        A ranking has a document twice.
    ParameterError
        length is not a positive whole number.

    Notes
    -----
    Source: Radlinski, Kurup & Joachims 2008, "How does clickthrough data reflect retrieval quality?", algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.tuner.interleaving import team_draft
    >>> shown = team_draft(["x", "y", "z"], ["x", "z", "w"], np.random.default_rng(0))
    >>> shown.documents, shown.teams
    (['x', 'z', 'y', 'w'], ['A', 'B', 'A', '-'])
    """
    first, second = _checked(a, b, length)
    drafted = min(len(first), len(second), length)  # so many picks succeed, whoever begins: all are fair
    sides, shown, teams = {A: iter(first), B: iter(second)}, dict[Hashable, None](), list[str]()
    turns = list[str]()
    while len(shown) < min(length, len({*first, *second})):
        turns = turns or ([A, B] if rng.integers(2) else [B, A])
        side = turns.pop(0)
        pick = next((document for document in sides[side] if document not in shown), None)
        if pick is not None:
            teams.append(side if len(shown) < drafted else NEITHER)
            shown[pick] = None
    return _shown(list(shown), teams, first, second)


def balanced(
    a: Sequence[Hashable], b: Sequence[Hashable], rng: np.random.Generator, length: int = 10
) -> InterleavedList:
    """Return a balanced list: its first documents are the first of both rankings, of one at most one more.

    One coin says which ranking begins. Clicks are counted in both rankings down to the smallest rank that covers them
    all. Who clicks at random may prefer one: if B is A with its first document moved to the end, B.

    Parameters
    ----------
    a, b : sequence of hashable
        The document ids of the two rankings, best first, each once. Rankings may share documents, or not.
    rng : numpy.random.Generator
        What tosses the coin.
    length : int, default=10
        The most documents to show.

    Returns
    -------
    Shown
        documents, ranks_a and ranks_b, of at most length documents.

    Raises
    ------
    DataError
        A ranking has a document twice.
    ParameterError
        length is not a positive whole number.

    Notes
    -----
    Source: Joachims 2002, "Unbiased evaluation of retrieval quality using clickthrough data"; as algorithm 1 in
    Radlinski, Kurup & Joachims 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.tuner.interleaving import balanced
    >>> shown = balanced(["x", "y", "z"], ["x", "z", "w"], np.random.default_rng(0))
    >>> shown.documents, shown.ranks_a, shown.ranks_b
    (['x', 'y', 'z', 'w'], [1, 2, 3, None], [1, None, 2, 3])
    """
    first, second = _checked(a, b, length)
    begins = [(A, first), (B, second)] if rng.integers(2) else [(B, second), (A, first)]
    teams = dict[Hashable, str]()
    for rank in range(max(len(first), len(second))):
        for side, ranking in begins:
            if rank < len(ranking):
                teams.setdefault(ranking[rank], side)
    return _shown(list(teams)[:length], list(teams.values())[:length], first, second)


METHODS: Mapping[str, Callable[..., InterleavedList]] = {TEAM_DRAFT: team_draft, BALANCED: balanced}


def interleaved(
    queries: Queries, a: Floats, b: Floats, rng: np.random.Generator, *, method: str, length: int, draws: int
) -> Iterator[Json]:
    """Yield the lists of each query, draws of them, as rows of a file; a and b are scores (n_documents,).

    Documents of equal scores are in the order of the rows. Without ids they have their numbers in the query, from 1.
    Raises what the methods raise, and ParameterError for a method or number of lists that is none.
    """
    check_choice("method", method, METHODS)
    check_count("draws", draws)
    for query, first, last in zip(
        queries.query_ids.tolist(), queries.starts[:-1].tolist(), queries.starts[1:].tolist(), strict=True
    ):
        ids = queries.document_ids
        names = list(range(1, last - first + 1)) if ids is None else ids[first:last].tolist()
        rankings = [[names[k] for k in np.argsort(-scores[first:last], kind="stable").tolist()] for scores in (a, b)]
        for _ in range(draws):
            try:
                shown = METHODS[method](*rankings, rng, length)
            except DataError as error:
                raise DataError(f"query {query}: {error}") from None
            row: Json = {"query": query, "documents": shown.documents, "teams": shown.teams}
            yield row | ({"ranks_a": shown.ranks_a, "ranks_b": shown.ranks_b} if method == BALANCED else {})


def _checked(
    a: Sequence[Hashable], b: Sequence[Hashable], length: int
) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Return what a list can show of two rankings: no more than its length of each."""
    check_count("length", length)
    for name, ranking in ((A, a), (B, b)):
        if len(set(ranking)) < len(ranking):
            twice = next(document for k, document in enumerate(ranking) if document in ranking[:k])
            raise DataError(f"ranking {name} has document {twice!r} twice. Give each document of a query once.")
    return a[:length], b[:length]


def _shown(
    documents: list[Hashable], teams: list[str], a: Sequence[Hashable], b: Sequence[Hashable]
) -> InterleavedList:
    ranks_a, ranks_b = ({document: rank for rank, document in enumerate(ranking, 1)} for ranking in (a, b))
    return InterleavedList(documents, teams, [*map(ranks_a.get, documents)], [*map(ranks_b.get, documents)])
