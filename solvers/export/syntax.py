"""Checks that an export has the tokens, fields and types that the parser of its engine takes.

Source: SolrPluginUtils.invokeSetters of apache/solr, which gives each parameter to a setter of one type: numbers of
trees are text, weights are numbers; LinearRankerParser and XGBoostAnyParser of o19s/elasticsearch-learning-to-rank;
SchemaParser.jj and RankingExpressionParser.jj of vespa-engine/vespa; CoorAscent, Ensemble and Split of RankLib.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Set
from typing import TypeAlias, cast
from xml.etree import ElementTree

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import json_of

Rule: TypeAlias = object
"""A type (float: any number), a pattern of text, the values that there are, a list of at least one, fields (those with
a question mark may be left out), or a function that returns the rule of a value."""
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", re.A)
_WORDS = re.compile(r".+", re.S)


def check_syntax(format: str, content: str) -> None:
    """Raise DataError where an engine would not load what was written in its format."""
    try:
        SYNTAX[format](content)
    except (_Refused, ValueError, ElementTree.ParseError) as error:
        raise DataError(f"{format} does not load the model: {error}. Export it again.") from None


def check_written(format: str, content: str | bytes) -> str:
    """Return a sentence on an export in the format of an engine. Raises DataError as check_syntax does."""
    check_syntax(format, str(content))
    return f"Checked: the file has the syntax that {format} loads; it was not scored."


class _Refused(Exception):
    """What a parser refuses."""


def _demand(holds: object, why: str) -> None:
    if not holds:
        raise _Refused(why)


def _conform(value: object, rule: Rule, where: str = "the model") -> None:
    waiting: list[tuple[str, object, Rule]] = [(where, value, rule)]
    while waiting:
        where, value, rule = waiting.pop()
        if callable(rule) and not isinstance(rule, type):
            if not isinstance(value, dict):
                raise _Refused(f"{where} is no object")
            rule = rule(value)
        if isinstance(rule, list):
            if not isinstance(value, list) or not value:
                raise _Refused(f"{where} is no list, or an empty one")
            waiting += [(where, item, rule[0]) for item in value]
        elif isinstance(rule, Mapping):
            known = {name.removesuffix("?") for name in rule}
            if not isinstance(value, dict) or not value.keys() <= known:
                raise _Refused(f"{where} has other fields than {sorted(known)}")
            for name, inner in rule.items():
                field = name.removesuffix("?")
                _demand(name != field or field in value, f"{where} lacks {field!r}")
                waiting += [(field, value[field], inner)] if field in value else []
        elif isinstance(rule, type):
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            _demand(is_number if rule is float else type(value) is rule, f"{where} cannot be {value!r:.40}")
        elif isinstance(rule, re.Pattern):
            _demand(isinstance(value, str) and rule.fullmatch(value), f"{where} cannot be {value!r:.40}")
        elif isinstance(rule, Set):
            _demand(value in rule, f"{where} cannot be {value!r:.40}")


def _solr(text: str) -> None:
    model = cast(JsonView, json_of(text))
    kind = "org.apache.solr.ltr.model."
    norm = {"class": _WORDS, "params": {"min": _NUMBER, "max": _NUMBER}}
    rules: dict[str, Rule] = {"class": _WORDS, "store": _WORDS, "name": _WORDS, "params": dict}
    _conform(model, rules | {"features": [{"name": _WORDS, "norm?": norm}]})
    names = frozenset(feature["name"] for feature in model["features"])
    _demand(len(names) == len(model["features"]), "two features have one name")

    def node(value: JsonView) -> Rule:
        sides = {"threshold": _NUMBER, "missing?": frozenset({"left", "right"}), "left": node, "right": node}
        return {"feature": names, **sides} if "feature" in value else {"value": _NUMBER}

    kinds: dict[str, Rule] = {
        f"{kind}LinearModel": {"weights": dict.fromkeys(names, float)},
        f"{kind}MultipleAdditiveTreesModel": {"trees": [{"weight": _NUMBER, "root": node}], "isNullSameAsZero?": bool},
    }
    _conform(model["class"], frozenset(kinds), "class")
    _conform(model["params"], kinds[model["class"]], "params")


def _plugin(text: str) -> None:
    model = cast(JsonView, json_of(text))
    types = frozenset({"model/linear", "model/xgboost+json"})
    _conform(model, {"model": {"name": _WORDS, "model": {"type": types, "definition": str}}})
    definition = json_of(model["model"]["model"]["definition"])
    if model["model"]["model"]["type"] == "model/linear":
        _conform(definition, lambda weights: dict.fromkeys(weights, float))
    elif isinstance(definition, dict):
        _conform(definition, {"splits": [_plugin_node], "missing_as_zero?": bool, "objective?": str})
    else:
        _conform(definition, [_plugin_node])


def _plugin_node(value: JsonView) -> Rule:
    if "leaf" in value:
        return {"nodeid": int, "leaf": float, "depth?": int}
    ends = [child.get("nodeid") for child in value.get("children", ()) if isinstance(child, dict)]
    _demand(len(ends) == 2, "a split has not two children")
    yes, no = (
        {"nodeid": int, "depth": int, side: frozenset({end})} for side, end in zip(("yes", "no"), ends, strict=True)
    )
    split = {"split": str, "split_condition": float, "missing?": frozenset(ends), "children": [_plugin_node]}
    return {**yes, **no, **split}


def _ranklib(text: str) -> None:
    first, _, rest = text.partition("\n")
    body = "".join(line.strip() for line in rest.splitlines() if not line.startswith("#"))
    if first != "## LambdaMART":
        _demand(first == "## Coordinate Ascent", "its first line names no ranker")
        pairs = (part.partition(":") for part in body.split(" "))
        _demand(all(key.isdigit() and _NUMBER.fullmatch(weight) for key, _, weight in pairs), "a weight is no number")
        return
    ensemble = ElementTree.fromstring(body)
    for tree in ensemble:
        given = tree.tag == "tree" and [part.tag for part in tree] == ["split"]
        _demand(given and _NUMBER.fullmatch(tree.get("weight", "")), "a tree has a weight and a split")
    for split in ensemble.iter("split"):
        parts, sides = [part.tag for part in split], [part.get("pos") for part in split[2:]]
        given = (parts, sides) in ((["output"], []), (["feature", "threshold", "split", "split"], ["left", "right"]))
        _demand(given and all(_NUMBER.fullmatch(part.text or "") for part in split[:2]), "a split or leaf is damaged")


_ARGUMENT = r"(?:[A-Za-z_][\w.]*|\d{1,9})"
_FEATURE = rf"(?!isNan|if)[A-Za-z_]\w*\({_ARGUMENT}(?:, ?{_ARGUMENT})*\)(?:\.[A-Za-z_]\w*)?"
_OPERAND = re.compile(rf'{_FEATURE}|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|"(?:[^"\\]|\\.)*"', re.A)
_TOKEN = re.compile(rf"\s*({_OPERAND.pattern}|<=|==|\|\||[-+*/(),]|[A-Za-z_]\w*)", re.A)
_FUNCTION = re.compile(r" +# (\".*\")\n +function (\w+)\(\) \{\n(?: +#.*\n)? +expression: ([^{}\n]*)\n +\}\n", re.A)
_PROFILE = re.compile(
    r"(?:#.*\n)*rank-profile \w+ inherits default \{\n"
    r"(?: +first-phase \{\s+expression \{(?P<first>[^{}]*)\}\s+\}\n)?"
    r" +second-phase \{\n(?: +rerank-count: \d+\n)? +expression \{(?P<second>[^{}]*)\}\s+\}\n"
    r" +match-features \{(?P<listed>[^{}]*)\}\n\}\n",
    re.A,
)


def _vespa(text: str) -> None:
    functions = {word: expression for _, word, expression in _FUNCTION.findall(text)}
    profile = _PROFILE.fullmatch(_FUNCTION.sub("", text))
    _demand(profile, "it is no profile of functions, phases and match-features")
    assert profile is not None
    _demand(profile["listed"].split() == [*functions], "match-features are other names than those of the functions")
    for expression in (*functions.values(), profile["first"] or "0", profile["second"]):
        _check_expression(expression, functions.keys())


def _check_expression(text: str, words: Set[str]) -> None:
    """Check an expression of operands, operators, isNan(value) and if(test, yes, no).

    Releases until 2022 took || before comparisons, later ones after: both have parentheses.
    """
    _demand(not _TOKEN.sub("", text).strip(), "an expression is not of the language")
    tokens = _TOKEN.findall(text)
    opened: list[tuple[str, list[list[str]]]] = [("", [[]])]  # function, and the comparisons of each argument
    wanted, previous = True, ""
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if wanted and token == "(":
            opened.append((previous if previous in ("if", "isNan") else "(", [[]]))
        elif wanted and token in ("if", "isNan"):
            _demand(following == "(", f"{token} has no argument")
        elif wanted:
            _demand(token == "-" or token in words or _OPERAND.fullmatch(token), f"{token!r} is not defined")
            wanted = token == "-"
        else:
            function, arguments = opened[-1]
            wanted = token != ")"
            if token in ("<=", "==", "||"):
                arguments[-1].append(token)
            elif token == ",":
                arguments.append([])
            _demand(token in ("<=", "==", "||", ",", ")", *"-+*/"), f"{token!r} follows a value")
            if token == ")":
                _demand(len(opened) > 1 and len(arguments) == (3 if function == "if" else 1), f"{function} is damaged")
                _demand(all(len(c) < 2 or {*c} == {"||"} for c in arguments), "|| and <= need parentheses")
                opened.pop()
        previous = token
    _demand(not wanted and len(opened) == 1 and len(opened[0][1]) == 1, "an expression ends before its end")
    _demand(len(opened[0][1][0]) < 2 or {*opened[0][1][0]} == {"||"}, "|| and <= need parentheses")


SYNTAX: Mapping[str, Callable[[str], None]] = {
    "solr": _solr,
    "elasticsearch": _plugin,
    "opensearch": _plugin,
    "vespa": _vespa,
    "ranklib": _ranklib,
}
"""Format of an engine -> function that checks a text."""
