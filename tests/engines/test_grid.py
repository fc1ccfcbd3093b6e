"""Models that search engines load and score by HTTP, as a user would, or that are refused before they are written."""

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import export
from ranktune.solvers.export.source import source_of
from tests.engines.cells import CELLS, GRID, Cell, noted
from tests.engines.nodes import Engine, ask

CLASS = "org.apache.solr.ltr.feature.FieldValueFeature"


@pytest.mark.parametrize("made", GRID)
def test_solr_loads_it_and_scores_alike_or_it_is_refused(
    made: Callable[[], Cell], solr: Engine, request: pytest.FixtureRequest
) -> None:
    name, cell = request.node.callspec.id, made()
    cell_name, (_, version, url) = name.partition("-")[2], solr
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
    ask("POST", f"{url}/update?commit=true", documents)
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
    ask("PUT", f"{url}/schema/feature-store", features)
    ask("PUT", f"{url}/schema/model-store", content.encode())
    ranking = f"{{!ltr model='{name}' reRankDocs={len(documents)}}}"
    query = {"q": "*:*", "fq": f"{{!term f=cell}}{name}", "rq": ranking, "fl": "id,score", "rows": len(documents)}
    found = ask("GET", f"{url}/query?{urlencode(query)}")["response"]["docs"]
    scores = in_order(name, {hit["id"]: hit["score"] for hit in found}, len(documents))
    noted(f"solr {version}", cell_name, cell, scores)
    cell.check(scores)


@pytest.mark.parametrize("made", GRID)
def test_a_plugin_loads_it_and_scores_alike_or_it_is_refused(
    made: Callable[[], Cell], plugin: Engine, request: pytest.FixtureRequest
) -> None:
    name, cell, (format, version, _) = request.node.callspec.id, made(), plugin
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            content = str(export(cell.model, format, name=name, engine_version=version))
    except ParameterError as error:
        assert format in str(error)
        return
    if said:  # of the features that a document lacks
        assert "a feature that a document lacks is 0" in str(said[0].message)
        cell = cell._replace(X=np.nan_to_num(cell.X))
    if format == "elasticsearch":  # no registry has its expressions, and without them no feature is below 0
        cell = cell._replace(X=np.maximum(cell.X, 0.0))
    scores = by_plugin(plugin, name, cell, content)
    noted(f"{format} {version}", name.partition("-")[2], cell, scores)
    cell.check(scores)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore:in opensearch")
@pytest.mark.parametrize("plugin", ["opensearch3"], indirect=True)
def test_a_model_that_asks_for_zero_gets_zero_for_what_a_document_lacks(plugin: Engine) -> None:
    cell = CELLS["trees, absent"]()
    content = str(export(cell.model, "opensearch", name="zero", engine_version=plugin.version, absent="zero"))
    cell._replace(X=np.nan_to_num(cell.X)).check(by_plugin(plugin, "zero", cell, content))


def by_plugin(plugin: Engine, name: str, cell: Cell, content: str) -> Floats:
    """The scores of the documents of a cell by an export."""
    format, _, url = plugin
    source, halves = source_of(cell.model, format, name, name), ("above", "below")
    index, count = f"{url}/cell{abs(hash(name))}", len(cell.X)
    ask("PUT", index, {"settings": {"number_of_shards": 1, "mapping.total_fields.limit": 20_000}})
    lines: list[Any] = []
    for k, row in enumerate(cell.X.tolist()):
        known = {str(j): x for j, x in enumerate(row) if x == x}
        parts = ({j: max(sign * x, 0.0) for j, x in known.items()} for sign in (1.0, -1.0))
        lines += [{"index": {"_id": f"{name}:{k}"}}, dict(zip(halves, parts, strict=True))]
    ask("POST", f"{index}/_bulk?refresh=true", "".join(json.dumps(line) + "\n" for line in lines).encode())
    named = list(zip(source.names, source.columns.tolist(), strict=True))
    if format == "elasticsearch":
        features = [number(name, f"above.{column}") for name, column in named]
    else:
        features = [number(f"{half[0]}{column}", f"{half}.{column}") for half in halves for _, column in named]
        features += [
            {"name": name, "params": [], "template_language": "derived_expression", "template": f"a{k} - b{k}"}
            for name, k in named
        ]
    stored = f"{url}/_ltr/_featureset/{quote(name, safe='')}"
    ask("PUT", stored, {"featureset": {"name": name, "features": features}})
    ask("POST", f"{stored}/_createmodel", content.encode())
    rescored = {"rescore_query": {"sltr": {"model": name, "params": {}}}, "query_weight": 0.0}
    query = {"size": count, "_source": False, "rescore": {"window_size": count, "query": rescored}}
    found = ask("POST", f"{index}/_search", query)["hits"]["hits"]
    return in_order(name, {hit["_id"]: hit["_score"] for hit in found}, count)


def number(name: str, field: str) -> dict[str, Any]:
    """A feature that is the number of a field, which is not below 0, as scores of queries are."""
    function = {
        "query": {"exists": {"field": field}},
        "functions": [{"field_value_factor": {"field": field}}],
        "boost_mode": "replace",
    }
    return {"name": name, "params": [], "template_language": "mustache", "template": {"function_score": function}}


def in_order(name: str, scores: Mapping[str, float], count: int) -> Floats:
    assert len(scores) == count
    return np.array([float(scores[f"{name}:{k}"]) for k in range(count)])
