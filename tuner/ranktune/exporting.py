"""The command `ranktune export`: what it takes, does, and says of how the export is put to use.

As in ranktune.cli, heavy modules are imported inside the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ranktune.solvers.export.check import Agreement
    from ranktune.solvers.models.base import Model

ZOOKEEPER = 2**20
"""Bytes of a file of ZooKeeper, by default."""
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


HELP = """Write MODEL for another system: the features that matter only, by their names (f1, f2, ... if it has none).

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
    format: Annotated[str, typer.Option("--format", "-f", help="One of those above.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: standard output)")
    ] = None,
    name: Annotated[str, typer.Option(help="What the model is called there.")] = "ranktune",
    store: Annotated[str, typer.Option(help="Solr's feature store.")] = "_DEFAULT_",
    check: Annotated[
        str | None, typer.Option(help="Data that the export scores too (onnx, python): is the order the same?")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="What a missing value (NaN, NULL) of that data is: error, or zero.")
    ] = "error",
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="Feature numbers of that data begin at 0, not at 1.")
    ] = False,
) -> None:
    """Write the model; say on standard error how it is put to use."""
    reading = ({} if missing == "error" else {"missing": missing}) | ({"one_based": False} if zero_based else {})
    told = export_file(model, format, output, name=name, store=store, check=check, reading=reading)
    print(told, file=sys.stderr)


def export_file(
    path: Path,
    format: str,
    output: Path | None,
    *,
    name: str,
    store: str,
    check: str | None,
    reading: Mapping[str, Any],
) -> str:
    """Write the model file at path in a format, to standard output where output is None; return what to say of it.

    Nothing is written where data to check by cannot be read or scored.
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
    if output is None:
        sys.stdout.write(str(content))
    else:
        try:
            output.write_bytes(content if isinstance(content, bytes) else content.encode())
        except OSError as error:
            raise ParameterError(f"cannot write {output}: {error.strerror}. Give a file you may write to.") from None
    lines = [
        f"{model.solver} with {model.nonzeros} of {model.n_features} features, for {format_called(format).purpose}."
    ]
    if checked is not None:
        lines.append(_told(checked))
    if format == "solr" and len(content) > ZOOKEEPER:
        lines.append(
            f"It has {len(content)} bytes, and ZooKeeper takes {ZOOKEEPER}: see DefaultWrapperModel in Solr's guide."
        )
    use = USES[format].replace("FILE", str(output or "FILE")).replace("NAME", name)
    return "\n".join([*lines, use])


def _checked(model: Model, format: str, content: str | bytes, data: str, reading: Mapping[str, Any]) -> Agreement:
    from ranktune.solvers.export.check import agreement
    from ranktune.studies import catalogue

    names = model.feature_names
    queries = catalogue.read(data, n_features=model.n_features, feature_names=names, graded=False, **reading)
    return agreement(model, format, content, queries)


def _told(found: Agreement) -> str:
    return (
        f"Checked: by {found.evaluator} the order is the same on {found.same} of {found.queries} queries; scores "
        f"differ by at most {found.difference:.1g} of the largest."
    )
