"""The formats that models can be exported to, and what each of them holds.

That is weights of linear models, trees, and sums of both. Weights apply to raw features: any scaling during training is
already part of them, except scaling by query, which no format can express. Importing this module imports no writer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.table import Table, named

if TYPE_CHECKING:
    from ranktune.solvers.export.source import Source
    from ranktune.solvers.models.base import Model

Writer: TypeAlias = "Callable[[Source], str | bytes]"


@dataclass(frozen=True)
class Format:
    """What a format is (help), its writer, how what it wrote is used, and what it holds: weights, trees, sums of both.

    place: module:function of the writer, in this package. missing_weights: what a missing value adds to a weighted sum;
    missing_sides: where trees send it. In use, FILE and NAME stand for the file and the name of the model. within: the
    use of a model of trees that compare the documents of a query; empty where the format cannot hold one.
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
        from ranktune.solvers.models.base import LINEAR, MISSING_SIDES, MISSING_WEIGHTS, TREES, WITHIN

        kinds = {LINEAR: self.linear, TREES: self.trees, WITHIN: bool(self.within)}
        held = kinds | {MISSING_WEIGHTS: self.missing_weights, MISSING_SIDES: self.missing_sides}
        return all(held.get(part, False) for part in parts) and (len(parts & kinds.keys()) < 2 or self.blends)


_PLUGIN = (
    "Upload:  curl -X POST -H 'Content-Type: application/json' --data-binary @FILE \\\n"
    "           http://localhost:9200/_ltr/_featureset/FEATURES/_createmodel\n"
    'Rank:    "rescore": {"query": {"rescore_query": {"sltr": {"params": {...}, "model": "NAME"}}}}'
)
_EVERYTHING: Mapping[str, Any] = {"blends": True, "missing_weights": True, "missing_sides": True}

FORMATS: Table[Format] = Table(
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
            "vespa:vespa",
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
            "lightgbm:lightgbm",
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


def export(
    model: Model,
    format: str,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "ranktune",
    store: str = "_DEFAULT_",
    engine_version: str | None = None,
    absent: str | None = None,
) -> str | bytes:
    """Convert a model to the format of a system that serves it.

    Only features that influence a score are written, at least one; the format of liblinear has a line for each feature.
    The same model always gives the same content.

    Parameters
    ----------
    model : Model
        The model, such as load_model returns.
    format : str
        A name of FORMATS: "solr", "elasticsearch", "opensearch", "vespa", "onnx", "pmml", "ranklib", "lightgbm",
        "liblinear", "json" or "python".
    path : str or path-like, optional
        A file to write the content to as well.
    name : str, default="ranktune"
        The name of the model in the target system.
    store : str, default="_DEFAULT_"
        Solr's feature store.
    engine_version : str, optional
        The version of the engine, such as "8.15.3", which decides what a feature is to the model that a document does
        not have. The newest by default. A RankTuneWarning says where that differs from training.
    absent : {"zero", "nan"}, optional
        What the engine gives the model for such a feature, where you have changed it: 0, or a missing value.

    Returns
    -------
    str or bytes
        The content, bytes for "onnx" and text for the other formats.

    Raises
    ------
    ParameterError
        The format is unknown or cannot express the model, name or store is empty, or engine_version or absent is none
        of the format.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> from ranktune.solvers import LinearModel
    >>> from ranktune.solvers.export import export
    >>> model = LinearModel([0.5, 0.0, 0.25], "RankSVM", feature_names=("bm25", "age", "clicks"))
    >>> print(export(model, "solr", name="mine"))
    {"class":"org.apache.solr.ltr.model.LinearModel",
    "store":"_DEFAULT_",
    "name":"mine",
    "features":[{"name":"bm25"},{"name":"clicks"}],
    "params":{"weights":{"bm25":0.5,"clicks":0.25}}}
    <BLANKLINE>
    """
    from ranktune.solvers.export.absent import arrival, warn_of_absent
    from ranktune.solvers.export.source import source_of

    chosen = FORMATS.find(format)
    if not name or not store:
        raise ParameterError("name and store must not be empty: leave them out for ranktune and _DEFAULT_.")
    source = source_of(model, format, name, store)
    _check_expressible(source, chosen)
    _check_missing(source, chosen)
    arrives = arrival(source, engine_version, absent)
    content = chosen.write(replace(source, asks_zero=arrives.asks_zero))
    warn_of_absent(source, engine_version, arrives.absent)
    if path is not None:
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return content


def _check_expressible(source: Source, chosen: Format) -> None:
    """Raise ParameterError where the format cannot hold the parts of the model."""
    from ranktune.solvers.export.source import OTHER_MODELS
    from ranktune.solvers.models.base import TREES

    parts = source.parts
    if chosen.holds(parts):
        return
    others = ", ".join(known for known, other in FORMATS.items() if other.holds(parts))
    if source.kinds is not None:
        raise ParameterError(
            f"the model, by {source.model.solver}, compares each document with the others of its query, and "
            f"{source.format} scores one document at a time. Export it to one of {others}, train with "
            f'within_query="none", name the system in serve=, which leaves such models out, or distil this one. '
            f"{OTHER_MODELS}"
        )
    if len(parts) == 1:
        kind, trained = ("trees", "linear") if TREES in parts else ("weights", "tree")
        raise ParameterError(
            f"{source.format} has no writer for {kind}, and the model, by {source.model.solver}, consists of them. "
            f"Export it to one of {others}, or train a {trained} solver. {OTHER_MODELS}"
        )
    held = " or ".join(kind for kind, can in (("weights", chosen.linear), ("trees", chosen.trees)) if can)
    raise ParameterError(
        f"{source.format} holds {held}{'' if chosen.linear and chosen.trees else ' alone'}, and the model, "
        f"{source.model.solver}, is the sum of both. Export it to one of {others}, distil it "
        f"(ranktune.solvers.distil), or export another. {OTHER_MODELS}"
    )


def _check_missing(source: Source, chosen: Format) -> None:
    """Raise ParameterError where the format would score a missing value in another way than the model."""
    from ranktune.solvers.export.source import OTHER_MODELS

    if source.missing is not None and not chosen.missing_weights:
        position = int(abs(source.missing).argmax())
        others = ", ".join(known for known, other in FORMATS.items() if other.missing_weights)
        raise ParameterError(
            f"in {source.format} a feature that a document lacks counts as 0, and in this model a missing "
            f"{source.names[position]!r} adds {source.missing[position]:.4g} to the score. Make trees of it "
            f"by distil= of `ranktune export`, name the system in serve= of tune, export it to one of {others}, or "
            f"train on data without missing values (missing='zero' reads them as 0). {OTHER_MODELS}"
        )
    if source.sides() is not None and not chosen.missing_sides:
        others = ", ".join(known for known, other in FORMATS.items() if other.missing_sides)
        raise ParameterError(
            f"{source.format} cannot say where trees send missing values, which the model has learned. Export it to "
            f"one of {others}, or train on data without missing values (missing='zero' reads them as 0)."
        )
