"""What reaches a model in an engine for a feature that a document does not have, by the version of the engine.

Solr gives the feature's default value: 0, or NaN where its definition says "defaultValue": "NaN", which models know
since 9.2 (apache/solr pull request 1257). The learning-to-rank plugins give 0 to linear models. To trees that of
Elasticsearch gives NaN in its releases since 2024, for Elasticsearch 8.11 and later (o19s pull requests 480 and 482),
and that of OpenSearch since 3.2 (opensearch-learning-to-rank-base pull request 206). Until 3.8 OpenSearch did not read
where the model sends NaN, so that it went right in every split (issue 378, pull request 379). A model can ask for 0 by
"missing_as_zero" (pull request 389; after the release of 3.8.0). Vespa gives NaN for an attribute without a value.
RankLib reads NaN and what is left out as 0 (DataPoint.java).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ranktune.solvers.core.errors import ParameterError, listed, nearest, warn
from ranktune.solvers.export.definitions import is_match
from ranktune.solvers.export.source import ExportedModel

ZERO, NAN, RIGHT = "zero", "nan", "right"


class Era(NamedTuple):
    """Versions of an engine from the first one on: what an absent feature is to trees, and what models can say.

    absent: ZERO; NAN, which goes where the model says; or RIGHT, NaN that goes right in every split. sides: whether
    models can say where it goes. asks_zero: whether a model can ask for 0.
    """

    since: tuple[int, ...]
    absent: str
    sides: bool = True
    asks_zero: bool = False


ERAS: Mapping[str, tuple[Era, ...]] = {
    "solr": (Era((0,), ZERO, sides=False), Era((9, 2), NAN)),
    "elasticsearch": (Era((0,), ZERO), Era((8, 11), NAN)),
    "opensearch": (Era((0,), ZERO), Era((3, 2), RIGHT), Era((3, 8), NAN), Era((3, 9), NAN, asks_zero=True)),
    "vespa": (Era((0,), NAN),),
    "ranklib": (Era((0,), ZERO),),
}
"""Format -> versions of its engine, ascending."""


class Arrival(NamedTuple):
    """What an absent feature is to trees in an engine, and whether the model asks for 0."""

    absent: str
    asks_zero: bool = False


def arrival(source: ExportedModel, version: str | None, absent: str | None) -> Arrival:
    """Return what an absent feature is in a version of the engine, the newest by default, or what is said of it.

    Raises ParameterError for a format that is of no engine, for what is neither a version nor "zero" or "nan", and
    where models of the version cannot say where trees send missing values, which this one has learned.
    """
    format = source.format
    if format not in ERAS:
        if version is None and absent is None:
            return Arrival(NAN)
        raise ParameterError(
            f"{format} is the format of no engine whose versions differ. Leave the version and absent out, or export "
            f"to {listed(ERAS)}."
        )
    if absent not in (None, ZERO, NAN):
        raise ParameterError(f"absent={absent!r}: it must be zero or nan. {nearest(str(absent), (ZERO, NAN))}")
    era = _era(format, version)
    if not era.sides and source.sides() is not None:
        raise ParameterError(
            f"{format} {version} cannot say where trees send missing values, which the model has learned. Use 9.2 or "
            "later, or train on data without missing values (missing='zero' reads them as 0)."
        )
    if absent == ZERO:
        return Arrival(ZERO, era.asks_zero)
    return Arrival(NAN if absent == NAN and era.absent == ZERO else era.absent)


def _era(format: str, version: str | None) -> Era:
    """Return the era of a version such as 3.5 or 8.15.3, the last one for None. Raises ParameterError for others."""
    if version is None:
        return ERAS[format][-1]
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", version):
        raise ParameterError(f"engine_version={version[:40]!r} is no version: give numbers, such as 8.15.3.")
    numbers = tuple(map(int, version.split(".")))
    return max(era for era in ERAS[format] if era.since <= numbers)


def unlike_training(source: ExportedModel, absent: str) -> list[str]:
    """Return the features whose absence in the engine is something else to the model than it was in training."""
    if source.format not in ERAS:
        return []
    if absent == ZERO:
        return source.differing()
    if source.format == "vespa":
        return list(filter(is_match, source.differing()))
    if source.trees is None or absent == NAN:
        return []
    left = set(source.positions()[source.all_sides()].tolist())
    return [source.names[position] for position in sorted(left)]


def warn_of_absent(source: ExportedModel, version: str | None, absent: str, *, defined: bool = False) -> None:
    """Warn where the engine treats absent features otherwise than training did, and say the remedy.

    defined: features that no training document lacked have a value in every document, by their definitions.
    """
    names = unlike_training(source, absent)
    if defined:
        names = [name for name in names if name in source.differing()]
    if not names:
        return
    engine = f"{source.format} {version}" if version else source.format
    newer = [".".join(map(str, era.since)) for era in ERAS[source.format] if era.absent == NAN and era.since > (0,)]
    use = f"Use {newer[0]} or later" if newer else "Export to another format"
    if absent == ZERO and _era(source.format, version).absent == NAN:
        use = "Leave absent='zero' out, if the engine gives no value"
    if absent == RIGHT:
        text = (
            f"{engine} sends a feature that a document lacks right in all splits, and the model does not for "
            f"{listed(names)}. {use}, or give these features a value in every document, as the definitions of "
            "`ranktune export --replay` do where no training document lacked them."
        )
    else:
        what = "a feature that a document lacks is 0" if absent == ZERO else "the score of a text is 0 without a match"
        text = (
            f"in {engine} {what}, and the model has learned something else of {listed(names)}. {use}, or train with "
            "missing='zero', which reads missing values as 0."
        )
    warn(text)
