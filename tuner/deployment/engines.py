"""Running engines: models and definitions of features are created in them, and values of features are read from them.

Source: Solr's guide (learning to rank: uploading features and models, the features transformer); the guides of the
learning-to-rank plugins of Elasticsearch and OpenSearch (working with features, logging feature scores).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Protocol, TypeAlias
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.definitions.files import KEYWORDS

TIMEOUT = 60.0
"""Seconds that an answer may take."""
Values: TypeAlias = dict[str, dict[str, float]]
"""Document -> feature -> value, without features that the document does not have."""


class Engine(Protocol):
    """A running engine."""

    def create(self, files: Mapping[str, str]) -> None:
        """Create the definitions of features and the model."""

    def values(self, keywords: str, documents: Sequence[str], features: Sequence[str]) -> Values:
        """Return the values of the features of those of the documents that are in the index."""

    def delete(self) -> None:
        """Delete the model; the definitions stay."""


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

    def values(self, keywords: str, documents: Sequence[str], features: Sequence[str]) -> Values:
        logged = {"_name": "logged", "featureset": self.name, "params": {KEYWORDS: keywords}}
        request = {
            "size": len(documents),
            "_source": False,
            "query": {"bool": {"filter": [{"terms": {"_id": list(documents)}}, {"sltr": logged}]}},
            "ext": {"ltr_log": {"log_specs": {"name": "values", "named_query": "logged"}}},
        }
        hits = _send("POST", f"{self.index}/_search", json.dumps(request))["hits"]["hits"]
        entries = {hit["_id"]: hit["fields"]["_ltrlog"][0]["values"] for hit in hits}
        return {
            document: {entry["name"]: float(entry["value"]) for entry in entry_list if "value" in entry}
            for document, entry_list in entries.items()
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

    def values(self, keywords: str, documents: Sequence[str], features: Sequence[str]) -> Values:
        words = keywords.replace("\\", "\\\\").replace("'", "\\'")
        request = {
            "query": "*:*",
            "filter": ["{!terms f=id separator='\u001f' v=$ids}"],
            "fields": ["id", f"values:[features store={self.store} format=dense efi.{KEYWORDS}='{words}']"],
            "limit": len(documents),
            "params": {"ids": "\u001f".join(documents)},
        }
        answer = _send("POST", f"{self.url}/query", json.dumps(request))
        return {document["id"]: _parsed(document["values"], features) for document in answer["response"]["docs"]}

    def delete(self) -> None:
        _send("DELETE", f"{self.url}/schema/model-store/{quote(self.name, safe='')}", "")


def _parsed(text: str, features: Sequence[str]) -> dict[str, float]:
    """Return the values in a text such as bm25=1.5,brand=Elm=0.0, whose names may have commas and equality signs."""
    found = {name: re.search(rf"(?:^|,){re.escape(name)}=([^,=]+)(?:,|$)", text) for name in features}
    values = {name: float(match[1]) for name, match in found.items() if match is not None}
    return {name: value for name, value in values.items() if value == value}


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
        with urlopen(request, timeout=TIMEOUT) as answer:
            result = json.loads(answer.read() or b"{}")
    except HTTPError as error:
        said = error.read().decode(errors="replace")
        if accepted and accepted in said:
            return {}
        raise ParameterError(f"{method} {shown} answered {error.code}: {said[:500]}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise ParameterError(f"{method} {shown} failed: {error}. Is the engine running there?") from None
    if not isinstance(result, dict):
        raise ParameterError(f"{method} {shown} answered {str(result)[:100]}, which is no object of JSON.")
    return result
