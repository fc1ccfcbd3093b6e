"""Whether what was exported ranks as the model does, by an evaluator that shares no code with the model.

onnx is scored by onnxruntime, python by the function that was written, a document at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats, Matrix, dense
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.base import Model

ROWS = 4096
"""Documents made dense at a time."""


@dataclass(frozen=True)
class Agreement:
    """How far an exported model agrees with its origin.

    evaluator   who scored it
    queries     number of queries
    same        of these, how many are ranked alike: in the exported order no document has a lower score of the model
                than the one behind it; documents that the model scores alike may stand in any order
    difference  largest difference of the two scores of a document, as a part of the model's largest score
    """

    evaluator: str
    queries: int
    same: int
    difference: float


def check_evaluator(format: str) -> None:
    """Raise ParameterError for a format that nothing here can score, or where what scores it is not installed."""
    if format not in EVALUATORS:
        raise ParameterError(f"nothing here can score {format}: only {' and '.join(EVALUATORS)} can be checked.")
    if format == "onnx":
        _onnxruntime()


def agreement(model: Model, format: str, content: str | bytes, queries: Queries) -> Agreement:
    """Return how far content, which export made of model in that format, ranks queries as the model does.

    Raises ParameterError as check_evaluator does, DataError where queries do not have the model's features.
    """
    check_evaluator(format)
    evaluator, evaluate = EVALUATORS[format]
    ours = model.predict(replace(queries, rows=None))
    theirs = np.concatenate([np.zeros(0), *evaluate(content, _blocks(model, queries))])
    largest = float(np.abs(ours).max(initial=0.0)) or 1.0
    difference = float(np.abs(theirs - ours).max(initial=0.0)) / largest
    pairs = zip(queries.starts[:-1].tolist(), queries.starts[1:].tolist(), strict=True)
    same = sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in pairs)
    return Agreement(evaluator, queries.n_queries, same, difference)


def ranks_alike(ours: Floats, theirs: Floats) -> bool:
    """Return whether sorting documents by theirs, equal ones as they stood, is an order by ours too."""
    return bool((np.diff(ours[np.argsort(-theirs, kind="stable")]) <= 0.0).all())


def _blocks(model: Model, queries: Queries) -> Iterator[tuple[tuple[str, ...], Matrix]]:
    """Yield names and dense values of the features that matter, some documents at a time."""
    source = source_of(model, "python", "checked", "")
    columns = source.columns
    if queries.feature_names is not None and model.feature_names is not None:
        where = {name: place for place, name in enumerate(queries.feature_names)}
        columns = np.array([where[name] for name in source.names])
    features = queries.features[:, columns]
    for first in range(0, queries.n_documents, ROWS):
        part = features[first : first + ROWS]
        yield source.names, dense(part)


def _by_function(content: str | bytes, blocks: Iterator[tuple[tuple[str, ...], Matrix]]) -> Iterator[Floats]:
    """Yield the scores that the function gives to documents as mappings."""
    made: dict[str, Any] = {}
    exec(compile(content, "exported", "exec"), made)
    score: Callable[[Mapping[str, float]], float] = made["score"]
    for names, values in blocks:
        yield np.array([score(dict(zip(names, row, strict=True))) for row in values.tolist()])


def _by_onnxruntime(content: str | bytes, blocks: Iterator[tuple[tuple[str, ...], Matrix]]) -> Iterator[Floats]:
    """Yield the scores that onnxruntime gives."""
    session = _onnxruntime().InferenceSession(content, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    for known, values in blocks:
        assert names == list(known)
        yield session.run(["score"], {"features": values.astype(np.float32)})[0][:, 0].astype(np.float64)


def _onnxruntime() -> Any:
    try:
        return import_module("onnxruntime")
    except ImportError:
        raise ParameterError("to check ONNX onnxruntime is needed: pip install onnxruntime. Or do without.") from None


EVALUATORS: Mapping[str, tuple[str, Callable[..., Iterator[Floats]]]] = {
    "onnx": ("onnxruntime", _by_onnxruntime),
    "python": ("the Python function", _by_function),
}
"""Format -> who scores it, and how."""
