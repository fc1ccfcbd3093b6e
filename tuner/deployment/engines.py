"""What a model is shipped to: search engines that are running, and copies in a form that other systems load.

Models and definitions of features are created in engines, and values of features are read from them.
Source: Solr's guide (learning to rank: uploading features and models, the features transformer); the guides of the
learning-to-rank plugins of Elasticsearch and OpenSearch (working with features, logging feature scores).

What a copy loses is measured on queries whose documents it was not made from: on each half of the queries by a copy
made from the other half. Grades are not used to make a copy. Where the queries are those that the model was trained on,
which it ranks better than others, its copies lose more on them than on others: the loss is not underestimated.
"""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse
from numbers import Real
from threading import Thread
from typing import TypeAlias, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPErrorProcessor, Request, build_opener

import numpy as np

from ranktune.solvers.abilities import LINEAR, TREES
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import ParameterError, without_secrets
from ranktune.solvers.data.columns.grammar import json_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.distillation import distil
from ranktune.solvers.metrics.means import linearised, mean_or_zero
from ranktune.solvers.metrics.metrics import metric_for, parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.evaluation.models import microseconds_a_document
from ranktune.tuner.splits.forward import forward_or_dealt
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.study.abilities import can_load

TIMEOUT = 60.0
"""Seconds that a whole answer may take."""
MOST = 3.4e38
"""What single precision holds."""
LARGEST = 2**28
"""Bytes of an answer."""
T = TypeVar("T")
Engine: TypeAlias = "_Solr | _Plugin"
"""A running engine: it creates definitions and model, answers with values by document, and deletes the model."""
Values: TypeAlias = dict[str, tuple[float, dict[str, float]]]
"""Document -> its score by the model, and feature -> value, without features that the document does not have."""
MAX_LOSS = 0.002
"""The loss of the metric that a copy may have."""
ONE_SIDED_Z = 1.645
"""Standard errors above MAX_LOSS from which a loss is significantly above it, at a level of .05."""


def engine_of(format: str, url: str, name: str, store: str) -> Engine:
    """Return the engine of a format at an address. Raises ParameterError for an address without an index."""
    if format not in ("solr", "elasticsearch", "opensearch"):
        raise ParameterError(f"{format} has no interface that models are created by: write into a folder.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        form = "http://HOST:8983/solr/COLLECTION" if format == "solr" else "http://HOST:9200/INDEX"
        raise ParameterError(f"to= must be {form}, since the replay reads documents of that index.")
    return _Solr(url, name, store) if format == "solr" else _Plugin(url, name)


class _Plugin:
    """The learning-to-rank plugin of Elasticsearch or OpenSearch."""

    def __init__(self, url: str, name: str) -> None:
        self.index, self.name = url.rstrip("/"), name
        self.base = self.index.rpartition("/")[0] + "/_ltr"

    def create(self, files: Mapping[str, str]) -> None:
        features = f"{self.base}/_featureset/{quote(self.name, safe='')}"
        _send("PUT", self.base, "", accepted="exists")
        _send("PUT", features, files["featureset.json"])
        _send("POST", f"{features}/_createmodel", files["model.json"])

    def values(self, parameters: Mapping[str, str], documents: Sequence[str], features: Sequence[str]) -> Values:
        logged = {"_name": "logged", "featureset": self.name, "params": parameters}
        request = {
            "size": len(documents),
            "_source": False,
            "query": {"bool": {"filter": [{"terms": {"_id": list(documents)}}, {"sltr": logged}]}},
            "rescore": {
                "window_size": len(documents),
                "query": {"rescore_query": {"sltr": {"model": self.name, "params": parameters}}, "query_weight": 0.0},
            },
            "ext": {"ltr_log": {"log_specs": {"name": "values", "named_query": "logged"}}},
        }
        hits = _at(_send("POST", f"{self.index}/_search", json.dumps(request)), list, "hits", "hits")
        return {
            _at(hit, str, "_id"): (
                _number_at(hit, "_score"),
                {
                    _at(entry, str, "name"): _number_at(entry, "value")
                    for entry in _at(hit, list, "fields", "_ltrlog", 0, "values")
                    if "value" in _at(entry, dict)
                },
            )
            for hit in hits
        }

    def delete(self) -> None:
        _send("DELETE", f"{self.base}/_model/{quote(self.name, safe='')}", "")


class _Solr:
    """Solr with its learning-to-rank module."""

    def __init__(self, url: str, name: str, store: str) -> None:
        self.url, self.name, self.store = url.rstrip("/"), name, store

    def create(self, files: Mapping[str, str]) -> None:
        _send("PUT", f"{self.url}/schema/feature-store", files["features.json"])
        _send("PUT", f"{self.url}/schema/model-store", files["model.json"])

    def values(self, parameters: Mapping[str, str], documents: Sequence[str], features: Sequence[str]) -> Values:
        quoted = ((name, text.replace("\\", "\\\\").replace("'", "\\'")) for name, text in parameters.items() if text)
        efi = " ".join(f"efi.{name}='{text}'" for name, text in quoted)
        request = {
            "query": "*:*",
            "filter": ["{!terms f=id separator='\u001f' v=$wanted}"],
            "fields": ["id", "score", f"values:[features store={self.store} format=dense {efi}]"],
            "limit": len(documents),
            # "ids" would be Solr's own parameter, of a list with commas
            "params": {
                "wanted": "\u001f".join(documents),
                "rq": f"{{!ltr model=$model reRankDocs={len(documents)} {efi}}}",
                "model": self.name,
            },
        }
        answer = _send("POST", f"{self.url}/query", json.dumps(request))
        documents = _at(answer, list, "response", "docs")
        return {
            _at(found, str, "id"): (_number_at(found, "score"), _parsed(_at(found, str, "values"), features))
            for found in documents
        }

    def delete(self) -> None:
        _send("DELETE", f"{self.url}/schema/model-store/{quote(self.name, safe='')}", "")


def _parsed(text: str, features: Sequence[str]) -> dict[str, float]:
    """Return the values in a text such as bm25=1.5,brand=Elm=0.0, whose names may have commas and equality signs."""
    found = {name: re.search(rf"(?:^|,){re.escape(name)}=([^,=]+)(?:,|$)", text) for name in features}
    values = {name: _number(match[1]) for name, match in found.items() if match is not None}
    return {name: value for name, value in values.items() if value == value}


def _at(answer: object, kind: type[T], *path: str | int) -> T:
    """Return what an answer has at a path. Raises ParameterError where it is not there, or of another kind."""
    try:
        for step in path:
            answer = cast(Json, answer)[cast(str, step)]
    except (LookupError, TypeError):
        answer = None
    if isinstance(answer, kind) and not isinstance(answer, bool):
        return answer
    raise _wrong(".".join(map(str, path)) or "it", answer, kind.__name__)


def _number_at(answer: object, name: str) -> float:
    return _number(_at(answer, Real, name))  # type: ignore[type-abstract]


def _number(value: str | Real) -> float:
    """Return a value of a feature, NaN where Solr says so. Raises ParameterError for what no feature can be."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.inf
    if abs(number) > MOST or (number != number and not isinstance(value, str)):
        raise _wrong("the value of a feature", value, "number in single precision")
    return number


def _wrong(where: str, answer: object, wanted: str) -> ParameterError:
    return ParameterError(
        f"the engine answered with {str(answer)[:80]!r} where {where} is to be a {wanted}. See whether it is an engine "
        "of that format."
    )


class _AsItIs(HTTPErrorProcessor):
    """Takes every answer for one: also what says no, and what points elsewhere, where the password would go too."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        """Return the answer."""
        return response

    https_response = http_response


def _exchanged(request: Request) -> tuple[int, str | None, bytes]:
    """Return the status, the address it points to and the content of an answer, after TIMEOUT seconds at most."""
    answers: list[tuple[int, str | None, bytes] | Exception] = []
    deadline = time.monotonic() + TIMEOUT

    def exchange() -> None:
        try:
            with build_opener(_AsItIs).open(request, timeout=TIMEOUT) as answer:
                content = bytearray()
                while piece := answer.read1(2**16):
                    content += piece
                    if len(content) > LARGEST:
                        raise ValueError(f"the answer is larger than {LARGEST:,} bytes")
                    if time.monotonic() > deadline:
                        return
                if answer.length:
                    raise ValueError(f"the answer lacks its last {answer.length:,} bytes")
                answers.append((answer.status, answer.headers["Location"], bytes(content)))
        except Exception as error:
            answers.append(error)

    thread = Thread(target=exchange, daemon=True)  # what never ends its first line blocks
    thread.start()
    thread.join(TIMEOUT)
    result = answers[0] if answers else TimeoutError(f"the answer was not complete after {TIMEOUT:g} seconds")
    if isinstance(result, Exception):
        raise result
    return result


def _send(method: str, url: str, content: str, accepted: str = "") -> Json:
    """Return the JSON answer to a request; one that fails with a message that contains accepted is an empty one.

    Raises ParameterError for any other that fails, without the user and the password of the address.
    """
    parts = urlsplit(url)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    request = Request(shown, content.encode() or None, {"Content-Type": "application/json"}, method=method)
    if parts.username is not None:
        user = unquote(parts.netloc.rpartition("@")[0])
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        status, place, answer = _exchanged(request)
        text = answer.decode(errors="replace")
        result = json_of(answer or b"{}") if status // 100 == 2 else None
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        what = "the answer is nested too deeply" if isinstance(error, RecursionError) else without_secrets(str(error))
        raise ParameterError(
            f"{method} {shown} failed: {what[:200]}. Is the engine running there? It may have taken what was sent."
        ) from None
    if status // 100 == 3:
        raise ParameterError(
            f"{method} {shown} answered {status} and points to {without_secrets(str(place))[:200]}, which is not "
            "followed: the password would go there. Give that address if it is the engine's."
        )
    if status // 100 != 2:
        if accepted and accepted in text:
            return {}
        raise ParameterError(f"{method} {shown} answered {status}: {' '.join(text[:500].split())}")
    return _at(result, dict)


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a model, with the loss of the metric, and the bytes and microseconds a document before and after."""

    model: Model
    metric: str
    loss: Interval
    bytes_before: int
    microseconds_before: float
    microseconds: float


def copied(model: Model, queries: Queries, serve: Sequence[str], trees: int | None = None) -> Copy:
    """Return a copy of a model that systems can load, made from queries, and its loss on them."""
    queries = replace(queries, rows=None)
    metric = str(metric_for(queries, model.metric))
    copy = copy_of(model, queries, serve, trees)
    lost = copy_loss(model, queries, serve, metric, 0, trees)
    loss = stratified_interval([lost], np.random.default_rng(0), weights=[queries.query_weights])
    before, after = (microseconds_a_document(each, queries) for each in (model, copy))
    return Copy(copy, metric, loss, model.bytes, before, after)


def copy_of(model: Model, queries: Queries, serve: Sequence[str], trees: int | None = None) -> TreeModel | LinearModel:
    """Return a copy of a model in trees, in this number of them if it is given, or in weights where none are loaded."""
    return distil(model, queries, TREES if can_load(serve, {TREES}) else LINEAR, trees=trees)


def copy_loss(
    model: Model, queries: Queries, serve: Sequence[str], metric: str, seed: int, trees: int | None = None
) -> Floats:
    """Return the metric of a model less that of copies of it, (n_queries,), each made from the other half of queries.

    Where times are known, each later third is scored by a copy made from all before it; the others are NaN.

    Raises DataError where a half has no two documents with different scores.
    """
    lost, by = np.full(queries.n_queries, np.nan), parse_metric(metric)
    for fold in forward_or_dealt(queries, 2, seed, stream=7):
        half = queries.select(fold.vali)
        copy = copy_of(model, queries.select(fold.train), serve, trees)
        before, after = (by.per_query(each.predict(replace(half, rows=None)), half) for each in (model, copy))
        lost[fold.vali] = before - after
    return lost


def is_significant(loss: Floats, weights: Floats | None = None) -> bool:
    """Return whether a loss, (n_queries,), is significantly above MAX_LOSS, its mean weighted by weights."""
    losses = linearised(loss, weights)[~np.isnan(loss)]
    error = float(losses.std()) / np.sqrt(max(len(losses), 1)) if len(losses) else 0.0
    return mean_or_zero(losses) - MAX_LOSS > ONE_SIDED_Z * error
