"""The command `ranktune export`: its options, what it does, and how the export is used.

As in ranktune.cli, heavy modules are imported inside the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.options import Missing, ZeroBased, reading, write_output

if TYPE_CHECKING:
    from ranktune.solvers.export.check import Agreement
    from ranktune.solvers.models.base import Model
    from ranktune.studies.readers.options import ReadOptions

ZOOKEEPER = 2**20
"""The most bytes of a file in ZooKeeper, by default."""
_PLUGIN = (
    "Upload:  curl -X POST -H 'Content-Type: application/json' --data-binary @FILE \\\n"
    "           http://localhost:9200/_ltr/_featureset/FEATURES/_createmodel\n"
    'Rank:    "rescore": {"query": {"rescore_query": {"sltr": {"params": {...}, "model": "NAME"}}}}'
)
USES: Mapping[str, str] = {
    "solr": (
        "Upload:  curl -X PUT -H 'Content-type: application/json' --data-binary @FILE \\\n"
        "           http://localhost:8983/solr/COLLECTION/schema/model-store\n"
        "Rank:    rq={!ltr model=NAME reRankDocs=100}"
    ),
    "elasticsearch": _PLUGIN,
    "opensearch": _PLUGIN,
    "vespa": "Put it into your schema, see what each feature stands for there, deploy, and query with ranking=NAME.",
    "onnx": 'Rank:    onnxruntime.InferenceSession("FILE").run(["score"], {"features": X})',
    "pmml": 'Rank:    pypmml.Model.load("FILE").predict({"FEATURE": 1.0, ...})["score"]',
    "ranklib": "Rank:    java -jar RankLib.jar -load FILE -rank DATA -score SCORES",
    "liblinear": "Rank:    liblinear-predict DATA FILE SCORES   (DATA without qid)",
    "json": "Score:   the sum of weight * value, plus the leaves that trees lead to (left where value <= threshold).",
    "python": 'Rank:    from FILE import score; score({"FEATURE": 1.0, ...})',
}
"""Format -> how to use what was written."""


HELP = """Write MODEL for another system: only the features it uses, by their names (f1, f2, ... if it has none).

\b
solr           Solr's model store
elasticsearch  the learning-to-rank plugin of Elasticsearch
opensearch     the learning-to-rank plugin of OpenSearch
vespa          a rank profile for Vespa's schema
onnx           ONNX runtimes (a binary file)
pmml           PMML 4.4 evaluators
ranklib        RankLib, a Coordinate Ascent model (linear models)
liblinear      liblinear-predict (linear models)
json           plain JSON: names with weights, trees
python         a Python function that needs nothing else

\b
Examples:
  ranktune export model.json --format solr --name mine -o solr.json
  curl -X PUT -H 'Content-type: application/json' --data-binary @solr.json \\
    http://localhost:8983/solr/COLLECTION/schema/model-store
  ranktune export model.json --format elasticsearch --name mine -o es.json
  curl -X POST -H 'Content-Type: application/json' --data-binary @es.json \\
    http://localhost:9200/_ltr/_featureset/FEATURES/_createmodel
  ranktune export model.json --format onnx -o model.onnx --check test.txt
"""


def export(
    model: Annotated[Path, typer.Argument(help="A model.json.")],
    format: Annotated[str, typer.Option("--format", "-f", help="One of the formats above.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: standard output)")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the model in the other system.")] = "ranktune",
    store: Annotated[str, typer.Option(help="Solr's feature store.")] = "_DEFAULT_",
    check: Annotated[
        str | None, typer.Option(help="Data on which to compare the export's ranking with the model's (onnx, python).")
    ] = None,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
) -> None:
    """Write the model, and print on standard error how it is used."""
    options = reading(missing, zero_based)
    print(export_file(model, format, output, name=name, store=store, check=check, reading=options), file=sys.stderr)


def export_file(
    path: Path,
    format: str,
    output: Path | None,
    *,
    name: str,
    store: str,
    check: str | None,
    reading: ReadOptions,
) -> str:
    """Write the model file at path in a format, to standard output if output is None; return a message about it.

    Nothing is written if the data to check by cannot be read or scored.
    """
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.solvers.export.check import check_evaluator
    from ranktune.solvers.export.formats import export, format_called
    from ranktune.solvers.models.base import load_model

    if output is None and not format_called(format).is_text:
        raise ParameterError(f"{format} is not text: add -o FILE.")
    if check is not None:
        check_evaluator(format)
    model = load_model(path)
    content = export(model, format, name=name, store=store)
    checked = None if check is None else _checked(model, format, content, check, reading)
    write_output(content, output)
    lines = [
        f"{model.solver} with {model.nonzeros} of {model.n_features} features, for {format_called(format).purpose}."
    ]
    if checked is not None:
        lines.append(_summary(checked))
    if format == "solr" and len(content) > ZOOKEEPER:
        lines.append(
            f"It has {len(content)} bytes, and ZooKeeper takes {ZOOKEEPER}: see DefaultWrapperModel in Solr's guide."
        )
    use = USES[format].replace("FILE", str(output or "FILE")).replace("NAME", name)
    return "\n".join([*lines, use])


def _checked(model: Model, format: str, content: str | bytes, data: str, reading: ReadOptions) -> Agreement:
    from ranktune.solvers.export.check import agreement
    from ranktune.studies import catalogue

    names = model.feature_names
    queries = catalogue.read(data, n_features=model.n_features, feature_names=names, graded=False, **reading)
    return agreement(model, format, content, queries)


def _summary(found: Agreement) -> str:
    return (
        f"Checked: by {found.evaluator} the order is the same on {found.same} of {found.queries} queries; scores "
        f"differ by at most {found.difference:.1g} of the largest."
    )
