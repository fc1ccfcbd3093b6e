"""Checks that an export ranks as its model does, by an evaluator that shares no code with the model.

onnx is scored by onnxruntime, lightgbm by LightGBM, python by the exported function: a document at a time, or a query
at a time where the model compares its documents. Formats of engines are scored by the engines alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Json, Matrix, dense
from ranktune.solvers.core.errors import ParameterError, listed
from ranktune.solvers.data.blocks import rows_of
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.source import source_of
from ranktune.solvers.export.syntax import SYNTAX
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
class Agreement:
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
    known = [*EVALUATORS, *SYNTAX]
    if format not in known:
        raise ParameterError(f"nothing here can check {format}: only {listed(known)} can be checked.")
    if format in _LIBRARIES:
        _library(format)


def agreement(model: Model, format: str, content: str | bytes, queries: Queries) -> Agreement:
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
    return Agreement(evaluator, queries.n_queries, same, difference)


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
    for known, _, values, starts in parts:
        assert names == list(known)
        numbers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        given = {"features": values.astype(np.float32), "queries": numbers}
        scores = session.run(["score"], {name: array for name, array in given.items() if name in inputs})[0]
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
