"""Scores by the second phase of a rank profile of Vespa, in double precision.

Source: Vespa's reference of schemas (rank-profile, function, constants, second-phase), of ranking expressions
(arithmetic, comparisons, if, isNan) and of rank features: an attribute without a value is NaN, and what matches nothing
is 0. What a function computes of a rank feature, such as an age, is taken as the feature that the comment above names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.export.readers.trees import Columns, Score, check_that

Value: TypeAlias = Callable[[Columns, Ints], Floats]
"""The value of an expression for some rows of columns."""

_TOKEN = re.compile(r"\s*(-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|<=|==|\|\||[A-Za-z_]\w*|[(),*+])")
_FUNCTION = re.compile(r"# (\".*\")\n +function (\w+)\(\) \{\n(?: +#.*\n)* +expression: (.*)\n")


def read_vespa(text: str, absent: str) -> Score:
    """Return what scores documents by a profile; what is absent is what its functions make of it."""
    constants = re.search(r"constants \{\n(.*?)\n    \}", text, flags=re.S)
    fixed = dict(line.strip().split(": ") for line in constants[1].splitlines()) if constants else {}
    functions = [(json.loads(name), word, expression) for name, word, expression in _FUNCTION.findall(text)]
    second = re.search(r"second-phase \{.*?expression \{\n(.*?)\n        \}", text, flags=re.S)
    listed = re.search(r"match-features \{\n(.*?)\n    \}", text, flags=re.S)
    check_that(second is not None, "Vespa", "the profile has no second phase")
    check_that(
        listed is not None and listed[1].split() == [word for _, word, _ in functions], "Vespa", "match-features"
    )
    assert second is not None
    terms = _Parser(second[1], {name: float(number) for name, number in fixed.items()}).terms()

    def score(columns: Columns, n: int) -> Floats:
        known = {word: _meant(columns[name], expression) for name, word, expression in functions}
        rows = np.arange(n)
        return _added([term(known, rows) for term in terms])

    return score


def _added(values: Sequence[Floats]) -> Floats:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _meant(values: Floats, expression: str) -> Floats:
    """Return the values of a function where some documents do not have the feature.

    Only a function of an attribute alone is NaN then: a comparison of texts and a score of text are 0, and so is what
    the function itself makes 0 by isNan.
    """
    is_nan = "attribute(" in expression and "isNan(" not in expression and '"' not in expression
    return values if is_nan else np.nan_to_num(values)


class _Parser:
    """Sums of products of numbers, names, isNan(a) and if(a <= b || a == b, yes, no)."""

    def __init__(self, text: str, constants: Mapping[str, float]) -> None:
        self.tokens = _TOKEN.findall(text)
        check_that(re.sub(r"\s", "", text) == "".join(self.tokens), "Vespa", "an expression is not of the language")
        self.at, self.constants = 0, constants

    def terms(self) -> list[Value]:
        """Return the terms of the sum that the whole text is."""
        terms = self._sum()
        check_that(self.at == len(self.tokens), "Vespa", "an expression ends too early")
        return terms

    def _take(self, wanted: str | None = None) -> str:
        check_that(self.at < len(self.tokens), "Vespa", "an expression is not complete")
        token: str = self.tokens[self.at]
        check_that(wanted in (None, token), "Vespa", f"an expression has {token} for {wanted}")
        self.at += 1
        return token

    def _next_is(self, token: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == token

    def _sum(self) -> list[Value]:
        terms = [self._product()]
        while self._next_is("+"):
            self._take()
            terms.append(self._product())
        return terms

    def _value(self) -> Value:
        terms = self._sum()
        return terms[0] if len(terms) == 1 else lambda columns, rows: _added([t(columns, rows) for t in terms])

    def _product(self) -> Value:
        value = self._atom()
        while self._next_is("*"):
            self._take()
            value = _times(value, self._atom())
        return value

    def _atom(self) -> Value:
        token = self._take()
        if token == "if":
            return self._choice()
        if token == "isNan":
            self._take("(")
            inner = self._value()
            self._take(")")
            return lambda columns, rows: np.isnan(inner(columns, rows)).astype(np.float64)
        if token in self.constants or re.match(r"-?\d", token):
            number = self.constants[token] if token in self.constants else float(token)
            return lambda columns, rows: np.full(len(rows), number)
        return lambda columns, rows: columns[token][rows]

    def _choice(self) -> Value:
        self._take("(")
        tests = [self._comparison()]
        while self._next_is("||"):
            self._take()
            tests.append(self._comparison())
        self._take(",")
        yes = self._value()
        self._take(",")
        no = self._value()
        self._take(")")

        def value(columns: Columns, rows: Ints) -> Floats:
            holds = np.any([test(columns, rows) for test in tests], axis=0)
            result = np.empty(len(rows))
            for branch, chosen in ((yes, holds), (no, ~holds)):
                if chosen.any():
                    result[chosen] = branch(columns, rows[chosen])
            return result

        return value

    def _comparison(self) -> Callable[[Columns, Ints], Mask]:
        left, operator, right = self._value(), self._take(), self._value()
        check_that(operator in ("<=", "=="), "Vespa", f"{operator} is no comparison that is read here")
        compare = np.less_equal if operator == "<=" else np.equal
        return lambda columns, rows: np.asarray(compare(left(columns, rows), right(columns, rows)))


def _times(first: Value, second: Value) -> Value:
    return lambda columns, rows: first(columns, rows) * second(columns, rows)
