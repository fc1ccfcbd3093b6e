"""A model and the definitions of its features in a folder, and in engines that compute the features by them."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.export import export
from ranktune.solvers.export.definitions import WRITERS
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.registry import make
from ranktune.tuner.deployment import shipping
from ranktune.tuner.deployment.shipping import ExportOptions, ship
from tests.support.commands import called, succeeded
from tests.support.engine_server import running
from tests.support.export_samples import NAMES, trees
from tests.support.faults import Faults

ENGINES = {"solr": "/solr/products", "elasticsearch": "/products", "opensearch": "/products"}
engines = pytest.mark.parametrize("format", ENGINES)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model, Queries, dict[str, dict[str, Any]]]:
    """A table with a category, a date, a number that is missing now and then, and a score; its model; its documents."""
    generator, n = np.random.default_rng(0), 160
    table = pl.DataFrame(
        {
            "search": [f"it's mug {k // 10}" for k in range(n)],
            "sku": [f"p{k}" for k in range(n)],
            "brand": generator.choice(["Alder", "Elm, & Co", "Birch=2"], n).tolist(),
            "price": np.round(generator.uniform(1, 90, n), 2).tolist(),
            "rating": [None if x < 2.0 else x for x in np.round(generator.uniform(1, 5, n), 1).tolist()],
            "listed_on": [f"2026-0{1 + k % 9}-{10 + k % 19}" for k in range(n)],
            "bm25_title": [0.0 if x < 1.0 else x for x in np.round(generator.uniform(0, 9, n), 3).tolist()],
        }
    )
    rating, age = table["rating"].fill_null(0.0).to_numpy(), np.arange(n) % 9
    utility = (table["brand"] == "Birch=2").to_numpy() * 2 + rating + 0.4 * age + 0.3 * table["bm25_title"].to_numpy()
    table = table.with_columns(grade=pl.Series(np.digitize(utility, np.quantile(utility, [0.5, 0.8]))))
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    table.write_csv(path)
    queries = catalogue.read(str(path), qid="search", grade="grade", document="sku")
    fitted = make("LambdaMART", {"trees": 10, "min_documents": 5}, 0).fit(queries)
    model = fitted.as_model(feature_names=queries.feature_names, encoding=queries.encoding)
    return path, model, queries, {row["sku"]: row | {"title": row["bm25_title"]} for row in table.iter_rows(named=True)}


@engines
def test_an_engine_computes_the_features_of_the_table_by_the_definitions(format: str, shop: Any) -> None:
    _, model, queries, documents = shop
    known = {sku: documents[sku] for sku in list(documents)[30:]}  # the first queries are of documents that are gone
    with running(known) as server:
        url = server.url.replace("//", "//me:se%40cret@") + ENGINES[format]
        said = ship(model, ExportOptions(format, "mine"), queries, to=url)
        assert list(server.models) == ["mine"]
        assert "Replayed 130 of 160 documents by the values of the index" in said[-1]
        assert re.search(rf"and those\nof {format} itself by [\de-]+ from those of the model\.$", said[-1])
        assert {authorization for _, _, authorization in server.asked} == {"Basic bWU6c2VAY3JldA=="}
        by_column = sum(any(sign in name for sign in "=:") for name in source_of(model, format, "x", "x").names)
        assert by_column >= 3 and f"features: {by_column} by the columns of the table" in said[1]
        if format != "solr":
            with pytest.raises(ParameterError, match=r"answered 400: .*\[mine\] already exists") as caught:
                ship(model, ExportOptions(format, "mine"), queries, to=url)
            assert "cret" not in str(caught.value) and list(server.models) == ["mine"]


@engines
@pytest.mark.parametrize("field", ["brand", "listed_on", "rating"])
def test_an_index_with_other_values_is_refused_and_the_model_deleted(format: str, field: str, shop: Any) -> None:
    _, model, queries, documents = shop
    other = {"brand": "Elm", "listed_on": None, "rating": 5.0}[field]
    with running({sku: row | {field: other} for sku, row in documents.items()}) as server:
        with pytest.raises(
            DataError, match=f"more than 0.001, so that it is refused.*differs: {field}.* The model was deleted"
        ):
            ship(model, ExportOptions(format), queries, to=server.url + ENGINES[format])
        assert server.models == {} and server.features
    with running({}) as server:
        with pytest.raises(DataError, match="the index has none of the documents"):
            ship(model, ExportOptions(format), queries, to=server.url + ENGINES[format])
        with pytest.raises(DataError, match="Name the column by document="):
            ship(model, ExportOptions(format), replace(queries, document_ids=None), to=server.url + ENGINES[format])
        assert server.models == {}
    with pytest.raises(ParameterError, match="Is the engine running there"):
        ship(model, ExportOptions(format), queries, to=server.url + ENGINES[format])


@engines
@pytest.mark.parametrize("old", ["0.0", "0.1", "-0."])
def test_an_engine_that_scores_otherwise_than_the_model_is_refused(
    format: str, old: str, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine has another value in the leaves that begin so."""
    _, model, queries, documents = shop
    leaf = re.compile(rf"""((?:"value":"|leaf\\\\?":)){old}""")
    monkeypatch.setattr(
        shipping, "export", lambda *args, **options: leaf.sub(r"\g<1>7.", str(export(*args, **options)))
    )
    with running(documents) as server:
        with pytest.raises(
            DataError, match=rf"by {format} the scores of the replay differ by .* model for the same values"
        ):
            ship(model, ExportOptions(format), queries, to=server.url + ENGINES[format])
        assert server.models == {} and server.features


@pytest.mark.parametrize(
    ("format", "old", "new", "said"),
    [
        ("solr", '"threshold":"', '"threshold":"f', "solr does not load the model: threshold cannot be 'f"),
        ("elasticsearch", '\\"leaf\\":', '\\"leaf\\":0,\\"x\\":', "elasticsearch does not load .* has other"),
        ("vespa", "isNan", "isnan(", "vespa does not load the model"),
        ("python", "0.", "7.", "more than 1e-05, so nothing was shipped"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused_before_anything_is_written(
    format: str, old: str, new: str, said: str, shop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, model, queries, _ = shop
    monkeypatch.setattr(shipping, "export", lambda *args, **options: str(export(*args, **options)).replace(old, new))
    with pytest.raises(DataError, match=said):
        ship(model, ExportOptions(format), queries, folder=tmp_path / "shipped")
    assert not (tmp_path / "shipped").exists()


def test_definitions_mend_what_a_version_does_with_absent_features(shop: Any) -> None:
    """OpenSearch 3.5 sends NaN right: that harms only what training documents lacked, since the others have a value."""
    _, model, queries, documents = shop
    with pytest.warns(RankTuneWarning, match=r"opensearch 3\.5 .* the model does not for rating\. "), running({}):
        with pytest.raises(DataError, match=r"documents lack rating, which is something else .* nothing was shipped"):
            ship(model, ExportOptions("opensearch", engine_version="3.5"), queries, to="http://127.0.0.1:1/products")
    whole = queries.with_features(np.nan_to_num(queries.features))
    complete = replace(whole, has_missing=False)
    fitted = make("LambdaMART", {"trees": 5, "min_documents": 5}, 0).fit(complete)
    plain = fitted.as_model(feature_names=queries.feature_names, encoding=queries.encoding)
    full = {sku: row | {"rating": row["rating"] or 0.0} for sku, row in documents.items()}
    with running(full) as server:
        target = ExportOptions("opensearch", engine_version="3.5")
        assert "160 of 160" in ship(plain, target, queries, to=f"{server.url}/products")[-1]


@engines
def test_what_a_person_must_define_is_marked_counted_and_kept_from_an_engine(format: str, tmp_path: Path) -> None:
    queries = Queries.from_arrays(np.eye(5), np.zeros(5), qid=[1] * 5, feature_names=NAMES)
    said = "\n".join(ship(trees(), ExportOptions(format), queries, folder=tmp_path))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == sorted(["model.json", *WRITERS[format]])
    negative = format != "solr"  # bm25(title) has a split below 0, and scores of queries have none
    assert (f"{3 + negative} to fill in" in said and "'say \"so\"'" in said) or 'say "so"' in said
    for name in WRITERS[format]:
        assert (tmp_path / name).read_text().count("FILL_IN") == 3 + negative
    with pytest.raises(ParameterError, match="must be defined by you"):
        ship(trees(), ExportOptions(format), queries, to="http://127.0.0.1:1/solr/x")


@engines
@pytest.mark.parametrize(
    ("column", "of_search"),
    [
        ("searched_at", [f"2026-02-{10 + q}T08:30:00" for q in range(9)]),
        ("device", ['desk "top"', "mobile", "mobile"] * 3),
        ("words", [1.0, 2.0, 2.0, 5.0, 1.0, 3.0, 1.0, 1.0, 2.0]),
    ],
)
def test_what_all_documents_of_a_search_share_is_a_parameter_of_the_request(
    format: str, column: str, of_search: list[Any], tmp_path: Path
) -> None:
    """What is the same everywhere, or differs in one search, is a field; so is each that other definitions read."""
    brands = ["Elm", "Ash", "Elm", "Oak"] * 9
    table = {
        "search": [k // 4 for k in range(36)],
        column: [value for value in of_search for _ in range(4)],
        "brand": brands,
        "shop": [7.0] * 36,
        "stock": [1.0 if k < 35 else 0.0 for k in range(36)],
        "listed_on": [f"2026-01-{10 + k % 19}" for k in range(36)],
        "bm25_description": [float(k % 5) for k in range(36)],
        "grade": [k % 2 for k in range(36)],
    }
    queries = catalogue.read(pl.DataFrame(table), qid="search", grade="grade")
    assert queries.feature_names is not None
    model = LinearModel(
        np.ones(queries.n_features), "RankSVM", feature_names=queries.feature_names, encoding=queries.encoding
    )
    said = " ".join(ship(model, ExportOptions(format), queries, folder=tmp_path))
    assert "must have these fields: brand, description, listed_on, shop and stock." in said
    assert f"your requests must give them: {column}." in said
    file = "features.json" if format == "solr" else "featureset.json"
    made = json.loads((tmp_path / file).read_text())
    for feature in made if format == "solr" else made["featureset"]["features"]:
        asked, text = (
            feature["name"].startswith(column),
            json.dumps(feature["params" if format == "solr" else "template"]),
        )
        assert ("{" + column in text) == asked
        assert format == "solr" or feature["params"] == (
            [column] if asked else ["keywords"] * ("bm25" in feature["name"])
        )
        assert not (asked and ('"field"' in text or "f=" in text))


def test_every_format_that_can_be_checked_goes_into_a_folder(tmp_path: Path) -> None:
    queries = Queries.from_arrays(np.eye(5), np.zeros(5), qid=[1] * 5, feature_names=NAMES)
    model = trees()
    assert isinstance(model, TreeModel)
    for format in ("vespa", "ranklib", "lightgbm", "python"):
        ship(model, ExportOptions(format), queries, folder=tmp_path / format)
        assert [path.name for path in (tmp_path / format).iterdir()] == [shipping.MODEL_FILES[format]]
    assert "# FILL_IN: what the feature is" in (tmp_path / "vespa" / "rank-profile.sd").read_text()
    for format, url, message in (
        ("vespa", "http://127.0.0.1:1/x", "has no interface that models are created by"),
        ("solr", "http://127.0.0.1:1", r"to= must be http://HOST:8983/solr/COLLECTION"),
        ("pmml", "", "nothing here can check pmml"),
    ):
        with pytest.raises(ParameterError, match=message):
            ship(model, ExportOptions(format), queries, folder=tmp_path, to=url)


def test_the_code_for_eland_has_the_queries_of_the_feature_set(shop: Any, tmp_path: Path) -> None:
    _, model, queries, _ = shop
    ship(model, ExportOptions("elasticsearch"), queries, folder=tmp_path)
    code = (tmp_path / "ltr_model_config.py").read_text()
    made: dict[str, Any] = {"LTRModelConfig": dict, "QueryFeatureExtractor": dict}
    exec(code.replace("from eland", "# from eland"), made)
    expected = json.loads((tmp_path / "featureset.json").read_text())["featureset"]["features"]
    assert [(f["feature_name"], f["query"]) for f in made["ltr_model_config"]["feature_extractors"]] == [
        (f["name"], f["template"]) for f in expected
    ]


def test_the_command(shop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, model, _, documents = shop
    model.save(tmp_path / "model.json")
    given = ("export", "model.json", "-f", "elasticsearch", "--replay", str(path), "--name", "mine")
    with running(documents) as server:
        shown = succeeded(*given, "--to", f"{server.url}/products", "-o", "shipped")
        assert list(server.models) == ["mine"]
    assert "Replayed 160 of 160 documents by the values of the index" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    refused = called(*given)
    assert refused.exit_code == 2 and "add -o FOLDER, --to URL, or both" in refused.stderr


def test_a_full_disk_leaves_the_files_of_before(tmp_path: Path) -> None:
    def writes(weight: float) -> list[Callable[[], object]]:
        model, files = LinearModel(np.array([weight]), "RankSVM"), {"features.json": str(weight)}
        return [partial(export, model, "json", tmp_path / "model.json"), partial(shipping.write_files, tmp_path, files)]

    for write in writes(1.0):
        write()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for write in writes(2.0):
        with Faults(2, tmp_path), pytest.raises((OSError, ParameterError), match="No space left"):
            write()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
