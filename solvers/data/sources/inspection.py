"""How the columns of a table are taken, and which features look like an id, a position or a leak of the grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from ranktune.solvers.core.arrays import Features, Floats, Ints, Json
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.roles import (
    ROLES,
    RULE,
    UnusableColumns,
    Wanted,
    described,
    exact_names,
    remedy,
)
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.judgments import Judgments
from ranktune.solvers.data.readers.parsing.options import Missing

if TYPE_CHECKING:
    from ranktune.solvers.data.readers.frames import Table

ID, POSITION, LEAK = "id", "position", "leak"

MOST_DOCUMENTS = 20_000
"""Documents that are looked at: those of queries at equal distances."""
MIN_DOCUMENTS, MIN_QUERIES, MIN_PAIRS = 50, 10, 200
"""Fewer of them prove nothing."""
NEARLY_ALL = 0.99

MOST_NAMED = 10
"""The most suspects that a warning names."""

_COPY = "is the grade, or a function that rises or falls with it, in all documents."
_CHANCE = 1e-9
"""Probability below which a pattern is not due to chance."""

_ROW_ID = "is another whole number in nearly every row, like an id."
_UNKNOWN = "If it is not known when documents are ranked"
_ALL_UNKNOWN = "Those that are not known when documents are ranked should be left out"
POSITIONS = ("position", "pos", "rank", "ranking")


@dataclass(frozen=True)
class Suspect:
    """A feature that a ranker may not learn from.

    name is its name, or its number from 1 if the features have no names (is_named); kind is ID, POSITION or LEAK;
    reason says why, as the end of a sentence that begins with the feature. is_copy: in all documents it is
    the grade or a rising or falling function of it, which cannot be chance.
    """

    name: str
    is_named: bool
    kind: str
    reason: str
    is_copy: bool = False


def warning_of(listed: Sequence[Suspect]) -> str:
    """Return a description of the suspects, and the option that leaves all of them out."""
    named = [f"{suspect.name} {suspect.reason}" for suspect in listed[:MOST_NAMED]]
    drop = ",".join(suspect.name for suspect in listed)
    if len(listed) > MOST_NAMED:
        named.append(f"{len(listed) - MOST_NAMED} more: `ranktune data` says what was found.")
    if len(listed) == 1:
        remedy = f'drop="{drop}"' if listed[0].is_named else "remove it from the data"
        return f"feature {named[0]} {_UNKNOWN}: {remedy}."
    remedy = f'drop="{drop}"' if listed[0].is_named else "remove them from the data"
    return f"{len(listed)} features look wrong. {' '.join(named)} {_ALL_UNKNOWN}: {remedy}."


def suspects(queries: Queries) -> list[Suspect]:
    """Return the features that look like an id, a position or a leak of the grade, by a sample of the queries.

    A feature that was made of a column is only checked for leaks, and stands for the column.
    """
    sample = _sample(queries)
    if sample.n_queries < MIN_QUERIES or sample.n_documents < MIN_DOCUMENTS:
        return []
    names, pairs = queries.feature_names, _pairs(sample)
    sources = {} if queries.encoding is None else queries.encoding.sources(names or ())
    by_name: dict[str, Suspect] = {}
    features: Features = sample.features
    numbers: Sequence[int] = range(sample.n_features)
    if not isinstance(features, np.ndarray):  # a single value looks like nothing; rows do not give columns quickly
        features = features.tocsc()
        numbers = np.flatnonzero(np.diff(features.indptr) > 1).tolist()
    for column in numbers:
        name = str(column + 1) if names is None else names[column]
        source = sources.get(name, name)
        kind, reason = _suspicion(_column(features, column), sample, pairs, made=source != name)
        if kind and source not in by_name:
            if reason == _ROW_ID and names is not None and queries.document_ids is None:
                reason += f' If it is the id of the document: document="{source}".'
            is_copy = kind == LEAK and _is_copy(_column(queries.features, column), queries)
            by_name[source] = Suspect(source, names is not None, kind, _COPY if is_copy else reason, is_copy)
    return list(by_name.values())


def check_copies(listed: Sequence[Suspect], features: Sequence[str] | str | None) -> None:
    """Raise DataError for suspects that are copies of the grade, unless the option features names them."""
    copies = [suspect for suspect in listed if suspect.is_copy and suspect.name not in exact_names(features)]
    if not copies:
        return
    names = ",".join(suspect.name for suspect in copies)
    remedy = "Remove it from the data."
    if copies[0].is_named:
        remedy = (
            f'Leave it out: drop="{names}". If it is known when documents are ranked, name it: features="*,{names}".'
        )
    raise DataError(f"feature {copies[0].name} {_COPY} A ranker would learn nothing else. {remedy}")


def suspects_besides(
    unusable: Sequence[str], table: Table, wanted: Wanted, missing: Missing = "keep", qrels: Judgments | None = None
) -> list[Suspect]:
    """Return the suspects among the features of a table without columns that cannot be features."""
    from ranktune.solvers.data.readers.frames import queries_of

    drop = [wanted.drop] if isinstance(wanted.drop, str) else list(wanted.drop)
    try:
        return suspects(queries_of(table, replace(wanted, drop=[*drop, *unusable]), missing, qrels))
    except DataError:
        return []


def refusal(error: UnusableColumns, listed: Sequence[Suspect]) -> DataError:
    """Return the error about columns that cannot be features, which names the suspects among the others too."""
    if not listed:
        return error
    names = [*error.columns, *(suspect.name for suspect in listed)]
    return DataError(
        f"no feature can be made of {described(error.columns)}. {RULE} Of the others look wrong: "
        f"{' '.join(f'{suspect.name} {suspect.reason}' for suspect in listed)} "
        f"{remedy(names, error.ids, 'Leave out what is not known when documents are ranked')}"
    )


def column_report(
    table: Table, wanted: Wanted, listed: Sequence[Suspect] | None, missing: Missing = "keep", *, qrels: bool = False
) -> list[Json]:
    """Return for each column its name, type, what it is taken as, and a note on what should perhaps be changed.

    listed is None where the table cannot be read as it is. qrels: the grades are in another file.
    """
    from ranktune.solvers.data.readers.frames import as_eager, taken_as  # imports narwhals, which only tables need

    frame = as_eager(table.frame)
    roles, features = taken_as(table, wanted, missing, qrels=qrels)
    unusable = [name for name, column in features.items() if not column.is_usable]
    if listed is None:
        listed = suspects_besides(unusable, table, wanted, missing)
    reasons, labels = {suspect.name: suspect.reason for suspect in listed}, set(roles.features)
    report = []
    for label in frame.columns:
        name = str(label)
        if label not in labels:
            taken, note = roles.keys.get(label) or f"not used ({roles.dropped[label]})", ""
        elif features[name].is_usable:
            taken = features[name].what
            note = features[name].remark or _note(name, reasons.get(name)) or features[name].note
        elif features[name].is_id:
            taken, note = features[name].what, f'Looks like the id of the document: document="{name}", or {_drop(name)}'
        else:
            taken, note = features[name].what, f"Cannot be a feature: {_drop(name)}"
        report.append({"column": name, "type": str(frame[label].dtype), "taken_as": taken, "note": note})
    return report


def _drop(name: str) -> str:
    return f'drop="{name}"'


def _note(name: str, reason: str | None) -> str:
    """Return why a feature is suspect or what else its name stands for, with the argument that changes it."""
    if reason is not None:
        return f"{reason} {_UNKNOWN}: {_drop(name)}"
    for role in ROLES.values():
        if name.lower() in role.names:
            return f'Called as {role.what}s are: {role.option}="{name}", or {_drop(name)}'
    if name.lower() in POSITIONS:
        return f"Called as a position is. {_UNKNOWN}: {_drop(name)}"
    return ""


def _sample(queries: Queries) -> Queries:
    """Return queries at equal distances with about MOST_DOCUMENTS documents, at least MIN_QUERIES of them."""
    if queries.n_documents <= MOST_DOCUMENTS:
        return queries
    mean = queries.n_documents / queries.n_queries
    count = min(max(int(MOST_DOCUMENTS / mean), MIN_QUERIES), queries.n_queries)
    return queries.select(np.linspace(0, queries.n_queries - 1, count).astype(np.int64))


@dataclass(frozen=True)
class _Pairs:
    """Documents of one query and different grades: the better one and the other of each pair."""

    better: Ints
    worse: Ints


def _pairs(queries: Queries) -> _Pairs:
    """Return pairs that were drawn at random, about one a document."""
    generator = np.random.default_rng(0)
    n = queries.n_documents
    first = np.repeat(queries.starts[:-1], queries.lengths)
    lengths = np.repeat(queries.lengths, queries.lengths)
    document = np.tile(np.arange(n), 4)
    other = np.tile(first, 4) + generator.integers(0, np.tile(lengths, 4))
    difference = queries.grades[document] - queries.grades[other]
    better = np.concatenate([document[difference > 0], other[difference < 0]])
    worse = np.concatenate([other[difference > 0], document[difference < 0]])
    return _Pairs(better, worse)


def _column(features: Features, number: int) -> Floats:
    """Return a feature, (n_documents,); a missing value is one less than the smallest one."""
    column = features[:, [number]]
    values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray(), dtype=np.float64).ravel()
    missing = np.isnan(values)
    if missing.any() and not missing.all():
        values[missing] = np.floor(values[~missing].min()) - 1.0
    return values


def _suspicion(values: Floats, queries: Queries, pairs: _Pairs, *, made: bool) -> tuple[str, str]:
    """Return the kind of suspect that a feature is and why, two empty texts if it is none.

    made: it was made of a column, such as the level of a category.
    """
    if not values.min() < values.max():
        return "", ""
    if len(pairs.better) >= MIN_PAIRS:
        agreement = _agreement(values, pairs)
        if agreement >= NEARLY_ALL:
            return LEAK, f"alone orders {agreement:.1%} of the pairs of documents as their grades do."
        if 1.0 - agreement >= NEARLY_ALL:
            return LEAK, f"alone orders {1.0 - agreement:.1%} of the pairs of documents in the reverse of their grades."
        if _explained(values, queries.grades) >= NEARLY_ALL:
            return LEAK, "is nearly a function of the grade."
    if made or not np.array_equal(values, np.round(values)):
        return "", ""
    if are_positions(values, queries):
        return POSITION, "counts the documents of a query from first to last, like a position."
    distinct = len(np.unique(values))
    if distinct >= NEARLY_ALL * len(values):
        return ID, _ROW_ID
    lowest = np.minimum.reduceat(values, queries.starts[:-1])
    constant = np.array_equal(lowest, np.maximum.reduceat(values, queries.starts[:-1]))
    if constant and queries.n_queries >= MIN_DOCUMENTS and distinct >= NEARLY_ALL * queries.n_queries:
        return ID, "is another whole number for nearly every query, like an id."
    return "", ""


def _is_copy(values: Floats, queries: Queries) -> bool:
    """Return whether values are a strictly monotone function of the grade, and that is no chance.

    Where the grades of each query are put to its documents at random, one of the n_features features is that function
    with a probability of at most n_features / (the number of different orders of the grades).
    """
    levels, first, codes = np.unique(queries.grades, return_index=True, return_inverse=True)
    rises = np.diff(values[first])
    if len(levels) < 2 or not ((rises > 0.0).all() or (rises < 0.0).all()):
        return False
    if not np.array_equal(values, values[first][codes]):
        return False
    cells = np.unique(queries.query_of_document * len(levels) + codes, return_counts=True)[1]
    orders = gammaln(queries.lengths + 1.0).sum() - gammaln(cells + 1.0).sum()
    return bool(np.log(queries.n_features) - orders < np.log(_CHANCE))


def _agreement(values: Floats, pairs: _Pairs) -> float:
    """Return the share of pairs that a feature orders as the grades do; equal values count half."""
    difference = values[pairs.better] - values[pairs.worse]
    return float(np.mean((difference > 0.0) + 0.5 * (difference == 0.0)))


def _explained(values: Floats, grades: Floats) -> float:
    """Return the share of a feature's variance that lies between the grades."""
    _, codes = np.unique(grades, return_inverse=True)
    counts = np.bincount(codes)
    if counts.min() < 2:
        return 0.0
    means = np.bincount(codes, values) / counts
    with np.errstate(over="ignore"):  # squares of huge values
        total = float(np.var(values))
        within = float(np.mean((values - means[codes]) ** 2))
    return 1.0 - within / total if total > 0.0 and np.isfinite(total) else 0.0


def are_positions(values: Floats, queries: Queries, least: int = MIN_QUERIES) -> bool:
    """Return whether the values in nearly every query are 1, 2, 3 ... or 0, 1, 2 ..., in any order.

    That proves nothing with fewer than `least` queries of three or more documents.
    """
    order = np.lexsort((values, queries.query_of_document))
    place = np.arange(len(values)) - np.repeat(queries.starts[:-1], queries.lengths)
    offsets = values[order] - place
    lowest = np.minimum.reduceat(offsets, queries.starts[:-1])
    steady = (lowest == np.maximum.reduceat(offsets, queries.starts[:-1])) & ((lowest == 0.0) | (lowest == 1.0))
    long = queries.lengths >= 3
    return bool(long.sum() >= least and steady[long].mean() >= NEARLY_ALL)
