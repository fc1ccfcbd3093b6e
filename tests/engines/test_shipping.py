"""A shop's table goes into running engines by ship, and they rank the documents of each search as predict does."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import polars as pl
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import Missing
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.models.base import Model
from ranktune.solvers.registry import make
from tests.engines.nodes import Engine, ask
from tests.support.commands import ranktune

pytestmark = pytest.mark.engines
QUERIES, SHOWN, PRODUCTS = 100, 12, 240
WORDS = ("mug", "blue", "large", "tea", "pot", "чашка", "it's", "glass")
TEXTS, DATES = ("title", "description"), ("listed_on",)
CATEGORIES = {
    "brand": ("Elm, & Co", "Birch=II", 'Ash "x"', "Дуб"),
    "category": ("a:b", "c.d", "e/f"),
    "colour": ("red", None),
}
DEVICES = ("mobile", 'desk "top"', "tablet")


@dataclass
class Solr:
    """The collection of Solr, in whose schema are the fields that ship asks for."""

    leaves_out_missing: ClassVar[bool] = False
    format: str
    version: str
    url: str

    def fill(self, products: Sequence[Mapping[str, Any]]) -> None:
        types = dict.fromkeys(CATEGORIES, "string") | dict.fromkeys(TEXTS, "text") | dict.fromkeys(DATES, "pdate")
        fields = [
            {"name": name, "type": kind} for name, kind in (types | {"price": "pfloat", "rating": "pfloat"}).items()
        ]
        ask("POST", f"{self.url}/schema", {"add-field": fields})
        known = [{key: value for key, value in product.items() if value is not None} for product in products]
        ask("POST", f"{self.url}/update?commit=true", known)
        kind, store = "org.apache.solr.ltr.feature.SolrFeature", "texts"
        texts = [
            {"name": t, "class": kind, "store": store, "params": {"q": f"{{!dismax qf={t}}}${{keywords}}"}}
            for t in TEXTS
        ]
        ask("PUT", f"{self.url}/schema/feature-store", texts)

    def texts(self, given: Mapping[str, str], ids: Sequence[str]) -> dict[str, dict[str, float]]:
        logged = self._ask(ids, fl=f"id,log:[features store=texts format=dense {self._efi(given)}]")
        pairs = {hit["id"]: (part.split("=") for part in hit["log"].split(",")) for hit in logged["response"]["docs"]}
        return {name: {key: float(value) for key, value in found} for name, found in pairs.items()}

    def ranked(self, given: Mapping[str, str], ids: Sequence[str]) -> dict[str, float]:
        rq = f"{{!ltr model=shop reRankDocs={len(ids)} {self._efi(given)}}}"
        return {hit["id"]: hit["score"] for hit in self._ask(ids, rq=rq, fl="id,score")["response"]["docs"]}

    def logged(self, given: Mapping[str, str], ids: Sequence[str]) -> Any:
        return self._ask(ids, fl=f"id,[features store=_DEFAULT_ format=dense {self._efi(given)}]")

    def _ask(self, ids: Sequence[str], **params: str) -> Any:
        query = {"q": "*:*", "fq": "{!terms f=id}" + ",".join(ids), "rows": len(ids), **params}
        return ask("GET", f"{self.url}/query?{urlencode(query)}")

    @property
    def knows_missing(self) -> bool:
        return self.version >= "9"

    @staticmethod
    def _efi(given: Mapping[str, str]) -> str:
        return " ".join(
            f"efi.{key}='" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" for key, value in given.items()
        )


@dataclass
class Plugin:
    """An index of OpenSearch or Elasticsearch."""

    format: str
    version: str
    base: str

    @property
    def url(self) -> str:
        return f"{self.base}/products"

    @property
    def knows_missing(self) -> bool:
        return self.version >= "3"

    leaves_out_missing = knows_missing

    def fill(self, products: Sequence[Mapping[str, Any]]) -> None:
        types = dict.fromkeys(CATEGORIES, "keyword") | dict.fromkeys(TEXTS, "text") | dict.fromkeys(DATES, "date")
        fields = {name: {"type": kind} for name, kind in (types | {"price": "float", "rating": "float"}).items()}
        ask("PUT", self.url, {"settings": {"number_of_shards": 1}, "mappings": {"properties": fields}})
        lines = [line for p in products for line in ({"index": {"_id": p["id"]}}, dict(list(p.items())[1:]))]
        ask("POST", f"{self.url}/_bulk?refresh=true", "".join(json.dumps(line) + "\n" for line in lines).encode())
        features = [{"name": t, "params": ["keywords"], "template": {"match": {t: "{{keywords}}"}}} for t in TEXTS]
        content = {
            "featureset": {"name": "texts", "features": [{"template_language": "mustache", **f} for f in features]}
        }
        ask("PUT", f"{self.base}/_ltr/_featureset/texts", content)

    def texts(self, given: Mapping[str, str], ids: Sequence[str]) -> dict[str, dict[str, float]]:
        hits = self.logged(given, ids, "texts")["hits"]["hits"]
        logs = {hit["_id"]: hit["fields"]["_ltrlog"][0]["log"] for hit in hits}
        return {name: {entry["name"]: entry.get("value", 0.0) for entry in log} for name, log in logs.items()}

    def ranked(self, given: Mapping[str, str], ids: Sequence[str]) -> dict[str, float]:
        query = {"rescore_query": {"sltr": {"model": "shop", "params": given}}, "query_weight": 0.0}
        found = self._ask(ids, rescore={"window_size": len(ids), "query": query})
        return {hit["_id"]: hit["_score"] for hit in found["hits"]["hits"]}

    def logged(self, given: Mapping[str, str], ids: Sequence[str], features: str = "shop") -> Any:
        named = {"sltr": {"_name": "all", "featureset": features, "params": given}}
        return self._ask(ids, ext={"ltr_log": {"log_specs": {"name": "log", "named_query": "all"}}}, also=named)

    def _ask(self, ids: Sequence[str], also: Any = None, **parts: Any) -> Any:
        filters = [{"terms": {"_id": list(ids)}}, *([] if also is None else [also])]
        query = {"size": len(ids), "_source": False, "query": {"bool": {"filter": filters}}, **parts}
        return ask("POST", f"{self.url}/_search", query)


@dataclass(frozen=True)
class Shop:
    """The engine with the products, the table of searches, the parameters of each search, and a model."""

    engine: Any
    table: Path
    rows: pl.DataFrame
    given: Mapping[str, Mapping[str, str]]
    model: Model
    queries: Queries


def made(engine: Any, folder: Path) -> Shop:
    """A shop whose text scores are those that the engine logs."""
    generator = np.random.default_rng(4)
    products: list[dict[str, Any]] = []
    for k in range(PRODUCTS):
        words = generator.choice(WORDS, 3 + k % 5).tolist()
        levels = {name: values[int(generator.integers(len(values)))] for name, values in CATEGORIES.items()}
        listed = f"20{20 + k % 6}-0{1 + k % 9}-{10 + k % 19}T0{k % 10}:30:00Z"
        price, rating = round(float(generator.uniform(1, 90)), 2), round(float(generator.uniform(1, 5)), 1)
        numbers = {"price": price, "rating": None if k % 3 == 0 else rating}
        texts = {"title": " ".join(words[:3]), "description": " ".join(words)}
        products.append({"id": f"p{k}", **levels, **numbers, "listed_on": listed, **texts})
    engine.fill(products)
    rows, given = list[dict[str, Any]](), dict[str, dict[str, str]]()
    for q in range(QUERIES):
        keywords = f"{' '.join(generator.choice(WORDS, 2))} {q}"
        time, device = f"2026-0{1 + q % 9}-{10 + q % 18}T1{q % 10}:00:00.000Z", DEVICES[q % 3]
        quoted = device.replace('"', '\\"') if engine.format == "solr" else device
        given[keywords] = {"keywords": keywords, "searched_at": time, "device": quoted, "words": str(2.5 + q % 4)}
        ids = [f"p{k}" for k in generator.choice(PRODUCTS, SHOWN, replace=False)]
        texts = engine.texts(given[keywords], ids)
        for sku in ids:
            own = {key: value for key, value in products[int(sku[1:])].items() if key not in ("id", *TEXTS)}
            scores = {f"bm25_{name}": texts[sku][name] for name in TEXTS}
            of_search = {"searched_at": time, "device": device, "words": 2.5 + q % 4}
            rows.append({"search": keywords, "sku": sku, **of_search, **own, **scores})
    table = pl.DataFrame(rows, infer_schema_length=None)
    wish = table["bm25_title"].to_numpy() * table["words"].to_numpy() + (table["brand"] == "Birch=II").to_numpy() * 3
    wish = wish + table["rating"].fill_null(1.0).to_numpy() * np.where(table["device"] == "mobile", 1.5, -0.5)
    wish = wish + (table["searched_at"] > "2026-05").to_numpy() * (table["listed_on"] > "2023").to_numpy() * 4
    wish = (
        wish
        - 0.05 * table["price"].to_numpy()
        + (table["colour"].is_null()).to_numpy()
        + generator.normal(size=len(rows))
    )
    table = table.with_columns(grade=pl.Series(np.digitize(wish, np.quantile(wish, [0.6, 0.85]))))
    path = folder / "shop.csv"
    table.write_csv(path)
    missing: Missing = "keep" if engine.knows_missing else "zero"
    queries = catalogue.read(str(path), qid="search", grade="grade", document="sku", missing=missing)
    fitted = make("LambdaMART", {"trees": 60, "min_documents": 5}, 0).fit(queries)
    model = fitted.as_model(feature_names=queries.feature_names, encoding=queries.encoding)
    model.save(folder / "model.json")
    return Shop(engine, path, table, given, model, queries)


def check_shipped(shop: Shop, folder: Path) -> None:
    """Ship, rerank and read the log of the features back."""
    engine = shop.engine
    command = [
        "export",
        "model.json",
        "-f",
        engine.format,
        "--name",
        "shop",
        "--replay",
        "shop.csv",
        "--to",
        engine.url,
    ]
    said = " ".join(ranktune(*command, "--engine-version", engine.version, cwd=folder).stdout.split())
    assert "Replayed 1200 of 1200 documents by the values of the index" in said
    fields = sorted([*CATEGORIES, *TEXTS, *DATES, "price", "rating"])
    assert f"must have these fields: {', '.join(fields[:-1])} and {fields[-1]}." in said
    assert "your requests must give them: device, searched_at and words." in said
    scores = shop.model.predict(shop.queries)
    same = 0
    for q, (keywords, given) in enumerate(shop.given.items()):
        rows = slice(q * SHOWN, (q + 1) * SHOWN)
        ids, expected = shop.rows["sku"][rows].to_list(), scores[rows]
        found = engine.ranked(given, ids)
        theirs = np.array([found[sku] for sku in ids])
        np.testing.assert_allclose(theirs, expected, rtol=1e-6, atol=1e-6 * np.abs(scores).max(), err_msg=keywords)
        order = sorted(range(SHOWN), key=lambda k: -theirs[k])
        same += bool((np.diff(expected[order]) <= 1e-6).all())
    assert same == QUERIES
    check_log(shop, folder, scores)


def check_log(shop: Shop, folder: Path, scores: Floats) -> None:
    """What the engine logs of the features is a table that ranktune reads and scores alike."""
    skus = [shop.rows["sku"][q * SHOWN : (q + 1) * SHOWN].to_list() for q in range(QUERIES)]
    answers = [shop.engine.logged(given, ids) for given, ids in zip(shop.given.values(), skus, strict=True)]
    (folder / "log.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    read = catalogue.read(str(folder / "log.jsonl"), graded=False)
    names, all_names = read.feature_names, shop.model.feature_names
    assert names is not None and all_names is not None and read.n_queries == QUERIES
    X = np.zeros((len(scores), len(all_names)))
    order = {str(sku): k for k, sku in enumerate(read.document_ids.tolist())} if read.document_ids is not None else {}
    assert len(order) <= PRODUCTS
    for name in set(names) & set(all_names):
        X[:, all_names.index(name)] = np.asarray(read.features)[:, names.index(name)]
    assert {all_names[k] for k in shop.model.used_features.tolist()} <= set(names)
    if shop.engine.leaves_out_missing and read.document_ids is not None:
        lacks = [int(str(sku)[1:]) % 3 == 0 for sku in read.document_ids]
        assert (X[lacks, all_names.index("rating")] == 0.0).all()
        X[lacks, all_names.index("rating")] = np.nan
    again = shop.model.predict(X)
    for q, ids in enumerate(skus):
        rows = range(q * SHOWN, (q + 1) * SHOWN)
        assert read.document_ids is not None
        at = {str(read.document_ids[row]): row for row in rows}
        np.testing.assert_allclose(
            again[[at[sku] for sku in ids]], scores[rows.start : rows.stop], rtol=1e-6, atol=1e-6
        )


def test_solr_ranks_every_search_of_a_shop_as_predict_does(solr: Engine, tmp_path: Path) -> None:
    check_shipped(made(Solr(*solr), tmp_path), tmp_path)


@pytest.mark.parametrize("plugin", ["opensearch", "opensearch3"], indirect=True)
def test_a_plugin_ranks_every_search_of_a_shop_as_predict_does(plugin: Engine, tmp_path: Path) -> None:
    check_shipped(made(Plugin(*plugin), tmp_path), tmp_path)
