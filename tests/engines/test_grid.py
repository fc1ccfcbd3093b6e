"""Models that search engines load and score by HTTP, as a user would, or that are refused before they are written."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export.formats import export
from ranktune.solvers.export.source import source_of
from tests.engines.cells import GRID, Cell, noted
from tests.engines.nodes import ask

CLASS = "org.apache.solr.ltr.feature.FieldValueFeature"


@pytest.mark.parametrize("made", GRID)
def test_solr_loads_it_and_scores_alike_or_it_is_refused(
    made: Callable[[], Cell], solr: str, request: pytest.FixtureRequest
) -> None:
    name, cell = request.node.callspec.id, made()
    cell_name = name.partition("-")[2]
    about = ask("GET", f"{solr.rpartition('/')[0]}/admin/info/system")
    version = str(about["lucene"]["solr-spec-version"])
    try:
        content = str(export(cell.model, "solr", name=name, store=name, engine_version=version))
    except ParameterError as error:
        assert "solr" in str(error)
        return
    source = source_of(cell.model, "solr", name, name)
    documents = [
        {"id": f"{name}:{k}", "cell": name} | {f"x{j}_f": x for j, x in enumerate(row) if x == x}
        for k, row in enumerate(cell.X.tolist())
    ]
    ask("POST", f"{solr}/update?commit=true", documents)
    features = [
        {
            "store": name,
            "name": feature,
            "class": CLASS,
            "params": {"field": f"x{column}_f"} | ({} if zero else {"defaultValue": "NaN"}),
        }
        for feature, column, zero in zip(
            source.names, source.columns.tolist(), source.is_zero_where_missing(), strict=True
        )
    ]
    ask("PUT", f"{solr}/schema/feature-store", features)
    ask("PUT", f"{solr}/schema/model-store", content.encode())
    ranking = f"{{!ltr model='{name}' reRankDocs={len(documents)}}}"
    query = {"q": "*:*", "fq": f"{{!term f=cell}}{name}", "rq": ranking, "fl": "id,score", "rows": len(documents)}
    found = ask("GET", f"{solr}/query?{urlencode(query)}")["response"]["docs"]
    scores = in_order(name, {hit["id"]: hit["score"] for hit in found}, len(documents))
    noted(f"solr {version}", cell_name, cell, scores)
    cell.check(scores)


@pytest.mark.parametrize("made", GRID)
def test_opensearch_loads_it_and_scores_alike_or_it_is_refused(
    made: Callable[[], Cell], opensearch: str, request: pytest.FixtureRequest
) -> None:
    name, cell = request.node.callspec.id, made()
    cell_name, version = name.partition("-")[2], ask("GET", opensearch)["version"]["number"]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            content = str(export(cell.model, "opensearch", name=name, engine_version=version))
    except ParameterError as error:
        assert "opensearch" in str(error)
        return
    if said:  # of the features that a document lacks
        assert "a feature that a document lacks is 0" in str(said[0].message)
        cell = cell._replace(X=np.nan_to_num(cell.X))
    source = source_of(cell.model, "opensearch", name, name)
    index, count = f"{opensearch}/cell{abs(hash(name))}", len(cell.X)
    ask("PUT", index, {"settings": {"number_of_shards": 1, "mapping.total_fields.limit": 20_000}})
    lines: list[Any] = []
    for k, row in enumerate(cell.X.tolist()):
        known = {str(j): x for j, x in enumerate(row) if x == x}
        above, below = ({j: max(sign * x, 0.0) for j, x in known.items()} for sign in (1.0, -1.0))
        lines += [{"index": {"_id": f"{name}:{k}"}}, {"above": above, "below": below}]
    ask("POST", f"{index}/_bulk?refresh=true", "".join(json.dumps(line) + "\n" for line in lines).encode())
    features = [feature for column in source.columns.tolist() for feature in halves(column)]
    features += [
        {"name": name, "params": [], "template_language": "derived_expression", "template": f"a{column} - b{column}"}
        for name, column in zip(source.names, source.columns.tolist(), strict=True)
    ]
    stored = f"{opensearch}/_ltr/_featureset/{quote(name, safe='')}"
    ask("PUT", stored, {"featureset": {"name": name, "features": features}})
    ask("POST", f"{stored}/_createmodel", content.encode())
    rescored = {"rescore_query": {"sltr": {"model": name, "params": {}}}, "query_weight": 0.0}
    query = {"size": count, "_source": False, "rescore": {"window_size": count, "query": rescored}}
    found = ask("POST", f"{index}/_search", query)["hits"]["hits"]
    scores = in_order(name, {hit["_id"]: hit["_score"] for hit in found}, count)
    noted(f"opensearch {version}", cell_name, cell, scores)
    cell.check(scores)


def halves(column: int) -> list[dict[str, Any]]:
    """Features that are the number of a field where it is above 0, and below: scores of queries are never below 0."""
    return [
        {
            "name": f"{half[0]}{column}",
            "params": [],
            "template_language": "mustache",
            "template": {
                "function_score": {
                    "query": {"exists": {"field": f"{half}.{column}"}},
                    "functions": [{"field_value_factor": {"field": f"{half}.{column}"}}],
                    "boost_mode": "replace",
                }
            },
        }
        for half in ("above", "below")
    ]


def in_order(name: str, scores: Mapping[str, float], count: int) -> Floats:
    assert len(scores) == count
    return np.array([float(scores[f"{name}:{k}"]) for k in range(count)])
