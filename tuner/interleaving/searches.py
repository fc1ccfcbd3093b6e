"""A log of interleaved lists and clicks, as one outcome a search.

A line is a list: what `interleave` wrote, with the positions that were clicked. Or it is a document of a list: query or
session, position, team, and whether it was clicked. Balanced lists have the ranks in both rankings too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars
from polars import col

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.clicks.reading.roles import AMOUNTS, NAMES
from ranktune.solvers.clicks.reading.sources import frames
from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import DataError, ParameterError, listed, nearest
from ranktune.tuner.interleaving.lists import BALANCED, METHODS, NEITHER, TEAM_DRAFT, A, B

ROLES: Mapping[str, Sequence[str]] = {
    "search": ("search_id", "search", "request_id", "impression_id"),
    "session": ("session_id", "session"),
    "query": NAMES["query"],
    "user": ("user_id", "user", "visitor_id", "client_id"),
    "position": NAMES["position"],
    "team": ("team", "teams"),
    "rank_a": ("rank_a", "ranks_a"),
    "rank_b": ("rank_b", "ranks_b"),
    "click": AMOUNTS["click"],
}
"""What a column can be, and the names that suggest it. Of several, the first is taken."""
UNRANKED = 2**31 - 1
"""The rank of a document that a ranking does not have."""
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
    account: Account


def read_searches(paths: Sequence[Path], columns: Mapping[str, str], method: str | None = None) -> Searches:
    """Return the searches in the files of a log; without a method, they are balanced where the log has ranks.

    Raises DataError for what cannot be read, for a column that is missing, and where no search is left; ParameterError
    for a column of a role that there is not.
    """
    for role in columns:
        if role not in ROLES:
            raise ParameterError(f"columns has {role!r}, which no column is. {nearest(role, ROLES)}")
    if method is not None:
        check_choice("method", method, METHODS)
    if not paths:
        raise ParameterError("no file is given. Give the files of a log: csv, Parquet or jsonl.")
    wanted = {name.lower() for names in (*ROLES.values(), columns.values()) for name in names}
    account, parts = Account(), list[polars.DataFrame]()
    found = set[str]()
    for number, path in enumerate(paths):
        for block, frame in enumerate(frames(path, wanted, account)):
            roles = _roles_of(frame.columns, columns, path)
            found |= roles.keys()
            frame = frame.select(col(name).alias(role) for role, name in roles.items())
            if isinstance(frame.schema["team"], polars.List):
                place = polars.concat_str(polars.lit(f"{number} {block} "), polars.int_range(polars.len()))
                frame = _of_lists(frame.with_columns(place.alias("search")), account)
            elif "position" not in roles or not {"search", "session", "query"} & roles.keys():
                missing = "position" if "position" not in roles else "query"
                raise DataError(f"{path}: has no column of the {missing}. {_remedy(missing, frame.columns)}")
            parts.append(_rows(frame))
    if not parts:
        raise DataError(f"{listed(paths)}: holds no rows. Give a log of lists and their clicks.")
    rows = _checked(polars.concat(parts), account)
    if not rows.height:
        raise DataError(f"{listed(paths)}: no search is left to be judged.{account.most_left_out}")
    ranked = {"rank_a", "rank_b"} <= found
    if method == BALANCED and not ranked:
        raise DataError(
            f"{listed(paths)}: has no ranks_a and ranks_b, by which balanced lists are judged. Log them too."
        )
    method = method or (BALANCED if ranked else TEAM_DRAFT)
    ahead = _ahead_balanced() if method == BALANCED else (col("side") * col("clicked").cast(polars.Int32)).sum()
    each = rows.group_by("search", maintain_order=True).agg(
        ahead.sign().alias("outcome"), col("query", "user").first(), col("clicked").any()
    )
    account.used["shown"] += account.lines - account.counted
    outcome, query, user, clicked = (each[name].to_numpy() for name in ("outcome", "query", "user", "clicked"))
    return Searches(method, outcome, query, user, clicked, "user" in found, account.copy())


def _roles_of(names: Sequence[str], columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return role -> its column. Raises DataError where the team or the clicks have none."""
    by_name = {name.lower(): name for name in names}
    roles = dict[str, str]()
    for role, known in ROLES.items():
        given = columns.get(role)
        if given is not None and given.lower() not in by_name:
            raise DataError(f"{path}: has no column {given!r} for the {role}. {nearest(given, names)}")
        present = [by_name[name.lower()] for name in ((given,) if given else known) if name.lower() in by_name]
        roles |= dict.fromkeys([role], present[0]) if present else {}
    for role in ("team", "click"):
        if role not in roles:
            raise DataError(f"{path}: has no column of the {role}. {_remedy(role, names)}")
    return roles


def _remedy(role: str, names: Iterable[str]) -> str:
    return (
        f"Name it: columns={{{role!r}: 'NAME'}}. Recognised names are {', '.join(ROLES[role])}; columns of use: "
        f"{', '.join(names) or 'none'}."
    )


def _of_lists(frame: polars.DataFrame, account: Account) -> polars.DataFrame:
    """Return a row for each document of lists, whose clicks are the positions that were clicked, from 1."""
    if not isinstance(frame.schema["click"], polars.List):
        frame = frame.with_columns(polars.lit(None, polars.List(polars.String)).alias("click"))
    length, lists = col("team").list.len(), [name for name in ("rank_a", "rank_b") if name in frame.columns]
    clicks = col("click").cast(polars.List(polars.String)).cast(polars.List(polars.Int64), strict=False)
    outside = clicks.list.eval((polars.element() < 1) | polars.element().is_null()).list.any() | (
        clicks.list.max() > length
    )
    faults = {
        "no list of teams": length.fill_null(0) == 0,
        "no list of clicked positions": col("click").is_null(),
        OTHER_TEAM: col("team").list.eval(_side(polars.element()).is_null()).list.any(),
        "ranks are not as many as teams": polars.any_horizontal(
            polars.lit(False), *((col(name).list.len() != length).fill_null(True) for name in lists)
        ),
        "a clicked position outside of the list": outside.fill_null(False),
    }
    for reason, which in faults.items():
        bad = frame.select(which).to_series()
        account.left_out[reason] += int(bad.sum())
        frame = frame.filter(~bad)
    frame = frame.with_columns(clicks.alias("clicks"), polars.int_ranges(1, length + 1).alias("position"))
    frame = frame.explode("team", "position", *lists)
    return frame.with_columns(col("position").is_in("clicks").cast(polars.String).alias("click")).drop("clicks")


def _side(team: polars.Expr) -> polars.Expr:
    """Return 1 for A, -1 for B, 0 for no team, null for another text."""
    text = team.cast(polars.String).str.strip_chars().str.to_uppercase().fill_null(NEITHER)
    return text.replace_strict({A: 1, B: -1, NEITHER: 0, "": 0, "NONE": 0}, default=None, return_dtype=polars.Int32)


def _rows(frame: polars.DataFrame) -> polars.DataFrame:
    """Return rows of numbers: null where there is a fault, or for a user who is not known."""
    names = frame.columns
    key = ["search"] if "search" in names else [name for name in ("session", "query") if name in names]
    together = polars.concat_str(col(key).cast(polars.String).fill_null(""), separator="\x1f")
    search = polars.when(polars.any_horizontal(col(key).is_not_null())).then(together.hash(seed=0))

    def numbered(name: str) -> polars.Expr:
        text = col(name).cast(polars.String) if name in names else polars.lit(None, polars.String)
        return polars.when(text.is_not_null()).then(text.hash(seed=0)).otherwise(search)

    def rank(name: str) -> polars.Expr:
        ranked = col(name).cast(polars.Float64, strict=False).cast(polars.Int32, strict=False)
        return (ranked if name in names else polars.lit(None, polars.Int32)).fill_null(UNRANKED)

    click = col("click").cast(polars.String).str.to_lowercase()
    number = click.replace({"true": "1", "false": "0", "": "0"}).fill_null("0").cast(polars.Float64, strict=False)
    return frame.select(
        search.alias("search"),
        numbered("query").alias("query"),
        numbered("user").alias("user"),
        col("position").cast(polars.Float64, strict=False),
        _side(col("team")).alias("side"),
        polars.when(number.is_finite() & (number >= 0)).then(number > 0).alias("clicked"),
        rank("rank_a").alias("rank_a"),
        rank("rank_b").alias("rank_b"),
    )


def _checked(rows: polars.DataFrame, account: Account) -> polars.DataFrame:
    """Return the rows of whole searches: those with a fault are left out with all rows of their search."""
    faults = {
        "neither query nor session": "search",
        OTHER_TEAM: "side",
        "a click that is no number": "clicked",
        "no position": "position",
    }
    bad = list[polars.Series]()
    for reason, name in faults.items():
        at_fault = rows.filter(col(name).is_null())
        account.left_out[reason] += at_fault.height
        bad.append(at_fault["search"])
        rows = rows.filter(col(name).is_not_null())
    whole = rows.filter(~col("search").is_in(polars.concat(bad).drop_nulls().implode()))
    account.left_out[FAULTY] += rows.height - whole.height
    # a click may have a row of its own
    whole = whole.with_columns(col("clicked").any().over("search", "position", "side"))
    once = whole.unique(["search", "position"], keep="first", maintain_order=True)
    account.left_out["a position that its search has already"] += whole.height - once.height
    return once


def _ahead_balanced() -> polars.Expr:
    """Return by how many clicks A is ahead in a search, down to the smallest rank that covers them all.

    Source: Joachims 2002; Chapelle, Joachims, Radlinski & Yue 2012, "Large-scale validation and analysis of
    interleaved search evaluation", section 3.1.
    """
    low = polars.min_horizontal("rank_a", "rank_b")
    rank = low.filter(col("clicked") & (low < UNRANKED)).max()
    in_a, in_b = ((col("clicked") & (col(name) <= rank)).sum().cast(polars.Int64) for name in ("rank_a", "rank_b"))
    return in_a - in_b
