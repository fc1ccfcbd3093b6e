"""What a column can be, by its name: the usual names of all roles, which every reader of tables asks.

A column is taken by the name that the user gives, else by a usual one. Capitals do not matter, nor whether words are
parted by _, - or a space. A name may be that of several roles: each reader asks for those that its tables have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ranktune.solvers.core.errors import DataError, nearest


class Role(NamedTuple):
    """What a column can be.

    words      the usual names, the likeliest first, parted by spaces
    what       a value, in messages
    option     the option that names the column; empty where a mapping of roles to columns does
    is_number  whether values are numbers; else they are text, times or lists
    """

    words: str
    what: str
    option: str = ""
    is_number: bool = False

    @property
    def names(self) -> Sequence[str]:
        """The usual names."""
        return self.words.split()


USUAL: Mapping[str, Role] = {
    "qid": Role("qid query_id queryid q_id search_id", "query id", "qid"),
    "group": Role("query group group_id session_id", "query id", "qid"),  # of which each may be something else
    "query": Role("user_query query query_text search_term keywords qid query_id", "query"),  # its text, if it has one
    "topic": Role("topic", "query"),  # of TREC; in other tables a category
    "grade": Role("grade label relevance rel y judgment judgement", "grade", "grade"),
    "rating": Role("rating", "grade", "grade"),  # where nothing else is; beside a grade a feature, as of a product
    "graded": Role("score", "grade", "grade"),  # of judgments, as those of BEIR
    "score": Role("score scores prediction predictions pred y_pred", "score", "", True),
    "document": Role(
        "document docid doc_id document_id doc docno corpus_id item_id item product_id object_id "
        "event_attributes.object.object_id",
        "document id",
        "document",
    ),
    "row": Role("_id id", "document id", "document"),  # where a row is a document: in a log it is an event
    "weight": Role("weight weights query_weight", "query weight", "weight", True),
    "document_weight": Role("weight", "document weight", "document_weight", True),  # of judgments
    "position": Role(
        "position rank pos ranking position.ordinal event_attributes.position.ordinal",
        "position",
        "position",
        True,
    ),
    "time": Role("timestamp time event_time datetime date ts", "time", "time"),
    "search": Role("query_id search_id request_id qid query", "search"),  # by which events are joined
    "list": Role("search_id search request_id impression_id", "search"),  # one that was shown once
    "session": Role("session_id session event_attributes.session_id", "session"),
    "user": Role("client_id user_id user visitor_id", "user"),
    "kind": Role("action_name event_type event action type", "kind"),
    "source": Role("application", "source"),
    "results": Role("query_response_object_ids query_response_hit_ids", "results"),
    "propensity": Role("propensity propensity_score pscore", "propensity", "", True),
    "click": Role("click clicked clicks is_click", "click", "", True),
    "add_to_cart": Role("add_to_cart cart carts", "add_to_cart", "", True),
    "purchase": Role("purchase purchases purchased", "purchase", "", True),
    "value": Role("value revenue event_attributes.value", "value", "", True),
    "team": Role("team teams", "team"),
    "rank_a": Role("rank_a ranks_a", "rank_a", "", True),
    "rank_b": Role("rank_b ranks_b", "rank_b", "", True),
}


MOST_SHOWN = 30
"""Columns that a message names."""


def plain(name: object) -> str:
    """Return a name as it is compared: in small letters, with _ between words."""
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def usual(*roles: str) -> tuple[str, ...]:
    """Return the usual names of roles, those of the first role first."""
    return tuple(dict.fromkeys(name for role in roles for name in USUAL[role].names))


def find_roles(
    names: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    named: Mapping[str, str | None] = MappingProxyType({}),
    table: str = "",
) -> dict[str, list[str]]:
    """Return role -> its columns among those of these names: the one that is named, else those of usual names.

    Raises DataError for a column that is named and not there.
    """
    called = dict[str, list[str]]()
    for name in names:
        called.setdefault(plain(name), []).append(name)
    found = dict[str, list[str]]()
    for role, known in roles.items():
        given = named.get(role)
        if given is not None and plain(given) not in called:
            raise DataError(f"{table}: has no column {given!r} for the {role}. {nearest(given, names)}")
        columns = [column for name in (known if given is None else [given]) for column in called.get(plain(name), ())]
        if columns:
            found[role] = [given] if given is not None and given in columns else list(dict.fromkeys(columns))
    return found


def present(names: Iterable[str], named: Mapping[str, object]) -> dict[str, str | None]:
    """Return role -> the column that is named, None where it is not among these names."""
    here = {plain(name) for name in names}
    return {role: str(name) if plain(name) in here else None for role, name in named.items()}


def no_column(what: str, naming: str, known: Sequence[str] = (), names: Sequence[str] = ()) -> str:
    """Return the words for a table without a column of what; naming says how the user names it."""
    among = f" Recognised names are {', '.join(known)}; its columns: {shown(names)}." if known else ""
    return f"has no column of the {what}. Name it: {naming}.{among}"


def shown(names: Sequence[str]) -> str:
    """Return names of columns, of many the first."""
    text = ", ".join(names[:MOST_SHOWN])
    return f"{text}, ... ({len(names)} in all)" if len(names) > MOST_SHOWN else text
