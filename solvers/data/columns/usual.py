"""What a column can be, by its name: the usual names of all roles, which every reader of tables asks.

A column is found by the name that the user gives, else by a usual one. Capitals do not matter, nor whether words are
parted by _, - or a space. A name may be that of several roles: each reader asks for those that its tables have.

Words of names, in the languages of many shops, speak for queries, for grades, or for what comes after a search. They
are one sign among others, and never decide alone what a column is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ranktune.solvers.core.errors import DataError, nearest


class Role(NamedTuple):
    """What a column can be.

    words   the usual names, the likeliest first, parted by spaces
    kind    of its values: float of numbers, else str, also of times and lists
    what    a value, in messages; the role itself where it is empty
    option  the option of training tables that names the column; elsewhere the role does
    """

    words: str
    kind: type = str
    what: str = ""
    option: str = ""

    @property
    def names(self) -> Sequence[str]:
        """The usual names."""
        return self.words.split()


USUAL: Mapping[str, Role] = {
    "qid": Role("qid query_id queryid q_id search_id", str, "query id", "qid"),
    "group": Role("query group group_id session_id", str, "query id", "qid"),  # of which each may be something else
    "query": Role("user_query query query_text search_term keywords qid query_id"),  # its text, if it has one
    "topic": Role("topic"),  # of TREC; in other tables a category
    "grade": Role("grade label relevance rel y judgment judgement", str, "grade", "grade"),
    "rating": Role("rating"),  # the grade where nothing else is; beside a grade a feature, as of a product
    "graded": Role("score"),  # of judgments, as those of BEIR
    "score": Role("score scores prediction predictions pred y_pred", float),
    "document": Role(
        "document docid doc_id document_id doc docno corpus_id item_id item product_id object_id "
        "event_attributes.object.object_id",
        str,
        "document id",
        "document",
    ),
    "row": Role("_id id", str, "document id", "document"),  # where a row is a document: in a log it is an event
    "weight": Role("weight weights query_weight", float, "query weight", "weight"),
    "document_weight": Role("weight", float, "document weight"),  # of judgments
    "position": Role("position rank pos ranking position.ordinal event_attributes.position.ordinal", float),
    "time": Role("timestamp time event_time datetime date ts"),
    "search": Role("query_id search_id request_id qid query"),  # by which events are joined
    "list": Role("search_id search request_id impression_id"),  # one that was shown once
    "session": Role("session_id session event_attributes.session_id"),
    "user": Role("client_id user_id user visitor_id"),
    "kind": Role("action_name event_type event action type"),
    "source": Role("application"),
    "results": Role("query_response_object_ids query_response_hit_ids"),
    "propensity": Role("propensity propensity_score pscore", float),
    "click": Role("click clicked clicks is_click", float),
    "add_to_cart": Role("add_to_cart cart carts", float),
    "purchase": Role("purchase purchases purchased", float),
    "value": Role("value revenue event_attributes.value", float),
    "team": Role("team teams"),
    "rank_a": Role("rank_a ranks_a", float),
    "rank_b": Role("rank_b ranks_b", float),
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
    named: Mapping[str, object] = MappingProxyType({}),
    table: str = "",
) -> dict[str, list[str]]:
    """Return role -> its columns among those of these names: the one that is named, else those of usual names.

    A column that is named and not there is a DataError of a table, and without one as if it were not named.
    """
    called = dict[str, list[str]]()
    for name in names:
        called.setdefault(plain(name), []).append(name)
    found = dict[str, list[str]]()
    for role, names_of_role in roles.items():
        column = named.get(role)
        is_absent = column is not None and plain(column) not in called
        if is_absent and table:
            raise DataError(f"{table}: has no column {column!r} for the {role}. {nearest(str(column), names)}")
        wanted = names_of_role if column is None or is_absent else [str(column)]
        columns = [each for name in wanted for each in called.get(plain(name), ())]
        if columns:
            found[role] = [str(column)] if column in columns else list(dict.fromkeys(columns))
    return found


def no_column(what: str, remedy: str, usual: Sequence[str] = (), names: Sequence[str] = ()) -> str:
    """Return the words for a table without a column of what; the remedy says how the user names it."""
    among = f" Recognised names are {', '.join(usual)}; its columns: {shown(names)}." if usual else ""
    return f"has no column of the {what}. {remedy}.{among}"


def shown(names: Sequence[str]) -> str:
    """Return names of columns, of many the first."""
    text = ", ".join(names[:MOST_SHOWN])
    return f"{text}, ... ({len(names)} in all)" if len(names) > MOST_SHOWN else text


QUERY_WORDS = r"quer|qry|search|request|keyword|such|anfrag|requet|recherch|consult|busqu|ricerc|zoek|zapyt|запрос"
AFTER_WORDS = (
    r"click|order|purchas|bought|sales\b|sold|paid|ctr|cvr|gmv|revenue|convert|conversion|carts?\b|basket|checkout"
    r"|book(?:ing|ed)|reserv|dwell|transaction|klick|klik|bestell|gekauft|verkauf|kauf|umsatz|warenkorb|buchung|gebucht"
    r"|verweil|clic|cliq|commande|achat|achet|vente|vendu|panier|compra|pedido|venta|carrito|ingreso|venda|carrinho|receita"
    r"|aankoop|aankop|gekocht|verkocht|omzet|winkel(?:wagen|mand)|boeking|ordin[ei]\b|acquist|vendit|carrello|prenota|ricav"
    r"|fatturat|zamowi|zakup|kupion|sprzeda|koszyk|rezerw|przychod|клик|заказ|покуп|куплен|продаж|корзин|брон|выруч"
)
"""Beginnings of words for what follows a ranking: clicks, orders, purchases, revenue, carts, bookings, page time."""
TODAY_WORDS = r"bm ?25|tf ?idf|es score|solr score|search score|rank score|relevance score|score|rank|position"
"""Beginnings of words for the score or the place that the ranking of today gives."""
GRADE_WORDS = r"grad|label|relev|judg|rating|gain|target"
SCALE = (
    "irrelevant|not relevant|non relevant|nonrelevant|i|off topic|no|false|bad|poor|complement|c|marginal|partial|"
    "partially relevant|somewhat relevant|fair|ok|substitute|s|relevant|good|yes|true|very good|very relevant|"
    "highly relevant|excellent|exact|e|perfect|key|vital"
).split("|")
"""Words for grades, the lowest first; single letters are those of Amazon's ESCI."""
_BEFORE = (
    r"past|last|prev|prior|hist|before|earlier|lag|rolling|trailing|avg|mean|day|week|month|year|\d+ ?[dhwmy]\b"
    r"|letzt|vorher|vorig|bisher|derni|passe|ultim|pasad|passad|scors|afgelopen|ostatn|poprzed|послед|прошл"
)


def words_of(name: str) -> str:
    """Return the words of a name in small letters without accents: AddToCart, add_to_cart and add-to-cart alike."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", str(name)) if not unicodedata.combining(c))
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", plain.replace("ł", "l").replace("Ł", "L"))
    return split.lower().strip()


def named_like(words: str, names: Iterable[str]) -> Sequence[str]:
    """Return the names that have a word that begins so: first those of an id, then those of few words."""
    found = [name for name in names if re.search(rf"\b(?:{words})", words_of(name))]
    return sorted(found, key=lambda name: (not re.search(r"id\b", words_of(name)), len(words_of(name).split())))


def usual_grades(words: Sequence[str]) -> dict[str, int]:
    """Return the numbers from 0 of words for grades in the order of SCALE; empty where one is not in it."""
    found = sorted((SCALE.index(plain), word) for word in words if (plain := words_of(word)) in SCALE)
    levels = sorted({place for place, _ in found})
    return {word: levels.index(place) for place, word in found} if len(found) == len(words) else {}


def tells_after(name: str) -> bool:
    """Return whether a name is that of what follows a ranking, and not of what was so before it."""
    return bool(named_like(AFTER_WORDS, [name])) and not re.search(rf"\b(?:{_BEFORE})", words_of(name))
