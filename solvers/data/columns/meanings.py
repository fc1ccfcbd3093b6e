"""What the names of columns tell, in the languages of many shops: words of queries, of grades, and of what comes after.

A name is part of the evidence only: it never decides what a column is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

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
