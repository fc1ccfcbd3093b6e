"""The formats that models can be exported to, and what each of them holds.

That is weights of linear models, trees, and sums of both. Weights apply to raw features: any scaling during training is
already part of them, except scaling by query, which no format can express. Importing this module imports no writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ranktune.solvers.abilities import LINEAR, MISSING_SIDES, MISSING_WEIGHTS, TREES, WITHIN
from ranktune.solvers.core.table import NamedTable, named

if TYPE_CHECKING:
    from ranktune.solvers.export.source import ExportedModel

Writer: TypeAlias = "Callable[[ExportedModel], str | bytes]"


@dataclass(frozen=True)
class Format:
    """What a format is (help), its writer, how what it wrote is used, and what it holds: weights, trees, sums of both.

    place: module:function of the writer, in ranktune.solvers.export. missing_weights: what a missing value adds to a
    weighted sum; missing_sides: where trees send it. In use, FILE and NAME stand for the file and the name of the
    model. within: the use of a model of trees that compare the documents of a query; empty where it can hold none.
    """

    help: str
    place: str
    use: str
    linear: bool = True
    trees: bool = True
    blends: bool = False
    is_text: bool = True
    missing_weights: bool = False
    missing_sides: bool = False
    within: str = ""

    @property
    def write(self) -> Writer:
        """The function that writes it, imported when it is used."""
        return cast(Writer, named(f"ranktune.solvers.export.{self.place}"))

    def holds(self, parts: Set[str]) -> bool:
        """Return whether it can express a model of these parts (`ranktune.solvers.models.blend.needs_of`)."""
        kinds = {LINEAR: self.linear, TREES: self.trees, WITHIN: bool(self.within)}
        abilities = kinds | {MISSING_WEIGHTS: self.missing_weights, MISSING_SIDES: self.missing_sides}
        return all(abilities.get(part, False) for part in parts) and (len(parts & kinds.keys()) < 2 or self.blends)


_PLUGIN = (
    "Upload:  curl -X POST -H 'Content-Type: application/json' --data-binary @FILE \\\n"
    "           http://localhost:9200/_ltr/_featureset/FEATURES/_createmodel\n"
    'Rank:    "rescore": {"query": {"rescore_query": {"sltr": {"params": {...}, "model": "NAME"}}}}'
)
_EVERYTHING: Mapping[str, Any] = {"blends": True, "missing_weights": True, "missing_sides": True}

FORMATS: NamedTable[Format] = NamedTable(
    "format",
    {
        "solr": Format(
            "Solr's model store",
            "search_engines:solr",
            "Upload:  curl -X PUT -H 'Content-type: application/json' --data-binary @FILE \\\n"
            "           http://localhost:8983/solr/COLLECTION/schema/model-store\n"
            "Rank:    rq={!ltr model=NAME reRankDocs=100}",
            missing_sides=True,
        ),
        "elasticsearch": Format(
            "the learning-to-rank plugin of Elasticsearch", "search_engines:plugin", _PLUGIN, missing_sides=True
        ),
        "opensearch": Format(
            "the learning-to-rank plugin of OpenSearch", "search_engines:plugin", _PLUGIN, missing_sides=True
        ),
        "vespa": Format(
            "a rank profile for Vespa's schema",
            "search_engines:vespa",
            "Put it into your schema, see what each feature stands for there, deploy, and query with ranking=NAME.",
            **_EVERYTHING,
        ),
        "onnx": Format(
            "ONNX runtimes (a binary file)",
            "onnx:onnx_graph",
            'Rank:    onnxruntime.InferenceSession("FILE").run(["score"], {"features": X})',
            is_text=False,
            within='Rank:    onnxruntime.InferenceSession("FILE").run(["score"], {"features": X, "queries": Q})\n'
            "         Q has the number of the query of each row, int64; give all documents of a query.",
            **_EVERYTHING,
        ),
        "pmml": Format(
            "PMML 4.4 evaluators",
            "pmml:pmml",
            'Rank:    pypmml.Model.load("FILE").predict({"FEATURE": 1.0, ...})["score"]',
            **_EVERYTHING,
        ),
        "ranklib": Format(
            "RankLib, a Coordinate Ascent or LambdaMART model",
            "text:ranklib",
            "Rank:    java -jar RankLib.jar -load FILE -rank DATA -score SCORES",
        ),
        "lightgbm": Format(
            "LightGBM's libraries (trees)",
            "text:lightgbm",
            'Rank:    lightgbm.Booster(model_file="FILE").predict(X)',
            linear=False,
            missing_sides=True,
        ),
        "liblinear": Format(
            "liblinear-predict (linear models)",
            "text:liblinear_linear",
            "Rank:    liblinear-predict DATA FILE SCORES   (DATA without qid)",
            trees=False,
        ),
        "json": Format(
            "plain JSON: names with weights, trees",
            "python:plain_json",
            "Score:   the sum of weight * value, plus the leaves that trees lead to (left where value <= threshold).",
            **_EVERYTHING,
        ),
        "python": Format(
            "a Python function that needs nothing else",
            "python:python",
            'Rank:    from FILE import score; score({"FEATURE": 1.0, ...})',
            within='Rank:    from FILE import scores; scores([{"FEATURE": 1.0, ...}, ...])   (a whole query)',
            **_EVERYTHING,
        ),
    },
)
