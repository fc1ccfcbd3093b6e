"""Scores by the second phase of a rank profile of Vespa, in double precision.

Source: Vespa's reference of schemas (rank-profile, function, constants, second-phase), of ranking expressions
(arithmetic, comparisons, if, isNan) and of rank features: an attribute without a value is NaN, and what matches nothing
is 0. What a function computes of a rank feature, such as an age, is taken as the feature that the comment above names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Set
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.export.readers.trees import Columns, Score, check_that

Value: TypeAlias = Callable[[Columns, Ints], Floats]
"""The value of an expression for some rows of columns."""

_ARGUMENT = r"(?:[A-Za-z_][\w.]*|\d{1,9})"
_FEATURE = rf"(?!isNan|if)[A-Za-z_]\w*\({_ARGUMENT}(?:, ?{_ARGUMENT})*\)(?:\.[A-Za-z_]\w*)?"
_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(rf'\s*({_FEATURE}|{_NUMBER}|<=|==|\|\||[-+*/(),]|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*)', re.A)
_FUNCTION = re.compile(r" +# (\".*\")\n +function (\w+)\(\) \{\n(?: +#.*\n)? +expression: ([^{}\n]*)\n +\}\n", re.A)
_PROFILE = re.compile(
    r"(?:#.*\n)*rank-profile \w+ inherits default \{\n"
    r"(?: +first-phase \{\s+expression \{(?P<first>[^{}]*)\}\s+\}\n)?"
    r" +second-phase \{\n(?: +rerank-count: \d+\n)? +expression \{(?P<second>[^{}]*)\}\s+\}\n"
    r" +match-features \{(?P<listed>[^{}]*)\}\n\}\n",
    re.A,
)


def read_vespa(text: str, absent: str) -> Score:
    """Return what scores documents by a profile; what is absent is what its functions make of it."""
    functions = [(json.loads(name), word, expression) for name, word, expression in _FUNCTION.findall(text)]
    words = [word for _, word, _ in functions]
    rest = _PROFILE.fullmatch(_FUNCTION.sub("", text))
    check_that(rest is not None, "Vespa", "it is no profile of functions, phases and match-features")
    assert rest is not None
    check_that(rest["listed"].split() == words, "Vespa", "match-features")
    for expression in (*(expression for *_, expression in functions), rest["first"] or "0"):
        _Parser(expression, set(words)).whole()
    total = _Parser(rest["second"], set(words)).whole()

    def score(columns: Columns, n: int) -> Floats:
        known = {word: _meant(columns[name], expression) for name, word, expression in functions}
        return total(known, np.arange(n))

    return score


def _meant(values: Floats, expression: str) -> Floats:
    """Return the values of a function where some documents do not have the feature.

    Only a function of an attribute alone is NaN then: a comparison of texts and a score of text are 0, and so is what
    the function itself makes 0 by isNan.
    """
    is_nan = "attribute(" in expression and "isNan(" not in expression and '"' not in expression
    return values if is_nan else np.nan_to_num(values)


_OPERATORS: Mapping[str, tuple[int, np.ufunc]] = {
    "||": (0, np.logical_or),
    "<=": (0, np.less_equal),
    "==": (0, np.equal),
    "+": (1, np.add),
    "-": (1, np.subtract),
    "*": (2, np.multiply),
    "/": (2, np.divide),
}
"""How strongly each binds. Releases until 2022 took || before comparisons, later ones after: both have parentheses."""


class _Parser:
    """Expressions of numbers, features, operators, isNan(value) and if(test, yes, no)."""

    def __init__(self, text: str, words: Set[str]) -> None:
        check_that(not _TOKEN.sub("", text).strip(), "Vespa", "an expression is not of the language")
        self.tokens, self.at, self.words = [*_TOKEN.findall(text), ""], 0, words

    def whole(self) -> Value:
        """Return the value of the whole text."""
        value = self._value()
        self._take("")
        return value

    def _take(self, *wanted: str) -> str:
        token: str = self.tokens[self.at]
        check_that(token in wanted if wanted else token != "", "Vespa", f"an expression has {token!r}, not {wanted}")
        self.at += 1
        return token

    def _value(self, level: int = 0) -> Value:
        first, more = self._atom(), []
        while (token := self.tokens[self.at]) in _OPERATORS and _OPERATORS[token][0] >= level:
            binds, operator = _OPERATORS[self._take()]
            more.append((token, operator, self._value(binds + 1)))
        tests = [token for token, *_ in more if _OPERATORS[token][0] == 0]
        check_that(len(tests) < 2 or set(tests) == {"||"}, "Vespa", "|| and <= need parentheses")

        def value(columns: Columns, rows: Ints) -> Floats:
            total = first(columns, rows)
            for _, operator, other in more:
                total = operator(total, other(columns, rows))
            return total

        return value

    def _atom(self) -> Value:
        token = self._take()
        if token == "-":
            token += self._take()
        if re.fullmatch(f"-?{_NUMBER}", token):
            number = float(token)
            return lambda columns, rows: np.full(len(rows), number)
        if token not in ("(", "if", "isNan"):
            check_that(token in self.words or token[0] == '"' or "(" in token, "Vespa", f"{token} is not defined")
            return lambda columns, rows: columns[token][rows]
        if token != "(":
            self._take("(")
        parts = [self._value()]
        while self._take(",", ")") == ",":
            parts.append(self._value())
        check_that(len(parts) == (3 if token == "if" else 1), "Vespa", f"{token} has {len(parts)} arguments")
        if token == "if":
            return _choice(*parts)
        return parts[0] if token == "(" else lambda columns, rows: np.isnan(parts[0](columns, rows))


def _choice(test: Value, yes: Value, no: Value) -> Value:
    def value(columns: Columns, rows: Ints) -> Floats:
        holds = test(columns, rows) != 0.0
        result = np.empty(len(rows))
        for branch, chosen in ((yes, holds), (no, ~holds)):
            if chosen.any():
                result[chosen] = branch(columns, rows[chosen])
        return result

    return value
