"""The command `ranktune export`: its options, what it does, and how the export is used.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ranktune.arguments import ExportArguments
from ranktune.command_line.options import Given, reading, takes_options, write_output
from ranktune.solvers.export.formats import FORMATS

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.data.readers.parsing.options import ReadOptions
    from ranktune.solvers.export.check import Agreement
    from ranktune.solvers.models.base import Model

ZOOKEEPER = 2**20
"""The most bytes of a file in ZooKeeper, by default."""
_FORMATS = "\n".join(f"{name:<15}{FORMATS.help(name)}" for name in FORMATS)
HELP = f"""Write MODEL for another system. It has only the features it uses, by name (f1, f2, ... if it has no names).

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
  ranktune export model.json --format vespa --two-stage train.txt -o two-stage
"""


@takes_options(ExportArguments)
def export(
    given: Given,
    *,
    model: Annotated[Path, typer.Argument(help="A model.json.")],
    format: Annotated[
        str, typer.Option("--format", "-f", help="One of the formats above.", autocompletion=FORMATS.completions())
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: standard output)")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the model in the other system.")] = "ranktune",
    store: Annotated[str, typer.Option(help="Solr's feature store.")] = "_DEFAULT_",
    check: Annotated[
        str | None, typer.Option(help="Data on which to compare the export's ranking with the model's (onnx, python).")
    ] = None,
    distil: Annotated[
        str | None,
        typer.Option(
            help="Data, such as the training data, by which a model that the format cannot hold becomes one of trees, "
            "or of weights, that scores alike. How much it loses is said."
        ),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            help="With --distil: learn this number of trees from the scores, a smaller and faster model that loses "
            "more. What it loses is overstated on the training data, which the model has learnt by heart.",
            min=1,
        ),
    ] = None,
) -> None:
    """Write the model, and print on standard error how it is used."""
    options = reading(given)
    stages = Staging(*(given[name] for name in ("two_stage", "window", "within", "cost")))
    staging = None if stages.data is None else stages
    if staging is None and any(one is not None for one in stages):
        raise typer.BadParameter("needs --two-stage DATA.", param_hint="--window, --within, --cost")
    if staging is not None and check is not None:
        raise typer.BadParameter("cannot check two stages: leave it out.", param_hint="--check")
    by = None if distil is None else Distilling(distil, trees)
    if by is None and trees is not None:
        raise typer.BadParameter("needs --distil DATA.", param_hint="--trees")
    said = export_file(
        model, format, output, name=name, store=store, check=check, distil=by, staging=staging, reading=options
    )
    print(said, file=sys.stderr)


class Staging(NamedTuple):
    """The data by which two stages are made, the window, and limits and costs of the first stage's features."""

    data: str
    window: int | None = None
    within: str | None = None
    cost: str | None = None


class Distilling(NamedTuple):
    """The data by which a model is distilled, and the number of trees to learn, None for as many as it takes."""

    data: str
    trees: int | None = None


def export_file(
    path: Path,
    format: str,
    output: Path | None,
    *,
    name: str,
    store: str,
    check: str | None,
    distil: Distilling | None,
    staging: Staging | None = None,
    reading: ReadOptions,
) -> str:
    """Write the model file at path in a format, to standard output if output is None; return a message about it.

    With staging, the files of two stages are written into the folder output. Nothing is written if the data to distil,
    check or learn by cannot be read or scored.
    """
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.solvers.export.check import check_evaluator
    from ranktune.solvers.export.formats import export
    from ranktune.solvers.export.source import OTHER_MODELS
    from ranktune.solvers.models.base import load_model
    from ranktune.solvers.models.blend import needs_of

    if output is None and staging is None and not FORMATS.find(format).is_text:
        raise ParameterError(f"{format} is not text: add -o FILE.")
    if check is not None:
        check_evaluator(format)
    model, distilled = load_model(path), ""
    is_held = FORMATS.find(format).holds(needs_of(model))
    if not is_held or (distil is not None and distil.trees is not None):
        if distil is None:
            raise ParameterError(
                f"{format} cannot hold {model.solver}, a model of {_kinds(model)}. Add --distil DATA, such as the "
                f"training data, to make it one that {format} holds, or export to {_formats_for(model)}. {OTHER_MODELS}"
            )
        model, distilled = _distilled(model, format, distil, reading)
    if staging is not None:
        said = _staged(model, format, output, staging, name, store, reading)
        return "\n".join(filter(None, [distilled, said]))
    content = export(model, format, name=name, store=store)
    checked = None if check is None else _checked(model, format, content, check, reading)
    write_output(content, output)
    lines = [f"{model.solver} with {model.nonzeros} of {model.n_features} features, for {FORMATS.find(format).help}."]
    if distilled:
        lines.append(distilled)
    if checked is not None:
        lines.append(_summary(checked))
    if format == "solr" and len(content) > ZOOKEEPER:
        lines.append(
            f"It has {len(content)} bytes, and ZooKeeper takes {ZOOKEEPER}: see DefaultWrapperModel in Solr's guide."
        )
    if model.encoding is not None and model.feature_names is not None:
        used = [model.feature_names[k] for k in model.used_features.tolist()]
        lines += [f"Feature: {text}." for text in model.encoding.explained(used)]
    use = FORMATS.find(format).use.replace("FILE", str(output or "FILE")).replace("NAME", name)
    return "\n".join([*lines, use])


def _checked(model: Model, format: str, content: str | bytes, data: str, reading: ReadOptions) -> Agreement:
    from ranktune.solvers.data.sources import catalogue
    from ranktune.solvers.export.check import agreement

    queries = catalogue.read_for(model, data, graded=False, **reading)
    return agreement(model, format, content, queries)


def _kinds(model: Model) -> str:
    """Return in words what a model consists of."""
    from ranktune.solvers.core.errors import listed
    from ranktune.solvers.models.base import IN_WORDS
    from ranktune.solvers.models.blend import needs_of

    return listed(IN_WORDS[part] for part in sorted(needs_of(model)))


def _formats_for(model: Model) -> str:
    """Return the formats that hold a model."""
    from ranktune.solvers.models.blend import needs_of

    found = ", ".join(name for name, one in FORMATS.items() if one.holds(needs_of(model)))
    return f"one of {found}" if found else "none: ranktune.load_model serves it"


def _distilled(model: Model, format: str, distil: Distilling, reading: ReadOptions) -> tuple[Model, str]:
    """Return a copy of a model that a format holds, and a sentence on what it loses on data that have grades."""
    import numpy as np

    from ranktune.tuner.deployment.copying import copied

    data = distil.data
    found = copied(model, _training(model, data, reading), [format], distil.trees)
    if np.isnan(found.loss.mean):
        return found.model, f"Distilled. What it loses is not known: {found.metric} is defined on no query of {data}."
    return found.model, (
        f"Distilled: on queries of {data} that it was not made from, {found.metric} changes by {-found.loss.mean:+.4f} "
        f"({-found.loss.high:+.4f} to {-found.loss.low:+.4f}); {found.bytes_before / 1000:.1f} kB became "
        f"{found.model.bytes / 1000:.1f}, {found.microseconds_before:.2f} us a document {found.microseconds:.2f}."
    )


def _training(model: Model, data: str, reading: ReadOptions) -> Queries:
    """Return the training queries that data names, with the features of a model."""
    from ranktune.solvers.data.readers.formats import is_name
    from ranktune.solvers.data.sources import catalogue

    if is_name(data):
        return catalogue.load(data)[0].train
    return catalogue.read_for(model, data, **reading)


def _staged(
    model: Model, format: str, folder: Path | None, staging: Staging, name: str, store: str, reading: ReadOptions
) -> str:
    """Write the files of two stages of a model; return a message about them."""
    from ranktune.tuner.deployment.stage_files import FirstStage, check_stages, write_two_stages

    check_stages(format, folder)
    assert folder is not None
    first = FirstStage.parse(staging.window, staging.within, staging.cost)
    queries = _training(model, staging.data, reading)
    return write_two_stages(model, format, folder, first, queries, name=name, store=store)


def _summary(found: Agreement) -> str:
    return (
        f"Checked: by {found.evaluator} the order is the same on {found.same} of {found.queries} queries; scores "
        f"differ by at most {found.difference:.1g} of the largest."
    )
