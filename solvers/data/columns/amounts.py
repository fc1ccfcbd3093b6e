"""Numbers in text as people write them: money, percentages, thousands, decimal commas. A column is read in one way."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

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
