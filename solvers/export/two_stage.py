"""Ranking in two stages: a linear model scores all documents, and the full model those that it ranks first.

What an engine needs is written as several files: models, and a request, or a rank profile. In Vespa both phases are of
one rank profile. In Elasticsearch and OpenSearch the learning-to-rank plugin scores in a query and in its rescoring,
in Solr a function query comes before the model. Its features are functions, because scores of queries are never
negative there.

These engines count scores that are not positive as 0, or put them behind documents that were not scored again. So the
first score is mapped to (0, 1) by a logistic function, and in Elasticsearch and OpenSearch the second to (1, 2), where
score_mode "max" makes it the score of a document with both.

Source: the guides of Vespa (phased ranking), Elasticsearch (rescore, script_score), its learning-to-rank plugin, and
Solr (learning to rank, function queries, JSON request API); elastic/elasticsearch, QueryRescorer.java.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, listed
from ranktune.solvers.export.formats import export
from ranktune.solvers.export.source import check_distinct, escaped, source_of
from ranktune.solvers.export.vespa import LETTERS, vespa_phases
from ranktune.solvers.models.base import Model

_LOGISTIC = "1.0 / (1.0 + Math.exp((params.centre - _score) / params.spread))"


@dataclass(frozen=True)
class Stage:
    """A model, and the mean and the standard deviation of its scores of documents like those that it ranks."""

    model: Model
    centre: float
    spread: float


@dataclass(frozen=True)
class Stages:
    """The two models, how many documents the second one scores, and what they are called in the engine."""

    first: Stage
    second: Stage
    window: int
    name: str = "ranktune"
    store: str = "_DEFAULT_"


def two_stage_files(stages: Stages, format: str) -> dict[str, str]:
    """Return the files of two stages in the format of an engine, by their names.

    Raises ParameterError for a format that is of no engine with two stages, or cannot express one of the models.
    """
    if format not in WRITERS:
        raise ParameterError(f"{format} has no two stages: export to {listed(WRITERS)}, or leave out two_stage=.")
    return WRITERS[format](stages, format)


def _vespa(stages: Stages, format: str) -> dict[str, str]:
    model, name, store = stages.second.model, stages.name, stages.store
    export(model, format, name=name, store=store)  # what cannot be expressed is refused there
    first = source_of(stages.first.model, format, name, store)
    return {"rank-profile.sd": vespa_phases(source_of(model, format, name, store), first, stages.window)}


def _plugin(stages: Stages, format: str) -> dict[str, str]:
    first, second = f"{stages.name}_first", stages.name

    def scored(name: str, stage: Stage, script: str, candidates: bool) -> Json:
        query: Json = {"sltr": {"params": {}, "model": name}}
        if candidates:
            query = {"bool": {"filter": [{"match_all": {}}], "must": [query]}}
        params = {"centre": stage.centre, "spread": stage.spread}
        return {"script_score": {"query": query, "script": {"source": script, "params": params}}}

    request = {
        "query": scored(first, stages.first, _LOGISTIC, candidates=True),
        "rescore": {
            "window_size": stages.window,
            "query": {
                "rescore_query": scored(second, stages.second, f"1.0 + {_LOGISTIC}", candidates=False),
                "query_weight": 1.0,
                "rescore_query_weight": 1.0,
                "score_mode": "max",
            },
        },
    }
    return {
        "first.json": str(export(stages.first.model, format, name=first)),
        "model.json": str(export(stages.second.model, format, name=second)),
        "request.json": json.dumps(request, indent=1, allow_nan=False) + "\n",
    }


def _solr(stages: Stages, format: str) -> dict[str, str]:
    first = stages.first
    export(first.model, format)  # what cannot be expressed is refused there
    source = source_of(first.model, format, stages.name, stages.store)
    check_distinct(source)
    words = [f"x_{escaped(name, k, LETTERS)}" for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    terms = [f"product({weight!r},${words[k]})" for k, weight in source.weighted()]
    total = f"sum({','.join(terms)},0)"
    params = {"rq": f"{{!ltr model={stages.name} reRankDocs={stages.window}}}"}
    params |= {word: f"field({json.dumps(name)})" for word, name in zip(words, source.names, strict=True)}
    request = {
        "query": f"{{!func}}div(1,sum(1,exp(div(sub({first.centre!r},{total}),{first.spread!r}))))",
        "filter": ["*:*"],
        "fields": ["id", "score"],
        "params": params,
    }
    return {
        "model.json": str(export(stages.second.model, format, name=stages.name, store=stages.store)),
        "request.json": json.dumps(request, indent=1, allow_nan=False, ensure_ascii=False) + "\n",
    }


WRITERS: Mapping[str, Callable[[Stages, str], dict[str, str]]] = {
    "vespa": _vespa,
    "elasticsearch": _plugin,
    "opensearch": _plugin,
    "solr": _solr,
}
"""The engines with two stages."""
