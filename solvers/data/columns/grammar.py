"""What all formats share: what a number is, that a name stands once, and which whole numbers a double holds.

Every reader asks here, so that a table is read alike in each format, or refused. Numbers in text may be as people write
them: money, percentages, thousands, decimal commas. A column is read in one way.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import ParameterError, warn

T = TypeVar("T")

_FIRST, _LAST = frozenset("+-.0123456789"), frozenset(".0123456789")
"""What numbers begin and end with; float() takes spaces, nan, inf, 1_0 and digits of all scripts too."""
EXACT = 1 << 53
"""Doubles tell whole numbers apart up to here."""
_LOOKED_AT = 1000
LARGE = 3.4e38
"""What is beyond it is looked at."""
ABSENT = "holds the largest number of float32 or float64 (3.40282e+38, 1.79769e+308), which says: missing."


class RepeatedName(ValueError):
    """A name that is given twice where it must be given once."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is given twice, and one value would replace the other. Keep one, or rename it")


def number_of(word: str) -> float | None:
    """Return the number that a word is, infinite if it is too large; None for any other word, such as 1_0 or nan.

    Numbers are [+-] DIGITS [. DIGITS] [e [+-] DIGITS], of ASCII, where one of the first two DIGITS may be missing.
    """
    try:
        number = float(word)
    except ValueError:
        return None
    return number if word[0] in _FIRST and word[-1] in _LAST and "_" not in word and word.isascii() else None


def once(pairs: Sequence[tuple[str, T]]) -> dict[str, T]:
    """Return pairs of names and values as a dictionary. Raises RepeatedName."""
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    raise RepeatedName(str(repeated(name for name, _ in pairs)))


def json_of(text: str | bytes) -> object:
    """Return the value of a JSON text. Raises RepeatedName for a key that is there twice, else what json does."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def repeated(names: Iterable[T]) -> T | None:
    """Return the first name that was there before, None if they all differ."""
    seen: set[T] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


_DECODER = json.JSONDecoder(object_pairs_hook=once)


def values_by_name(written: object, rule: str, read: Callable[[str], T | None]) -> dict[str, T]:
    """Return values by name, given as a mapping, as text such as "a=1,b=2", or as several texts.

    Raises ParameterError, with the rule, in which {} is what is given, for anything else, and where read returns None.
    """
    texts = written if isinstance(written, list | tuple) else [written]
    parts = (part for text in texts for part in re.split(",(?=[^,]*=)", str(text)) if part.strip())
    pairs = written.items() if isinstance(written, Mapping) else (part.rpartition("=")[::2] for part in parts)
    values = {str(name).strip(): read(str(value).strip()) for name, value in pairs}
    found = {name: value for name, value in values.items() if name and value is not None and value != ""}
    if len(found) < len(values):
        raise ParameterError(rule.replace("{}", repr(written)))
    return found


def is_largest(number: float) -> bool:
    """Return whether a number is the largest of float32 or float64, as far as its digits tell, some lost at the end."""
    return re.match(r"-?(1\.79769e\+30|3\.40282e\+38)", f"{number:.5e}") is not None


def without_largest(values: Array, what: str) -> Array:
    """Return values with NaN for the largest numbers, with a RankTuneWarning: no measurement is one."""
    if max(values.max(initial=0.0), -values.min(initial=0.0)) <= LARGE:  # without another array; not so with NaN
        return values
    largest = np.abs(values) > LARGE
    largest[largest] = [is_largest(number) for number in values[largest].tolist()]
    if not largest.any():
        return values
    warn(f"{what} {ABSENT}")
    return np.where(largest, values.dtype.type(np.nan), values)


def warn_of_rounding(number_at: Callable[[int], float], doubles: Array, what: str) -> None:
    """Warn (RankTuneWarning) where a number is whole and no double; doubles are the numbers of given(place)."""
    large = np.flatnonzero(np.abs(doubles) >= EXACT)[:_LOOKED_AT].tolist()
    lost = next((number for number in (number_at(place) for place in large) if int(number) != int(float(number))), None)
    if lost is not None:
        warn(
            f"{what} holds whole numbers beyond 2**53, such as {lost}, which are rounded to {float(lost):.0f}. Ids are "
            "no features: leave them out."
        )


def bits_of(text: str) -> int:
    """Return 64 bits that stand for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest())


def ids_of(values: Iterable[object]) -> list[str]:
    """Return ids of queries or documents as the text by which files name them."""
    return [text_of(value) or "" for value in values]


def text_of(value: object) -> str | None:
    """Return a value as text, the same for 7, "7" and 7.0."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if np.isnan(value) else f"{value:.0f}" if value.is_integer() else str(value)
    return None if value is None else str(value)


MISSING = ("", "NULL", "null", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "None", r"\N")
"""Cells without a value."""
_AMOUNT = (
    r"(\()?([+-]?)\s*UNIT\s*([+-]?)"
    r"((?:(?:[0-9]+|[1-9][0-9]{0,2}(?P<sign>[,'\u2019\s])(?:[0-9]{2,3}(?P=sign))*[0-9]{3})(?:\.[0-9]*)?|\.[0-9]+)(?:E[+-]?[0-9]+)?)"
    r"\s*UNIT(?(1)\))"
).replace(
    "UNIT",
    r"([%‰]|[A-Z]{0,3}[$€£¥₹₽₩₺₪₫₴₦฿₱₡₲₵₸₭₮₼₾]|AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR"
    r"|JPY|KRW|MXN|MYR|NGN|NOK|NZD|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR|(?:FR|KR|RS)[.,]?|FT|KČ|ZŁ|)",
)
"""With a decimal point, in capitals; a comma, an apostrophe or a space parts thousands."""


@dataclass(frozen=True)
class Amount:
    """One feature, the number in a text, such as $1,234.00.

    unit is the sign or code of a currency, or %, in capitals, which all cells have. decimal holds the signs that may be
    the decimal one: with both, a cell must be the same number by either.
    """

    unit: str
    decimal: str

    def value(self, text: str) -> float | None:
        """Return the number in a text, NaN where it stands for a missing one, None for text of another form."""
        (number, unit), *others = {_read(text, sign) for sign in self.decimal}
        if text.strip() in MISSING:
            return math.nan
        return None if others or unit != self.unit else number

    @classmethod
    def of(cls, texts: Collection[str]) -> list[Self]:
        """Return the ways to read all of the texts as amounts: two where it may be either of the decimal signs."""
        unit = max(_read(text, sign)[1] for text in texts for sign in ".,")
        return [way for decimal in (".,", ".", ",") if None not in map((way := cls(unit, decimal)).value, texts)]


def _read(text: str, decimal: str) -> tuple[float | None, str]:
    """Return the number in a text with that decimal sign, None where it has another form, and its unit."""
    text = text.strip().upper().replace("\u2212", "-")
    found = re.fullmatch(_AMOUNT, text if decimal == "." else text.translate(str.maketrans(".,", ",.")))
    if found is None:
        return None, ""
    opened, sign, before, inner, body, _, after = found.groups()
    number = float(re.sub(r"[,'\u2019\s]", "", body))
    return -number if opened or "-" in sign + inner else number, (before + after).strip(".,")
