"""The command `ranktune export`: its options, what it does, and how the export is used or shipped.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ranktune.arguments import ExportArguments
from ranktune.command_line.options import Given, check_alone, named_model, reading, takes_options, write_output
from ranktune.solvers.formats import FORMATS

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.models.base import Model

ZOOKEEPER = 2**20
"""The most bytes of a file in ZooKeeper, by default."""
_FORMATS = "\n".join(f"{name:<15}{FORMATS.help(name)}" for name in FORMATS)
HELP = f"""Write MODEL for another system. It has only the features that are used, by name (f1, f2, ... without names).

\b
{_FORMATS}

\b
Examples:
  ranktune export model.json --format solr --name mine -o solr.json
  curl -X PUT -H 'Content-type: application/json' --data-binary @solr.json \\
    http://localhost:8983/solr/COLLECTION/schema/model-store
  ranktune export model.json --format elasticsearch --name mine -o es.json
  curl -X POST -H 'Content-Type: application/json' --data-binary @es.json \\
    http://localhost:9200/_ltr/_featureset/FEATURES/_createmodel
  ranktune export model.json --format onnx -o model.onnx --check test.txt

With --replay the model is shipped, with the definitions of its features, to a folder (--output) or a running engine
(--to). The definitions come from the columns of the training table: numbers, values of categories, dates, and scores
such as bm25(title). What you must define is counted, and marked FILL_IN. Documents of --replay are scored by what reads
the format: onnxruntime, LightGBM or Python. Of formats of engines the syntax is checked. With --to the engine is asked
for the values of their features. If scores differ from those of the model, it is not shipped: in a running engine it is
deleted, and the definitions stay.

\b
Examples:
  ranktune export model.json --format solr --name mine --replay log.csv -o out
  ranktune export model.json --format elasticsearch --name mine \\
    --replay log.csv --document sku --to http://localhost:9200/products
"""


@takes_options(ExportArguments)
def export(shared: Given, *, context: typer.Context) -> None:
    """Write the model, and print on standard error how it is used; or ship it, and print what was done."""
    wanted = ExportArguments(**{**shared, "model": Path(named_model(str(shared["model"])))})
    if wanted.replay is not None:
        check_alone(context, "--replay", shared.keys() - {"definitions", "check", "distil", "trees"})
        print("\n".join(_shipped(wanted, wanted.replay)))
        return
    if wanted.to is not None:
        raise typer.BadParameter("needs --replay DATA.", param_hint="--to")
    if wanted.distil is None and wanted.trees is not None:
        raise typer.BadParameter("needs --distil DATA.", param_hint="--trees")
    print(export_file(wanted), file=sys.stderr)


def _shipped(wanted: ExportArguments, replay: str) -> list[str]:
    """Ship a model, and return what was done."""
    from ranktune.solvers.models.base import load_model
    from ranktune.tuner.deployment.shipping import ExportOptions, ship

    if wanted.output is None and wanted.to is None:
        raise typer.BadParameter("add -o FOLDER, --to URL, or both.", param_hint="--output, --to")
    model = load_model(wanted.model)
    target = ExportOptions(wanted.format, wanted.model_name, wanted.store, wanted.engine_version, wanted.absent)
    queries = _read(model, replay, wanted, graded=False)
    return ship(model, target, queries, folder=wanted.output, to=wanted.to or "")


def export_file(wanted: ExportArguments) -> str:
    """Write a model file in another format, to standard output without an output; return a message about it.

    Nothing is written if the data to distil or check by cannot be read or scored.
    """
    from ranktune.solvers.abilities import IN_WORDS
    from ranktune.solvers.core.errors import ParameterError, listed
    from ranktune.solvers.export import export
    from ranktune.solvers.export.check import EVALUATORS, agreement, check_evaluator, check_written
    from ranktune.solvers.export.source import OTHER_MODELS
    from ranktune.solvers.models.base import load_model
    from ranktune.solvers.models.blend import needs_of

    name, format = wanted.format, FORMATS.find(wanted.format)
    if wanted.output is None and not format.is_text:
        raise ParameterError(f"{name} is not text: add -o FILE.")
    if wanted.check is not None:
        check_evaluator(name)
    model, distilled = load_model(wanted.model), ""
    needs = needs_of(model)
    if not format.holds(needs) or wanted.trees is not None:
        if wanted.distil is None:
            kinds = listed(IN_WORDS[kind] for kind in sorted(needs))
            others = ", ".join(other for other in FORMATS if FORMATS[other].holds(needs))
            raise ParameterError(
                f"{name} cannot hold {model.solver}, a model of {kinds}. Add --distil DATA, such as the training data, "
                f"to make it one that {name} holds, tune with --serve {name}, or export to "
                f"{f'one of {others}' if others else 'none: `ranktune predict` scores with it'}. {OTHER_MODELS}"
            )
        model, distilled = _distilled(model, wanted, wanted.distil)
    engine = {"engine_version": wanted.engine_version, "absent": wanted.absent}
    content = export(model, name, name=wanted.model_name, store=wanted.store, **engine)
    lines = [f"{model.solver} with {model.nonzeros} of {model.n_features} features, for {format.help}.", distilled]
    queries = None if wanted.check is None else _read(model, wanted.check, wanted, graded=False)
    if queries is not None and name not in EVALUATORS:
        lines.append(check_written(name, content))
    elif queries is not None:
        checked = agreement(model, name, content, queries)
        lines.append(
            f"Checked: by {checked.evaluator} the order is the same on {checked.same} of {checked.queries} queries; "
            f"scores differ by at most {checked.difference:.1g} of the largest."
        )
    if wanted.definitions is not None:
        from ranktune.tuner.deployment.shipping import write_definitions

        lines += write_definitions(model, name, wanted.model_name, wanted.store, wanted.definitions, queries)
    write_output(content, wanted.output)
    if name == "solr" and len(content) > ZOOKEEPER:
        lines.append(
            f"It has {len(content)} bytes, and ZooKeeper takes {ZOOKEEPER}: see DefaultWrapperModel in Solr's guide."
        )
    if model.encoding is not None and model.feature_names is not None:
        used = [model.feature_names[k] for k in model.used_features.tolist()]
        lines += [f"Feature: {text}." for text in model.encoding.explained(used)]
    use = format.within if model.needs_queries else format.use
    output = wanted.output or Path("FILE")
    use = use.replace("from FILE", f"from {output.stem}").replace("FILE", str(output))
    return "\n".join(filter(None, [*lines, use.replace("NAME", wanted.model_name)]))


def _distilled(model: Model, wanted: ExportArguments, data: str) -> tuple[Model, str]:
    """Return a copy of a model that a format holds, and a sentence on what it loses on data that have grades."""
    import numpy as np

    from ranktune.tuner.deployment.engines import copied

    copy = copied(model, _read(model, data, wanted), [wanted.format], wanted.trees)
    if np.isnan(copy.loss.mean):
        return copy.model, f"Distilled. What it loses is not known: {copy.metric} is defined on no query of {data}."
    return copy.model, (
        f"Distilled: on queries of {data} that it was not made from, {copy.metric} changes by {-copy.loss.mean:+.4f} "
        f"({-copy.loss.high:+.4f} to {-copy.loss.low:+.4f}); {copy.bytes_before / 1000:.1f} kB became "
        f"{copy.model.bytes / 1000:.1f}, {copy.microseconds_before:.2f} us a document {copy.microseconds:.2f}."
    )


def _read(model: Model, data: str, wanted: ExportArguments, *, graded: bool = True) -> Queries:
    """Return the queries that data names, with the features of a model; of a named data set those of training."""
    from ranktune.solvers.data.readers.formats import is_name
    from ranktune.solvers.data.sources import catalogue

    if graded and is_name(data):
        return catalogue.load(data)[0].train
    return catalogue.read_for(model, data, graded=graded, **reading(vars(wanted)))
