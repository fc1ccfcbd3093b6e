"""Checks that an export ranks as its model does, by an evaluator that shares no code with the model.

onnx is scored by onnxruntime, lightgbm by LightGBM, python by the exported function: a document at a time, or a query
at a time where the model compares its documents. Formats of engines are scored by the engines alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple, TypeAlias, cast
from xml.etree import ElementTree

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Json, JsonView, Matrix, dense
from ranktune.solvers.core.errors import DataError, ParameterError, listed
from ranktune.solvers.data.blocks import rows_of
from ranktune.solvers.data.columns.grammar import json_of
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.base import Model


class Block(NamedTuple):
    """Dense values of the documents of some queries, (n, n_used), with names and columns in training of the features.

    starts: (n_queries + 1,) the first row of each query
    """

    names: tuple[str, ...]
    columns: Ints
    values: Matrix
    starts: Ints


Evaluate: TypeAlias = Callable[[str | bytes, Iterator[Block]], Iterator[Floats]]
"""Yields the scores of the documents of each block by an export."""
BLOCK_ROWS = 4096
"""Documents that are made dense at a time; a query with more is a block."""


@dataclass(frozen=True)
class ExportAgreement:
    """How far an export agrees with its model.

    evaluator   what scored the export
    queries     number of queries
    same        number of queries that both rank alike; documents of equal score in the model may be in any order
    difference  largest difference of the two scores of a document, relative to the largest score of the model
    """

    evaluator: str
    queries: int
    same: int
    difference: float


def check_evaluator(format: str) -> None:
    """Raise ParameterError for a format that has no evaluator or syntax, or whose evaluator is not installed."""
    formats = [*EVALUATORS, *SYNTAX]
    if format not in formats:
        raise ParameterError(f"nothing here can check {format}: only {listed(formats)} can be checked.")
    if format in _LIBRARIES:
        _library(format)


def agreement(model: Model, format: str, content: str | bytes, queries: Queries) -> ExportAgreement:
    """Return how far content, the export of model in a format of EVALUATORS, ranks queries as the model does.

    Raises ParameterError as check_evaluator does, and DataError where queries lack the model's features.
    """
    check_evaluator(format)
    evaluator, evaluate = EVALUATORS[format]
    scores = model.predict(replace(queries, rows=None, features_checked=True))
    exported = np.concatenate([np.zeros(0), *evaluate(content, _blocks(model, queries))])
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    difference = float(np.abs(exported - scores).max(initial=0.0)) / largest
    pairs = zip(queries.starts[:-1].tolist(), queries.starts[1:].tolist(), strict=True)
    same = sum(ranks_alike(scores[a:b], exported[a:b]) for a, b in pairs)
    return ExportAgreement(evaluator, queries.n_queries, same, difference)


def ranks_alike(scores: Floats, exported: Floats) -> bool:
    """Return whether a stable sort of the documents by exported is sorted by scores too."""
    return bool((np.diff(scores[np.argsort(-exported, kind="stable")]) <= 0.0).all())


def _blocks(model: Model, queries: Queries) -> Iterator[Block]:
    """Yield names and dense values of the features that influence a score, some queries at a time."""
    source = source_of(model, "python", "checked", "")
    columns = source.columns
    if queries.feature_names is not None and model.feature_names is not None:
        where = {name: column for column, name in enumerate(queries.feature_names)}
        columns = np.array([where[name] for name in source.names])
    for first, last in blocks(queries.starts, BLOCK_ROWS):
        starts = queries.starts[first : last + 1]
        rows = rows_of(queries.features, int(starts[0]), int(starts[-1]))
        yield Block(source.names, source.columns, dense(rows[:, columns]), starts - starts[0])


def _by_function(content: str | bytes, parts: Iterator[Block]) -> Iterator[Floats]:
    """Yield the scores of the exported function."""
    namespace: Json = {}
    exec(compile(content, "exported", "exec"), namespace)
    score: Callable[[Mapping[str, float]], float] | None = namespace.get("score")
    for names, _, values, starts in parts:
        documents = [dict(zip(names, row, strict=True)) for row in values.tolist()]
        if score is not None:
            yield np.array(list(map(score, documents)))
        else:
            yield np.concatenate([namespace["scores"](documents[a:b]) for a, b in pairwise(starts.tolist())])


def _by_onnxruntime(content: str | bytes, parts: Iterator[Block]) -> Iterator[Floats]:
    """Yield the scores of onnxruntime."""
    session = _library("onnx").InferenceSession(content, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    inputs = {port.name for port in session.get_inputs()}
    for names_of_part, _, values, starts in parts:
        assert names == list(names_of_part)
        numbers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        arrays = {"features": values.astype(np.float32), "queries": numbers}
        scores = session.run(["score"], {name: array for name, array in arrays.items() if name in inputs})[0]
        yield scores[:, 0].astype(np.float64)


def _by_lightgbm(content: str | bytes, parts: Iterator[Block]) -> Iterator[Floats]:
    """Yield the scores of LightGBM, which takes all columns of the training data."""
    booster = _library("lightgbm").Booster(model_str=content)
    for _, columns, values, _ in parts:
        whole = np.zeros((len(values), booster.num_feature()))
        whole[:, columns] = values
        yield booster.predict(whole)


_LIBRARIES: Mapping[str, str] = {"onnx": "onnxruntime", "lightgbm": "lightgbm"}
"""Format -> the library that scores it."""


def _library(format: str) -> ModuleType:
    name = _LIBRARIES[format]
    try:
        return import_module(name)
    except ImportError:
        raise ParameterError(f"checking {format} requires {name}: pip install {name}. Or do not check.") from None


EVALUATORS: Mapping[str, tuple[str, Evaluate]] = {
    "onnx": ("onnxruntime", _by_onnxruntime),
    "lightgbm": ("LightGBM", _by_lightgbm),
    "python": ("the Python function", _by_function),
}
"""Format -> name of the evaluator, and the evaluator."""


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
            fields = {name.removesuffix("?") for name in rule}
            if not isinstance(value, dict) or not value.keys() <= fields:
                raise _Refused(f"{where} has other fields than {sorted(fields)}")
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
        is_form = tree.tag == "tree" and [part.tag for part in tree] == ["split"]
        _demand(is_form and _NUMBER.fullmatch(tree.get("weight", "")), "a tree has a weight and a split")
    for split in ensemble.iter("split"):
        parts, sides = [part.tag for part in split], [part.get("pos") for part in split[2:]]
        is_form = (parts, sides) in ((["output"], []), (["feature", "threshold", "split", "split"], ["left", "right"]))
        _demand(is_form and all(_NUMBER.fullmatch(part.text or "") for part in split[:2]), "a split or leaf is damaged")


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
