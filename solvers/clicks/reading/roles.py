"""Which column of a log is the query, the document, the position, and so on, and the kinds of events.

A column is taken by the name that the user gives, else by a name that is recognised, in any capitals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.data.columns.grammar import values_by_name

NAMES: Mapping[str, Sequence[str]] = {
    "query": ("user_query", "query", "query_text", "search_term", "qid", "query_id"),
    "search": ("query_id", "search_id", "request_id", "qid", "query"),
    "document": (
        "document", "document_id", "doc_id", "docid", "doc", "item_id", "item", "product_id", "object_id",
        "event_attributes.object.object_id",
    ),
    "position": ("position", "rank", "pos", "position.ordinal", "event_attributes.position.ordinal"),
    "session": (
        "session_id", "session", "event_attributes.session_id", "client_id", "user_id", "user", "visitor_id",
    ),
    "time": ("timestamp", "time", "event_time", "datetime", "date", "ts"),
    "kind": ("action_name", "event_type", "event", "action", "type"),
    "propensity": ("propensity", "propensity_score", "pscore"),
    "source": ("application",),
    "results": ("query_response_object_ids", "query_response_hit_ids"),
}  # fmt: skip
"""What a column can be, and the names that suggest it. Of several, the first is taken; of sessions, the first that a
row has."""

AMOUNTS: Mapping[str, Sequence[str]] = {
    "click": ("click", "clicked", "clicks", "is_click"),
    "add_to_cart": ("add_to_cart", "cart", "carts"),
    "purchase": ("purchase", "purchases", "purchased"),
    "value": ("value", "revenue", "event_attributes.value"),
}
"""Columns that say how much of a kind happened."""

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


def named_columns(given: object, argument: str = "click_columns") -> dict[str, str]:
    """Return role -> column of a mapping, or of texts such as "document=sku". Raises ParameterError for others."""
    return values_by_name(given, f"{argument}={{}}: write pairs of ROLE=NAME, such as document=sku.", str)


def check_roles(columns: Mapping[str, str], weights: Mapping[str, float]) -> None:
    """Raise ParameterError for a column of a role that does not exist."""
    for role in columns:
        if role not in {*NAMES, *AMOUNTS, *weights}:
            raise ParameterError(f"columns has {role!r}, which no column is. {nearest(role, [*NAMES, *AMOUNTS])}")


def amounts(weights: Mapping[str, float]) -> dict[str, Sequence[str]]:
    """Return the kinds of events that count, each with the names of a column that says how many there were."""
    return {kind: AMOUNTS.get(kind, (kind,)) for kind in (*AMOUNTS, *(kind for kind in weights if kind not in AMOUNTS))}


def wanted(columns: Mapping[str, str], weights: Mapping[str, float]) -> set[str]:
    """Return the names that any column of use may have, in small letters."""
    known = {**NAMES, **amounts(weights)}
    return {name.lower() for names in known.values() for name in names} | {name.lower() for name in columns.values()}


def roles_of(
    names: Iterable[str], columns: Mapping[str, str], weights: Mapping[str, float]
) -> dict[str, Sequence[str]]:
    """Return role -> its columns among those of these names, which are several only of a session."""
    by_name = {name.lower(): name for name in names}
    roles: dict[str, Sequence[str]] = {}
    for role, known in {**NAMES, **amounts(weights)}.items():
        candidates = (columns[role],) if role in columns else known
        present = [by_name[name.lower()] for name in candidates if name.lower() in by_name]
        if present:
            roles[role] = present if role == "session" else present[:1]
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
    name = "NAME" if likely is None or missing != "document" else likely
    raise DataError(
        f"{path}: has no column of the {missing}. {'Name it' if name == 'NAME' else 'Perhaps it is'}: "
        f"columns={{{missing!r}: {name!r}}}. Recognised names are {', '.join(NAMES[missing])}; its columns: "
        f"{', '.join(names[:30])}."
    )
