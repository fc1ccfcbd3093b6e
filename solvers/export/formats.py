"""Models in the formats of the systems that serve them.

A format can hold the weights of linear models; trees, where it can express them and we can be sure of it; and blends,
sums of both, where it can add.
Weights are those of the raw features: what a solver scaled while it learnt is in them already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.export.onnx import onnx_graph
from ranktune.solvers.export.pmml import pmml
from ranktune.solvers.export.python import plain_json, python
from ranktune.solvers.export.search_engines import plugin, solr
from ranktune.solvers.export.source import BESIDE, Source, source_of
from ranktune.solvers.export.text import liblinear_linear, ranklib_linear
from ranktune.solvers.export.vespa import vespa
from ranktune.solvers.models.base import Model

Writer = Callable[[Source], "str | bytes"]


@dataclass(frozen=True)
class Format:
    """What a format is for, who writes it, and what it can hold beside weights: trees, and sums of both."""

    purpose: str
    write: Writer
    trees: bool = True
    blends: bool = False
    is_text: bool = True


FORMATS: Mapping[str, Format] = {
    "solr": Format("Solr's model store", solr),
    "elasticsearch": Format("the learning-to-rank plugin of Elasticsearch", plugin),
    "opensearch": Format("the learning-to-rank plugin of OpenSearch", plugin),
    "vespa": Format("a rank profile for Vespa's schema", vespa, blends=True),
    "onnx": Format("ONNX runtimes (a binary file)", onnx_graph, blends=True, is_text=False),
    "pmml": Format("PMML 4.4 evaluators", pmml, blends=True),
    "ranklib": Format("RankLib, a Coordinate Ascent model (linear models)", ranklib_linear, trees=False),
    "liblinear": Format("liblinear-predict (linear models)", liblinear_linear, trees=False),
    "json": Format("plain JSON: names with weights, trees", plain_json, blends=True),
    "python": Format("a Python function that needs nothing else", python, blends=True),
}


def export(
    model: Model,
    format: str,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "ranktune",
    store: str = "_DEFAULT_",
) -> str | bytes:
    """Return model in a format of FORMATS, bytes for "onnx" and text for the others; also write it where path is given.

    name is what the target calls the model, store Solr's feature store. Only features that matter are written (of a
    model of constants the first); liblinear's format has a line for all. The same model gives the same text, always.
    Raises ParameterError for what the format cannot express, or for an unknown one; OSError where path cannot be
    written.
    """
    chosen = format_called(format)
    if not name or not store:
        raise ParameterError("name and store must not be empty: leave them out for ranktune and _DEFAULT_.")
    source = source_of(model, format, name, store)
    _check_expressible(source, chosen)
    content = chosen.write(source)
    if path is not None:
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return content


def _check_expressible(source: Source, chosen: Format) -> None:
    """Raise ParameterError where the format cannot hold what the source has."""
    if source.trees is None or (chosen.trees if source.weights is None else chosen.blends):
        return
    if source.weights is None:
        others = ", ".join(known for known, one in FORMATS.items() if one.trees)
        raise ParameterError(
            f"{source.format} has no writer for trees, and the model, by {source.model.solver}, consists of them. "
            f"Export it to one of {others}, or train a linear solver. {BESIDE}"
        )
    others = ", ".join(known for known, one in FORMATS.items() if one.blends)
    raise ParameterError(
        f"{source.format} holds {'weights or trees' if chosen.trees else 'weights alone'}, and the model, "
        f"{source.model.solver}, is the sum of both. Export it to one of {others}, or export another. {BESIDE}"
    )


def format_called(name: str) -> Format:
    """Return a format of FORMATS. Raises ParameterError, with the nearest spelling, where there is none."""
    if name not in FORMATS:
        raise ParameterError(f"format={name[:40]!r} is unknown. {nearest(name[:40], FORMATS)}")
    return FORMATS[name]
