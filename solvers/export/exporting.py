"""Models written in a format, or why the format cannot express them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ranktune.solvers.abilities import TREES
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.export.absent import arrival, warn_of_absent
from ranktune.solvers.export.source import OTHER_MODELS, ExportedModel, source_of
from ranktune.solvers.formats import FORMATS, Format
from ranktune.solvers.models.base import Model


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
        atomic_write(Path(path).resolve(), content)
    return content


def _check_expressible(source: ExportedModel, chosen: Format) -> None:
    """Raise ParameterError where the format cannot hold the parts of the model."""
    parts = source.parts
    if chosen.holds(parts):
        return
    others = ", ".join(name for name, other in FORMATS.items() if other.holds(parts))
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
    kinds = " or ".join(kind for kind, can in (("weights", chosen.linear), ("trees", chosen.trees)) if can)
    raise ParameterError(
        f"{source.format} holds {kinds}{'' if chosen.linear and chosen.trees else ' alone'}, and the model, "
        f"{source.model.solver}, is the sum of both. Export it to one of {others}, distil it "
        f"(ranktune.solvers.distil), or export another. {OTHER_MODELS}"
    )


def _check_missing(source: ExportedModel, chosen: Format) -> None:
    """Raise ParameterError where the format would score a missing value in another way than the model."""
    if source.missing is not None and not chosen.missing_weights:
        position = int(abs(source.missing).argmax())
        others = ", ".join(name for name, other in FORMATS.items() if other.missing_weights)
        raise ParameterError(
            f"in {source.format} a feature that a document lacks counts as 0, and in this model a missing "
            f"{source.names[position]!r} adds {source.missing[position]:.4g} to the score. Make trees of it "
            f"by distil= of `ranktune export`, name the system in serve= of tune, export it to one of {others}, or "
            f"train on data without missing values (missing='zero' reads them as 0). {OTHER_MODELS}"
        )
    if source.sides() is not None and not chosen.missing_sides:
        others = ", ".join(name for name, other in FORMATS.items() if other.missing_sides)
        raise ParameterError(
            f"{source.format} cannot say where trees send missing values, which the model has learned. Export it to "
            f"one of {others}, or train on data without missing values (missing='zero' reads them as 0)."
        )
