"""Files of feature definitions for an engine, beside a model.

Where no training document lacked a feature, its definition gives every document a value, 0 where nothing matches. It
then does not matter what the version of the engine does with absent features. Otherwise an absent feature stays absent.

Source: Solr's guide (learning to rank; function queries), with what its pull request 1257 says of defaultValue; the
guides of the learning-to-rank plugins (working with features) and of Elasticsearch (function score, script score,
constant score); Elasticsearch's guide on learning to rank with eland.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Json, dense
from ranktune.solvers.core.errors import listed
from ranktune.solvers.data.columns.encoding import DAY, Age, Category, TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.source import ExportedModel
from ranktune.solvers.models.base import Model

DAY_MS = 86_400_000
KEYWORDS = "keywords"
"""The parameter, or external feature information, that holds the words of the query."""


def definition_files(source: ExportedModel, meanings: Sequence[FeatureMeaning]) -> dict[str, str]:
    """Return the files that define the features of a model in the engine of its format, by their names.

    A rank profile of Vespa has its definitions in it; other formats have none.
    """
    return {file: write(source, meanings) for file, write in WRITERS.get(source.format, {}).items()}


def _solr(source: ExportedModel, meanings: Sequence[FeatureMeaning]) -> str:
    """Return features for Solr's feature store: queries, whose default is 0 or NaN where nothing matches."""
    features = []
    for meaning in meanings:
        kind, params = _solr_feature(meaning)
        if not meaning.is_zero:
            params["defaultValue"] = "NaN"
        kind = kind if kind == FILL_IN else f"org.apache.solr.ltr.feature.{kind}"
        features.append({"store": source.store, "name": meaning.feature, "class": kind, "params": params})
    return _written(features)


def _solr_feature(meaning: FeatureMeaning) -> tuple[str, Json]:
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


def _plugin(source: ExportedModel, meanings: Sequence[FeatureMeaning]) -> str:
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


def _query(meaning: FeatureMeaning) -> Json:
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
    condition = {"term": {field: meaning.value}} if meaning.kind == LEVEL else {"bool": {"must_not": [exists]}}
    one: Json = {"constant_score": {"filter": condition, "boost": 1.0}}
    return _or_zero(one) if always else one


def _of_search(meaning: FeatureMeaning) -> Json:
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


def _eland(source: ExportedModel, meanings: Sequence[FeatureMeaning]) -> str:
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


WRITERS: Mapping[str, Mapping[str, Callable[[ExportedModel, Sequence[FeatureMeaning]], str]]] = {
    "solr": {"features.json": _solr},
    "elasticsearch": {"featureset.json": _plugin, "ltr_model_config.py": _eland},
    "opensearch": {"featureset.json": _plugin},
}
"""Format -> name of a file -> what writes it."""


FIELD, LEVEL, MISSING, AGE, TEXT, UNKNOWN = "field", "level", "missing", "age", "text", "unknown"
OTHER = "?"
"""A value of a category that is none of its levels."""
FILL_IN = "FILL_IN"
"""Stands in a definition where a person must write what the feature is."""
NEVER_NEGATIVE = {"elasticsearch", "opensearch"}
"""Formats of engines where a feature is the score of a query, which is never below 0."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SCORE = re.compile(r"bm25(?:\(([A-Za-z_][A-Za-z0-9_.]*)\)|_([A-Za-z_][A-Za-z0-9_.]*))")

_FIELDLESS = {"bm25", "tfidf", "tf_idf", "score", "_score"}
"""Names of a score of the query in a field that they do not say: no document has a field of that name."""

_ARGUMENT = r"([A-Za-z_][\w.]*|\d{1,9})"
_RANK_FEATURE = re.compile(rf"[A-Za-z_]\w*\({_ARGUMENT}(, ?{_ARGUMENT})*\)(\.[A-Za-z_]\w*)?", re.A)


class FeatureMeaning(NamedTuple):
    """What a feature is.

    column    the field: of the number, the category, the date or the text
    value     the category of a LEVEL
    before    microseconds since 1970 until which an AGE counts
    is_zero   whether a document without it counts as 0: if no training document lacked it
    of_search whether the column is a property of the search, a parameter of the request and no field of documents
    """

    feature: str
    kind: str
    column: str
    is_zero: bool
    value: str = ""
    before: int = 0
    of_search: bool = False


def meanings_of(source: ExportedModel, of_search: Set[str] = frozenset()) -> list[FeatureMeaning]:
    """Return what each feature of a model is, in the order of its names; of_search are columns of that kind."""
    encoding = source.model.encoding
    columns = {} if encoding is None else encoding.columns
    sources = {} if encoding is None else encoding.sources(source.names)
    negative = _negative(source) if source.format in NEVER_NEGATIVE else set()
    result = []
    for k, (name, is_zero) in enumerate(zip(source.names, source.is_zero_where_missing(), strict=True)):
        column = sources.get(name, name)
        kind, score = columns.get(column), _SCORE.fullmatch(name)
        if k in negative or (column in of_search and "." in column):
            meaning = FeatureMeaning(name, UNKNOWN, name, is_zero)
        elif kind is None and score is not None:
            meaning = FeatureMeaning(name, TEXT, score[1] or score[2], is_zero)
        elif source.format == "vespa" and is_rank_feature(name):
            meaning = FeatureMeaning(name, TEXT, name, is_zero)
        elif not _IDENTIFIER.fullmatch(column) or column.lower() in _FIELDLESS or source.model.feature_names is None:
            meaning = FeatureMeaning(name, UNKNOWN, name, is_zero)
        elif isinstance(kind, Category):
            meaning = _of_category(name, column, is_zero, source.format)
        elif isinstance(kind, Age):
            meaning = FeatureMeaning(name, AGE, column, is_zero, before=kind.microseconds)
        else:
            meaning = FeatureMeaning(name, FIELD, column, is_zero)
        of_this = column in of_search and meaning.kind in (FIELD, LEVEL, MISSING, AGE)
        result.append(meaning._replace(of_search=of_this))
    return result


def _of_category(name: str, column: str, is_zero: bool, format: str) -> FeatureMeaning:
    """Return what a feature of a category is.

    Engines would take {{ or ${ in a value for a parameter, and Vespa has no test of a text that is not there.
    """
    if name == f"{column}:missing":
        return FeatureMeaning(name, UNKNOWN if format == "vespa" else MISSING, column, is_zero)
    value = name.removeprefix(f"{column}=")
    return FeatureMeaning(name, UNKNOWN if "{{" in value or "${" in value else LEVEL, column, is_zero, value)


def quotable(text: str) -> str:
    """Return text as it stands between the double quotes of Solr's functions."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def time_of(microseconds: float) -> str:
    """Return microseconds since 1970 as engines read times, to the millisecond."""
    time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_rank_feature(name: str) -> bool:
    """Return whether a name is that of a rank feature of Vespa with arguments, such as bm25(title)."""
    return len(name) <= 1000 and _RANK_FEATURE.fullmatch(name) is not None


def is_match(name: str) -> bool:
    """Return whether a name says how well a text or a field matches, which is 0 where nothing does."""
    return is_rank_feature(name) or _SCORE.fullmatch(name) is not None


def _negative(source: ExportedModel) -> set[int]:
    """Return the positions of the features that some split compares with a number below 0."""
    return set() if source.trees is None else set(source.positions()[source.trees.threshold < 0.0].tolist())


def properties_of_searches(model: Model, queries: Queries) -> set[str]:
    """Return the columns with one value in each query, and not the same in all; a query of one document tells nothing.

    queries: as the model takes them.
    """
    X = np.nan_to_num(dense(queries.features), nan=np.inf)
    firsts = X[queries.starts[:-1]]
    alike = (X == np.repeat(firsts, queries.lengths, axis=0)).all(axis=0)
    several = firsts[queries.lengths > 1]
    varies = (several != several[:1]).any(axis=0)
    columns = list((model.encoding or TableEncoding()).sources(model.feature_names or ()).values())
    other = {column for column, one in zip(columns, alike.tolist(), strict=False) if not one}
    return {column for column, differs in zip(columns, varies.tolist(), strict=False) if differs} - other


def parameters(meanings: Sequence[FeatureMeaning], values: Sequence[float], format: str) -> dict[str, str]:
    """Return the parameters of a request by the values of the features of a document; empty for what has no value."""
    by_column: dict[str, str] = {}
    for meaning, value in zip(meanings, values, strict=True):
        text = repr(value) if value == value else ""
        if meaning.kind == AGE and text:
            text = time_of(meaning.before - value * DAY)
        elif meaning.kind in (LEVEL, MISSING):
            text = quotable(meaning.value) if format == "solr" else meaning.value
            text = text if value == 1.0 else by_column.get(meaning.column, OTHER)
        if meaning.of_search:
            by_column[meaning.column] = text
    return by_column


def to_fill_in(meanings: Sequence[FeatureMeaning]) -> list[str]:
    """Return the features that a person must define."""
    return [meaning.feature for meaning in meanings if meaning.kind == UNKNOWN]


def summary(meanings: Sequence[FeatureMeaning]) -> list[str]:
    """Return lines on how the features were defined, and what a person must do."""
    kinds = [meaning.kind for meaning in meanings if not meaning.of_search]
    tabled, others = sum(kind in (LEVEL, MISSING, AGE) for kind in kinds), len(meanings) - len(kinds)
    lines = [
        f"Definitions of {len(meanings)} features: {tabled} by the columns of the table, {kinds.count(TEXT)} by",
        f"scores of text, {kinds.count(FIELD)} taken for fields of that name, {kinds.count(UNKNOWN)} to fill in"
        f"{f', {others} of the search' if others else ''}.",
    ]
    read = [meaning for meaning in meanings if meaning.kind != UNKNOWN and _IDENTIFIER.fullmatch(meaning.column)]
    if fields := sorted({meaning.column for meaning in read if not meaning.of_search}):
        lines += wrap(f"Your documents must have these fields: {listed(fields, len(fields))}.", 80)
    if columns := sorted({meaning.column for meaning in read if meaning.of_search}):
        sentence = "Of these all documents of a search have one value here, so your requests must give them:"
        lines += wrap(f"{sentence} {listed(columns, len(columns))}.", 80)
    if UNKNOWN in kinds:
        lines.append(f"Write what these are at {FILL_IN}: {listed(to_fill_in(meanings))}.")
    return lines
