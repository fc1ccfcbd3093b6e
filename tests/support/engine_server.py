"""A local server that behaves as the interfaces of Solr, and of Elasticsearch with its learning-to-rank plugin.

It evaluates definitions of features on the documents of an index as the guides of these engines say.
"""

import json
import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import numpy as np

from ranktune.solvers.export.absent import NAN
from tests.support.export_readers import READERS, Score

Document: TypeAlias = Mapping[str, Any]
"""Fields; the score of a text field for any query is a number, 0 where no word matches; None is no value."""
DAY = 86_400_000.0


class EngineServer(ThreadingHTTPServer):
    """What was created, and the documents of the index by id."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.documents = documents
        self.features: dict[str, Any] = {}
        self.models: dict[str, Any] = {}
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running(documents: Mapping[str, Document]) -> Iterator[EngineServer]:
    with EngineServer(documents) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Refused(Exception):
    """What the engine answers with a message."""


class _Handler(BaseHTTPRequestHandler):
    server: EngineServer

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        solr = self.path.startswith("/solr/")
        try:
            result = (of_solr if solr else of_plugin)(self.server, self.command, self.path, json.loads(body or b"null"))
            status = 200
        except Refused as error:
            status, result = 400, {"error": str(error)}
        content = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def of_plugin(server: EngineServer, method: str, path: str, body: Any) -> Any:
    """PUT _ltr, PUT a feature set, POST _createmodel, DELETE a model, POST INDEX/_search with the log of features."""
    *_, last = path.split("/")
    if (method, path) == ("PUT", "/_ltr"):
        raise Refused("resource_already_exists_exception: index [.ltrstore] already exists")
    if method == "PUT":
        created = body["featureset"]
        assert created["name"] == last
        for feature in created["features"]:
            plugin_score(feature["template"], {})
        server.features[last] = created["features"]
    elif last == "_createmodel":
        model, known = body["model"], {feature["name"] for feature in server.features[path.split("/")[-2]]}
        if model["name"] in server.models:
            raise Refused(f"model [{model['name']}] already exists")
        assert set(re.findall(r'"split":"([^"]*)"', model["model"]["definition"])) <= known
        server.models[model["name"]] = model
    elif method == "DELETE":
        del server.models[last]
    else:
        ids, logged = body["query"]["bool"]["filter"]
        named, specs = logged["sltr"], body["ext"]["ltr_log"]["log_specs"]
        assert specs["named_query"] == named["_name"]
        hits = []
        for name in ids["terms"]["_id"][: body["size"]]:
            if name in server.documents:
                entries = []
                for feature in server.features[named["featureset"]]:
                    assert set(feature["params"]) <= named["params"].keys()
                    value = plugin_score(feature["template"], server.documents[name])
                    entries.append({"name": feature["name"]} | ({} if value is None else {"value": value}))
                model = body["rescore"]["query"]["rescore_query"]["sltr"]["model"]
                content = json.dumps({"model": server.models[model]})
                score = scored(
                    READERS["opensearch"](content, NAN), [(e["name"], e.get("value", math.nan)) for e in entries]
                )
                hits.append({"_id": name, "_score": score, "fields": {"_ltrlog": [{specs["name"]: entries}]}})
        return {"hits": {"hits": hits}}
    return {}


def scored(score: Score, values: Iterable[tuple[str, float]]) -> float:
    """The score of a document by a model."""
    return float(score({name: np.array([value], dtype=np.float64) for name, value in values}, 1)[0])


def plugin_score(query: Any, document: Document) -> float | None:
    """The score of a query, None where the document does not match it."""
    ((kind, body),) = query.items()
    if kind == "match_all":
        return float(body.get("boost", 1.0))
    if kind == "exists":
        return 1.0 if document.get(body["field"]) is not None else None
    if kind == "term":
        ((field, value),) = body.items()
        return 1.0 if document.get(field) == value else None
    if kind == "match":
        ((field, words),) = body.items()
        assert words == "{{keywords}}"
        return document.get(field) or None
    if kind == "constant_score":
        return None if plugin_score(body["filter"], document) is None else float(body["boost"])
    if kind == "bool":
        if any(plugin_score(part, document) is not None for part in body.get("must_not", ())):
            return None
        must = [plugin_score(part, document) for part in body.get("must", ())]
        return (
            None
            if None in must
            else sum(filter(None, [*must, *(plugin_score(q, document) for q in body.get("should", ()))]))
        )
    if plugin_score(body["query"], document) is None:
        return None
    if kind == "function_score":
        assert body["boost_mode"] == "replace"
        ((_, factor),) = body["functions"][0].items()
        value = document.get(factor["field"])
        value = factor.get("missing") if value is None else value
        if document and (value is None or value < 0):
            raise Refused("Missing value for field, or a negative one")
        return None if value is None else float(value)
    if kind == "script_score":
        params = body["script"]["params"]
        return max(0.0, (float(params["before"]) - milliseconds(document[params["field"]])) / DAY)
    raise Refused(f"unknown query [{kind}]")


def milliseconds(date: str) -> float:
    return datetime.fromisoformat(date).timestamp() * 1000.0


def of_solr(server: EngineServer, method: str, path: str, body: Any) -> Any:
    """PUT features and models, DELETE a model, POST a query with the transformer of features."""
    *_, last = path.split("/")
    if method == "DELETE":
        del server.models[last]
    elif last == "feature-store":
        for feature in body:
            if not re.fullmatch(r"org\.apache\.solr\.ltr\.feature\.(Solr|FieldValue)Feature", feature["class"]):
                raise Refused(f"{feature['class']} is not found")
            server.features.setdefault(feature["store"], []).append(feature)
    elif last == "model-store":
        known = {feature["name"] for feature in server.features[body["store"]]}
        assert {feature["name"] for feature in body["features"]} <= known
        server.models[body["name"]] = body
    else:
        store = re.search(r"\[features store=(\S+) format=dense efi\.keywords='.*'\]", body["fields"][2])
        assert store is not None and "v=$wanted" in body["filter"][0]
        documents = []
        for name in body["params"]["wanted"].split("\u001f"):
            if name in server.documents:
                values = [(f["name"], solr_value(f, server.documents[name])) for f in server.features[store[1]]]
                score = scored(READERS["solr"](json.dumps(server.models[body["params"]["model"]]), NAN), values)
                shown = ",".join(f"{key}={value}" for key, value in values)
                documents.append({"id": name, "score": score, "values": shown})
        return {"response": {"docs": documents[: body["limit"]]}}
    return {}


def solr_value(feature: Any, document: Document) -> float:
    """The value of a feature, its default where the document does not match or has none."""
    params = feature["params"]
    default = float(params.get("defaultValue", 0.0))
    if feature["class"].endswith("FieldValueFeature"):
        value = document.get(params["field"])
        return default if value is None else value
    for filter in params.get("fq", ()):
        term = re.fullmatch(r"\{!term f=(\w+)\}(.*)", filter)
        exists = re.fullmatch(r"(\*:\* -)?(\w+):\[\* TO \*\]", filter)
        if term is None:
            assert exists is not None
            if (document.get(exists[2]) is None) != bool(exists[1]):
                return default
        elif document.get(term[1]) != term[2]:
            return default
    query = params.get("q")
    if query is None:
        return 1.0
    age = re.fullmatch(r"\{!func\}div\(ms\((\S+),(\w+)\),86400000\)", query)
    if age is not None:
        return max(0.0, (milliseconds(age[1].replace("Z", "+00:00")) - milliseconds(document[age[2]])) / DAY)
    text = re.fullmatch(r"\{!dismax qf=(\w+)\}\$\{keywords\}", query)
    assert text is not None
    return document.get(text[1]) or default
