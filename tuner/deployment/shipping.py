"""A model and the definitions of its features for an engine in one step, after a replay of logged queries.

The documents of the replay are scored by what reads the format, if that is here. A running engine scores those that it
has, and the model scores the values of features that the engine has for them. Scores that differ refuse the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Matrix, dense
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneError, RankTuneWarning, listed
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.absent import arrival, unlike_training, warn_of_absent
from ranktune.solvers.export.check import EVALUATORS, agreement, check_evaluator, check_written
from ranktune.solvers.export.definitions import (
    KEYWORDS,
    WRITERS,
    FeatureMeaning,
    definition_files,
    meanings_of,
    parameters,
    properties_of_searches,
    summary,
    to_fill_in,
)
from ranktune.solvers.export.source import ExportedModel, source_of
from ranktune.solvers.models.base import Model
from ranktune.tuner.deployment.engines import Engine, engine_of

REPLAYED = 100
"""Queries of a replay."""
PRECISION = 1e-5
"""The largest difference of the scores of an export and of the model, as a part of the largest score."""
DRIFT = 1e-3
"""That of scores by the values of an index, where texts and dates may have changed since they were logged."""
MODEL_FILES: Mapping[str, str] = {
    "vespa": "rank-profile.sd",
    "onnx": "model.onnx",
    "python": "model.py",
    "ranklib": "model.txt",
    "lightgbm": "model.txt",
}
"""Format -> the file of a model; otherwise model.json."""
SINGLE = {"solr", "elasticsearch", "opensearch", "ranklib", "onnx"}
"""Formats of systems whose features are in single precision: a document on a threshold may go another way there."""


@dataclass(frozen=True)
class ExportOptions:
    """The options of `ranktune.solvers.export.export`: what the model is called where, and in which version."""

    format: str
    name: str = "ranktune"
    store: str = "_DEFAULT_"
    engine_version: str | None = None
    absent: str | None = None


def ship(
    model: Model, target: ExportOptions, queries: Queries, *, folder: Path | None = None, to: str = ""
) -> list[str]:
    """Write a model and its definitions into a folder, create them in a running engine, or both.

    Parameters
    ----------
    model : Model
        The model.
    target : Target
        The engine.
    queries : Queries
        Logged queries, of which the first REPLAYED are scored. For a running engine they have the ids of its documents.
    folder : Path, optional
        A folder for the files.
    to : str, optional
        The address of a running engine, with its index.

    Returns
    -------
    list of str
        Lines on what was done, and what a person must do.

    Raises
    ------
    ParameterError
        The format cannot be checked or hold the model, a definition is to be filled in, or the engine refused.
    DataError
        The scores of the replay differ from those of the model.
    """
    FORMATS.find(target.format)
    check_evaluator(target.format)
    source = source_of(model, target.format, target.name, target.store)
    engine = engine_of(target.format, to, target.name, target.store) if to else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)  # definitions mend some of what it warns of
        content = export(model, **vars(target))
    arrives = arrival(source, target.engine_version, target.absent)
    sample = _first(queries)
    meanings = _meanings(source, sample)
    definitions = definition_files(source, meanings)
    warn_of_absent(source, target.engine_version, arrives.absent, defined=bool(definitions))
    sample = _as_in_engine(source, sample, bool(definitions))
    if target.format in EVALUATORS:
        lines = [_replayed(model, target.format, content, sample)]
    else:
        lines = [check_written(target.format, content)]
        _check_absent(source, unlike_training(source, arrives.absent), sample)
    files = {MODEL_FILES.get(target.format, "model.json"): content, **definitions}
    if definitions or target.format == "vespa":
        lines += summary(meanings)
    if engine is not None:
        if to_fill_in(meanings):
            raise ParameterError(f"{listed(to_fill_in(meanings))} must be defined by you: write into a folder.")
        engine.create({file: str(text) for file, text in files.items()})
        lines.append(_replayed_in(engine, source, meanings, sample))
    if folder is not None:
        write_files(folder, files)
        lines.append(f"Written into {folder}: {', '.join(files)}")
    return lines


def write_definitions(
    model: Model, format: str, name: str, store: str, folder: Path, queries: Queries | None = None
) -> list[str]:
    """Write the definitions of a model's features into a folder; return lines on them.

    queries: what tells properties of searches from fields of documents. Raises ParameterError for a format without
    definitions of its own.
    """
    source = source_of(model, format, name, store)
    meanings = meanings_of(source) if queries is None else _meanings(source, _first(queries))
    files = definition_files(source, meanings)
    if not files:
        raise ParameterError(f"{format} has no definitions beside the model: leave definitions= out.")
    write_files(folder, files)
    return [*summary(meanings), f"Written into {folder}: {', '.join(files)}"]


def _first(queries: Queries) -> Queries:
    return queries.select(np.arange(min(REPLAYED, queries.n_queries)))


def _meanings(source: ExportedModel, queries: Queries) -> list[FeatureMeaning]:
    """Return what the features are, as far as the queries tell; in Vespa the rank profile is written without them."""
    of_search = properties_of_searches(source.model, source.model.arranged(queries))
    return meanings_of(source, of_search if source.format in WRITERS else frozenset())


def _as_in_engine(source: ExportedModel, queries: Queries, defined: bool) -> Queries:
    """Return queries with the values that the engine has for the features of the model: in its precision.

    defined: features that no training document lacked are 0 in documents without them, by their definitions.
    """
    queries = replace(source.model.arranged(queries), rows=None)
    X = dense(queries.features).astype(np.float32 if source.format in SINGLE else np.float64)
    if defined:
        always = source.columns[source.is_zero_where_missing()]
        X[:, always] = np.nan_to_num(X[:, always])
    return queries.with_features(X)


def _replayed(model: Model, format: str, content: str | bytes, queries: Queries) -> str:
    """Return what queries score by an export. Raises DataError where scores differ."""
    checked = agreement(model, format, content, queries)
    sentence = (
        f"Replayed {queries.n_documents} documents of {queries.n_queries} queries by {checked.evaluator}:\n"
        f"scores differ by at most {checked.difference:.1g} of the largest."
    )
    if not checked.difference <= PRECISION:
        raise DataError(f"{sentence} That is more than {PRECISION:g}, so nothing was shipped.")
    return sentence


def _check_absent(source: ExportedModel, names: Sequence[str], queries: Queries) -> None:
    """Raise DataError where documents lack features whose absence is something else in the engine than in training."""
    X = dense(queries.features)[:, source.columns]
    lacking = {name: int(np.isnan(X[:, source.names.index(name)]).sum()) for name in names}
    absent = listed(f"{count} documents lack {name}" for name, count in lacking.items() if count)
    if absent:
        raise DataError(
            f"{absent}, which is something else to the engine than it was in training, so nothing was shipped: see the "
            "warning, and engine_version=."
        )


def _replayed_in(engine: Engine, source: ExportedModel, meanings: Sequence[FeatureMeaning], queries: Queries) -> str:
    """Return what the model makes of the values in an index.

    Deletes the model in the engine where that fails; raises DataError where scores differ.
    """
    try:
        scores, theirs, ours = _values(engine, source, meanings, queries)
        found = ~np.isnan(scores)
        before, after = (source.model.predict(queries.with_features(X))[found] for X in (ours, theirs))
        largest = np.abs(before).max() or 1.0
        difference = float(np.abs(after - before).max() / largest)
        if not difference <= DRIFT:
            used = source.columns
            alike = np.isclose(theirs[found][:, used], ours[found][:, used], DRIFT, 1e-6, equal_nan=True)
            most = np.argsort(alike.mean(axis=0), kind="stable")[:3]
            names = listed(source.names[k] for k in most if not alike[:, k].all())
            raise DataError(
                f"by the values of the index the scores of the replay differ by {difference:.2g} of the largest, more "
                f"than {DRIFT:g}, so that it is refused. See the definitions of what differs: {names}."
            )
        apart = float(np.abs(scores[found] - after).max() / largest)
        if not apart <= PRECISION:
            raise DataError(
                f"by {source.format} the scores of the replay differ by {apart:.2g} of the largest from those of the "
                f"model for the same values, more than {PRECISION:g}. Is it the version that engine_version= gives?"
            )
    except BaseException as error:
        try:
            engine.delete()
        except ParameterError as failure:
            why = str(error) or type(error).__name__
            raise DataError(
                f"the replay failed: {why} And {source.name!r} could not be deleted in the engine, where it stays "
                f"live: delete it yourself. {failure}"
            ) from None
        if isinstance(error, RankTuneError):
            raise type(error)(f"{error} The model was deleted there.") from None
        raise
    return (
        f"Replayed {found.sum()} of {len(found)} documents by the values of the index:\n"
        f"scores differ by at most {difference:.1g} of the largest, and those\n"
        f"of {source.format} itself by {apart:.1g} from those of the model."
    )


def _values(
    engine: Engine, source: ExportedModel, meanings: Sequence[FeatureMeaning], queries: Queries
) -> tuple[Floats, Matrix, Matrix]:
    """Return scores in the engine, (n,), NaN where it has no document, and features there and in queries, as singles.

    Raises DataError where documents have no ids, or the index has none of them.
    """
    if queries.document_ids is None:
        raise DataError("documents are looked up by their ids, and these have none. Name the column by document=.")
    ours = dense(queries.features).astype(np.float32)
    theirs, scores = ours.copy(), np.full(len(ours), np.nan)
    ids = [str(document) for document in queries.document_ids.tolist()]
    for query, first, last in zip(queries.query_ids.tolist(), queries.starts[:-1], queries.starts[1:], strict=True):
        request = {KEYWORDS: str(query)} | parameters(meanings, ours[first, source.columns].tolist(), source.format)
        found = engine.values(request, ids[first:last], source.names)
        for row in range(first, last):
            if ids[row] in found:
                scores[row], values = found[ids[row]]
                theirs[row, source.columns] = [values.get(name, np.nan) for name in source.names]
    if np.isnan(scores).all():
        raise DataError("the index has none of the documents of the replay. Their ids must be those of the index.")
    return scores, theirs, ours


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files into a folder. Raises OSError where that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        atomic_write(folder / file, content)
