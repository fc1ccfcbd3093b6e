"""Files of feature definitions for an engine, beside a model.

Where no training document lacked a feature, its definition gives every document a value, 0 where nothing matches. It
then does not matter what the version of the engine does with absent features. Otherwise an absent feature stays absent.

Source: Solr's guide (learning to rank; function queries), with what its pull request 1257 says of defaultValue; the
guides of the learning-to-rank plugins (working with features) and of Elasticsearch (function score, script score,
constant score); Elasticsearch's guide on learning to rank with eland.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.export.definitions.meanings import (
    AGE,
    FIELD,
    FILL_IN,
    LEVEL,
    MISSING,
    TEXT,
    UNKNOWN,
    Meaning,
    quotable,
    time_of,
)
from ranktune.solvers.export.source import Source

DAY_MS = 86_400_000
KEYWORDS = "keywords"
"""The parameter, or external feature information, that holds the words of the query."""


def definition_files(source: Source, meanings: Sequence[Meaning]) -> dict[str, str]:
    """Return the files that define the features of a model in the engine of its format, by their names.

    A rank profile of Vespa has its definitions in it; other formats have none.
    """
    return {file: write(source, meanings) for file, write in WRITERS.get(source.format, {}).items()}


def _solr(source: Source, meanings: Sequence[Meaning]) -> str:
    """Return features for Solr's feature store: queries, whose default is 0 or NaN where nothing matches."""
    features = []
    for meaning in meanings:
        kind, params = _solr_feature(meaning)
        if not meaning.is_zero:
            params["defaultValue"] = "NaN"
        kind = kind if kind == FILL_IN else f"org.apache.solr.ltr.feature.{kind}"
        features.append({"store": source.store, "name": meaning.feature, "class": kind, "params": params})
    return _written(features)


def _solr_feature(meaning: Meaning) -> tuple[str, Json]:
    field = meaning.column
    before = time_of(meaning.before)
    if meaning.of_search:
        if meaning.kind == FIELD:
            return "ValueFeature", {"value": f"${{{field}}}"}
        if meaning.kind == AGE:
            return "SolrFeature", {"q": f"{{!func}}div(ms({before},${{{field}}}),{DAY_MS})"}
        return "SolrFeature", {"q": f'{{!func}}floor(strdist("${{{field}:}}","{quotable(meaning.value)}",edit))'}
    if meaning.kind == FIELD:
        return "FieldValueFeature", {"field": field}
    if meaning.kind == LEVEL:
        return "SolrFeature", {"fq": [f"{{!term f={field}}}{meaning.value}"]}
    if meaning.kind == MISSING:
        return "SolrFeature", {"fq": [f"*:* -{field}:[* TO *]"]}
    if meaning.kind == AGE:
        age = f"{{!func}}div(ms({before},{field}),{DAY_MS})"
        return "SolrFeature", {"q": age, "fq": [f"{field}:[* TO *]"]}
    if meaning.kind == TEXT:
        return "SolrFeature", {"q": f"{{!dismax qf={field}}}${{{KEYWORDS}}}"}
    return FILL_IN, {}


def _plugin(source: Source, meanings: Sequence[Meaning]) -> str:
    """Return a feature set for the learning-to-rank plugins."""
    features = [
        {
            "name": meaning.feature,
            "params": [KEYWORDS] if meaning.kind == TEXT else [meaning.column] if meaning.of_search else [],
            "template_language": "mustache",
            "template": _query(meaning),
        }
        for meaning in meanings
    ]
    return _written({"featureset": {"name": source.name, "features": features}})


def _query(meaning: Meaning) -> Json:
    """Return a query whose score is the feature; scores of queries are never below 0."""
    field, always = meaning.column, meaning.is_zero
    exists: Json = {"exists": {"field": field}}
    if meaning.kind == UNKNOWN:
        return {FILL_IN: {}}
    if meaning.of_search:
        return _of_search(meaning)
    if meaning.kind == FIELD:
        factor: Json = {"field": field, "missing": 0} if always else {"field": field}
        query: Json = {"match_all": {}} if always else exists
        function = {"query": query, "functions": [{"field_value_factor": factor}], "boost_mode": "replace"}
        return {"function_score": function}
    if meaning.kind == AGE:
        days = "Math.max(0.0, (params.before - doc[params.field].value.toInstant().toEpochMilli()) / " + f"{DAY_MS}.0)"
        params = {"field": field, "before": meaning.before // 1000}
        scored = {"script_score": {"query": exists, "script": {"source": days, "params": params}}}
        return _or_zero(scored) if always else scored
    if meaning.kind == TEXT:
        match: Json = {"match": {field: f"{{{{{KEYWORDS}}}}}"}}
        return _or_zero(match) if always else match
    known = {"term": {field: meaning.value}} if meaning.kind == LEVEL else {"bool": {"must_not": [exists]}}
    one: Json = {"constant_score": {"filter": known, "boost": 1.0}}
    return _or_zero(one) if always else one


def _of_search(meaning: Meaning) -> Json:
    """Return a query whose score is computed of a parameter of the request alone; it matches nothing if that is empty.

    Where it counts as 0 then, that is its score instead.
    """
    sources = {
        FIELD: "Double.parseDouble(params.given)",
        AGE: f"Math.max(0.0, (params.before - Instant.parse(params.given).toEpochMilli()) / {DAY_MS}.0)",
        LEVEL: "params.given == params.level ? 1.0 : 0.0",
        MISSING: "1.0",
    }
    params = {"given": f"{{{{{meaning.column}}}}}", "level": meaning.value, "before": meaning.before // 1000}
    empty = {"source": f"(params.given == '') == {str(meaning.kind == MISSING).lower()}", "params": params}
    scored = {"source": sources[meaning.kind], "params": params}
    query = {"script_score": {"query": {"bool": {"filter": [{"script": {"script": empty}}]}}, "script": scored}}
    return _or_zero(query) if meaning.is_zero else query


def _or_zero(query: Json) -> Json:
    """Return a query that all documents match, with 0 where they do not match this one."""
    return {"bool": {"must": [{"match_all": {"boost": 0.0}}], "should": [query]}}


def _eland(source: Source, meanings: Sequence[Meaning]) -> str:
    """Return Python code with the features for Elasticsearch's own learning to rank, by eland."""
    lines = [
        '"""Features for Elasticsearch\'s own learning to rank: give ltr_model_config to MLModel.import_ltr_model."""',
        "",
        "from eland.ml.ltr import LTRModelConfig, QueryFeatureExtractor",
        "",
        "ltr_model_config = LTRModelConfig(",
        "    feature_extractors=[",
    ]
    for meaning in meanings:
        lines.append(f"        QueryFeatureExtractor(feature_name={meaning.feature!r}, query={_query(meaning)!r}),")
    return "\n".join([*lines, "    ]", ")", ""])


def _written(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


WRITERS: Mapping[str, Mapping[str, Callable[[Source, Sequence[Meaning]], str]]] = {
    "solr": {"features.json": _solr},
    "elasticsearch": {"featureset.json": _plugin, "ltr_model_config.py": _eland},
    "opensearch": {"featureset.json": _plugin},
}
"""Format -> name of a file -> what writes it."""
