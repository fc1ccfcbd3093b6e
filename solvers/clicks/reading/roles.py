"""Which column of a log is the query, the document, the position, and so on, and the kinds of events.

A column is taken by the name that the user gives, else by a name that is recognised, in any capitals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.columns.grammar import values_by_name
from ranktune.solvers.data.columns.usual import find_roles, no_column, plain, usual

NAMES = {
    role: usual(role, *(["user"] if role == "session" else []))
    for role in (
        "query", "search", "document", "position", "session", "time", "kind", "propensity", "source", "results",
    )
}  # fmt: skip
"""What a column can be, and the names that suggest it. Of several, the first is taken; of sessions, the first that a
row has."""

AMOUNTS = {role: usual(role) for role in ("click", "add_to_cart", "purchase", "value")}
"""Columns that say how much of a kind happened."""
ROLES = {**NAMES, **AMOUNTS}

KINDS: Mapping[str, str] = {
    "view": "impression",
    "shown": "impression",
    "exposure": "impression",
    "impressions": "impression",
    "clicks": "click",
    "cart": "add_to_cart",
    "purchases": "purchase",
    "order": "purchase",
}
"""Other names of kinds of events."""


def named_columns(columns: object, argument: str = "click_columns") -> dict[str, str]:
    """Return role -> column of a mapping, or of texts such as "document=sku". Raises ParameterError for others."""
    return values_by_name(columns, f"{argument}={{}}: write pairs of ROLE=NAME, such as document=sku.", str)


def check_roles(columns: Iterable[str], roles: Collection[str]) -> None:
    """Raise ParameterError for a column of a role that is not known."""
    for role in columns:
        if role not in roles:
            raise ParameterError(f"columns has {role!r}, which no column is. {nearest(role, roles)}")


def amounts(weights: Mapping[str, float]) -> dict[str, Sequence[str]]:
    """Return the kinds of events that count, each with the names of a column that says how many there were."""
    return {**AMOUNTS, **{kind: (kind,) for kind in weights if kind not in AMOUNTS}}


def wanted(columns: Mapping[str, str], weights: Mapping[str, float]) -> set[str]:
    """Return the names that any column of use may have, as they are compared."""
    names_of = {**NAMES, **amounts(weights), "": columns.values()}
    return {plain(name) for names in names_of.values() for name in names}


def roles_of(
    names: Sequence[str], columns: Mapping[str, str], weights: Mapping[str, float]
) -> dict[str, Sequence[str]]:
    """Return role -> its columns among those of these names, which are several only of a session."""
    names_of = {**NAMES, **amounts(weights), **dict.fromkeys(columns, ())}
    found = find_roles(names, names_of, columns)  # a column that is named may be in another file
    roles: dict[str, Sequence[str]] = {role: found[role] if role == "session" else found[role][:1] for role in found}
    if "click" in roles and "kind" not in columns:
        for role in ("kind", "search"):  # each row has its clicks: its "type" may be that of a device
            roles.pop(role, None)
    return roles


def check_complete(
    roles: Mapping[str, Sequence[str]], look: Callable[[], tuple[Sequence[str], str | None]], path: object
) -> None:
    """Raise DataError for a table that holds neither queries nor events with documents.

    look returns the names of all columns, and that of an unknown one that looks like the id of the document.
    """
    missing = next((role for role in ("document", "position") if role not in roles), None)
    only_queries = "query" in roles and not {"document", "position", "click"} & roles.keys()
    if "kind" in roles or missing is None or only_queries:
        return
    names, likely = look()
    raise DataError(f"{path}: {lacks(missing, NAMES[missing], names, likely if missing == 'document' else None)}")


def lacks(role: str, usual: Sequence[str], names: Sequence[str], likely: str | None = None) -> str:
    """Return the words for a log without a column of a role, which is likely that of a name."""
    remedy = f"{'Perhaps it is' if likely else 'Name it'}: columns={{{role!r}: {likely or 'NAME'!r}}}"
    return no_column(role, remedy, usual, names)
