"""A log of interleaved lists and clicks, as one outcome a search.

A line is a list: what `interleave` wrote, with the positions that were clicked. Or it is a document of a list: query or
session, position, team, and whether it was clicked. Balanced lists have the ranks in both rankings too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.events import TRUTH, hashed, is_null, lists_of, numbers_of, text_of
from ranktune.solvers.clicks.reading.opening import batches
from ranktune.solvers.clicks.reading.roles import check_roles, lacks
from ranktune.solvers.clicks.reading.store import coded, first_of, mixed
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import DataError, ParameterError, listed
from ranktune.solvers.data.columns.usual import find_roles, plain, usual
from ranktune.tuner.interleaving.lists import BALANCED, METHODS, NEITHER, TEAM_DRAFT, A, B

ROLES: Mapping[str, Sequence[str]] = {
    "search": usual("list"),
    **{role: usual(role) for role in ("session", "query", "user", "position", "team", "rank_a", "rank_b", "click")},
}
"""What a column can be, and the names that suggest it. Of several, the first is taken."""
KEY, RANKS = ["query", "search", "session"], ("rank_a", "rank_b")
"""Roles of which one tells searches apart, and those of balanced lists."""
UNRANKED = 2**31 - 1
"""The rank of a document that a ranking does not have."""
Roles = Mapping[str, Sequence[str]]
Cells = Mapping[str, pa.StringArray]
OTHER_TEAM = "a team that is neither A, B nor -"
FAULTY = "another row of its search is left out"


@dataclass(frozen=True, eq=False)
class Searches:
    """What came of each search, (n,): 1 where A won, -1 where B did, 0 for a tie.

    query, user  numbers of queries and of users; those of a search of its own where the log does not tell
    clicked      whether anything was clicked
    """

    method: str
    outcome: Array
    query: Array
    user: Array
    clicked: Array
    has_users: bool
    account: ReadingAccount


def read_searches(paths: Sequence[Path], columns: Mapping[str, str], method: str | None = None) -> Searches:
    """Return the searches in the files of a log; without a method, they are balanced where the log has ranks.

    Raises DataError for what cannot be read, for a column that is missing, and where no search is left; ParameterError
    for a column of a role that there is not.
    """
    check_roles(columns, ROLES)
    if method is not None:
        check_choice("method", method, METHODS)
    if not paths:
        raise ParameterError("no file is given. Give the files of a log: csv, Parquet or jsonl.")
    wanted = {plain(name) for names in (*ROLES.values(), columns.values()) for name in names}
    account, parts, roles_of = ReadingAccount(), list[Array](), set[str]()
    for path in paths:
        for batch in batches(path, wanted, account):
            names = batch.schema.names
            roles = find_roles(names, ROLES, columns, str(path))
            roles_of |= roles.keys()
            is_list = "team" in roles and pa.types.is_nested(batch.column(roles["team"][0]).type)
            needed = [["team"], ["click"], *([] if is_list else [["position"], KEY])]
            lacking = next((group[0] for group in needed if not roles.keys() & set(group)), None)
            if lacking is not None:
                every = next(batches(path, None, ReadingAccount())).schema.names
                raise DataError(f"{path}: {lacks(lacking, ROLES[lacking], every)}")
            cells = {role: text_of(batch, roles.get(role, ())[:1]) for role in ROLES}
            parts.append(
                _of_lists(batch, roles, cells, account, len(parts)) if is_list else _of_documents(roles, cells)
            )
    if not parts:
        raise DataError(f"{listed(paths)}: holds no rows. Give a log of lists and their clicks.")
    rows = _checked(np.concatenate(parts), account)
    if not len(rows):
        raise DataError(f"{listed(paths)}: no search is left to be judged.{account.most_left_out}")
    ranked = roles_of.issuperset(RANKS)
    if method == BALANCED and not ranked:
        raise DataError(
            f"{listed(paths)}: has no ranks_a and ranks_b, by which balanced lists are judged. Log them too."
        )
    method = method or (BALANCED if ranked else TEAM_DRAFT)
    _, first, search = np.unique(rows["search"], return_index=True, return_inverse=True)
    order, clicked = np.argsort(first), rows["clicked"] > 0.0
    ahead = _ahead_balanced(rows, search) if method == BALANCED else rows["side"] * clicked
    account.used["shown"] += account.lines - account.counted
    return Searches(
        method,
        np.sign(np.bincount(search, ahead))[order].astype(np.int64),
        rows["query"][first[order]],
        rows["user"][first[order]],
        np.bincount(search, clicked)[order] > 0.0,
        "user" in roles_of,
        account.copy(),
    )


_ROW = np.dtype(
    [
        *((name, np.uint64) for name in ("search", "query", "user")),
        *((name, np.float64) for name in ("position", "side", "clicked")),
        *((name, np.int64) for name in RANKS),
    ]
)
"""A document of a list: 0 for no search, NaN for a fault; side is 1 for A, -1 for B and 0 for no team."""


def _of_lists(batch: pa.RecordBatch, roles: Roles, cells: Cells, account: ReadingAccount, number: int) -> Array:
    """Return a row for each document of lists, whose clicks are the positions that were clicked, from 1."""
    lists = {name: lists_of(batch.column(roles[name][0])) for name in ("team", "click", *RANKS) if name in roles}
    length = {name: pc.list_value_length(each).fill_null(0).to_numpy() for name, each in lists.items()}
    parent = {name: pc.list_parent_indices(each).to_numpy() for name, each in lists.items()}
    click, size = numbers_of(pc.list_flatten(lists["click"])), length["team"]
    inside = (click >= 1) & (click <= size[parent["click"]]) & (click == np.floor(click))
    strange = np.isnan(_sides(pc.list_flatten(lists["team"])))
    usable = account.sift(
        [
            ("no list of teams", size == 0),
            ("no list of clicked positions", is_null(lists["click"])),
            (OTHER_TEAM, np.bincount(parent["team"], strange, batch.num_rows) > 0),
            *(("ranks are not as many as teams", length[name] != size) for name in RANKS if name in roles),
            ("a clicked position outside of the list", np.bincount(parent["click"], ~inside, batch.num_rows) > 0),
        ]
    )
    of_list = np.repeat(np.flatnonzero(usable), size[usable])
    cells = {name: column.take(pa.array(of_list)) for name, column in cells.items()}
    cells |= {name: pc.list_flatten(each.filter(pa.array(usable))) for name, each in lists.items()}
    place = as_floats(np.arange(len(of_list)) - np.searchsorted(of_list, of_list) + 1)
    clicked = np.isin(mixed(of_list, place), mixed(parent["click"], click))
    return _rows(cells, mixed(of_list, np.full(len(of_list), number)), place, clicked)


def _of_documents(roles: Roles, cells: Cells) -> Array:
    """Return the rows of a log whose lines are documents of lists."""
    key = [cells[name] for name in (["search"] if "search" in roles else ["session", "query"])]
    search = np.where(np.all([*map(is_null, key)], axis=0), 0, mixed(*map(hashed, key)))
    clicked = numbers_of(pc.fill_null(cells["click"], "0"), TRUTH)
    return _rows(cells, search, numbers_of(cells["position"]), np.where(clicked >= 0.0, clicked, np.nan))


def _rows(cells: Cells, search: Array, position: Floats, clicked: Array) -> Array:
    """Return rows of searches, each of a query and a user of its own where the log does not tell."""
    rows = np.empty(len(search), _ROW)
    rows["search"], rows["position"], rows["side"], rows["clicked"] = search, position, _sides(cells["team"]), clicked
    for name in ("query", "user"):
        rows[name] = np.where(is_null(cells[name]), search, hashed(cells[name]))
    for name in RANKS:
        rows[name] = _ranks(cells[name])
    return rows


def _sides(team: pa.StringArray) -> Floats:
    """Return 1 for A, -1 for B, 0 for no team, NaN for another text."""
    sides = {A: 1.0, B: -1.0, NEITHER: 0.0, "NONE": 0.0, "": 0.0}
    place, texts = coded(team)
    return np.array([*(sides.get(text.strip().upper(), np.nan) for text in texts), 0.0])[place]


def _ranks(column: pa.StringArray) -> Floats:
    ranks = np.trunc(numbers_of(column))
    return np.where(np.abs(ranks) < UNRANKED, ranks, UNRANKED)


def _checked(rows: Array, account: ReadingAccount) -> Array:
    """Return the rows of whole searches: those with a fault are left out with all rows of their search."""
    usable = account.sift(
        [
            ("neither query nor session", rows["search"] == 0),
            (OTHER_TEAM, np.isnan(rows["side"])),
            ("a click that is no number", np.isnan(rows["clicked"])),
            ("no position", np.isnan(rows["position"])),
        ]
    )
    whole = usable & ~np.isin(rows["search"], rows["search"][~usable])
    account.left_out[FAULTY] += int((usable & ~whole).sum())
    rows = rows[whole]
    # a click may have a row of its own
    shown = mixed(rows["search"], rows["position"], rows["side"])
    rows["clicked"] = np.isin(shown, shown[rows["clicked"] > 0.0])
    once = first_of(rows["search"], rows["position"])
    account.left_out["a position that its search has already"] += int((~once).sum())
    return rows[once]


def _ahead_balanced(rows: Array, search: Ints) -> Ints:
    """Return the credit of A of each row, (n,), down to the smallest rank that covers all clicks of its search.

    Source: Joachims 2002; Chapelle, Joachims, Radlinski & Yue 2012, "Large-scale validation and analysis of
    interleaved search evaluation", section 3.1.
    """
    low, clicked = np.minimum(rows["rank_a"], rows["rank_b"]), rows["clicked"] > 0.0
    rank = np.full(len(rows), -UNRANKED)
    counted = clicked & (low < UNRANKED)
    np.maximum.at(rank, search[counted], low[counted])
    in_a, in_b = (clicked & (rows[name] <= rank[search]) for name in RANKS)
    return in_a.astype(np.int64) - in_b
