"""How the columns of a table are taken, and which features look like an id, a position or a leak of the grade."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints, Json, Mask
from ranktune.solvers.data.columns.decisions import ColumnQuestion, Undecided, answered, left_out
from ranktune.solvers.data.columns.roles import RESERVED, WantedRoles, exact_names, named
from ranktune.solvers.data.columns.usual import USUAL, plain, tells_after
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions

if TYPE_CHECKING:
    from ranktune.solvers.data.readers.frames import FrameTable

ID, POSITION, LEAK, DATE = "id", "position", "leak", "date"

MOST_DOCUMENTS = 20_000
"""Documents that are looked at: those of queries at equal distances."""
MIN_DOCUMENTS, MIN_QUERIES, MIN_PAIRS = 50, 10, 200
"""Fewer of them prove nothing."""
NEARLY_ALL = 0.99
WELL, HALF = 0.95, 0.5
"""The share of pairs that a suspect orders at least, and that chance orders."""
FAR, BETTER = 0.25, 0.6
"""Far, or just, better than others: the errors are at most so many times theirs."""
AFTER, SURE = 0.75, 0.9
"""The share of pairs, and of those that it tells apart, that what is called as what comes after orders at least."""

_COPY = "is the grade, or a function that rises or falls with it, in all documents."
_CHANCE = 1e-9
"""Probability below which a pattern is not due to chance."""

_ROW_ID = "is another whole number in nearly every row, like an id."
_UNKNOWN = "If it is not known when documents are ranked"


@dataclass(frozen=True)
class Suspect:
    """A feature that a ranker may not learn from.

    name is its name, or its number from 1 if the features have no names (is_named); kind is ID, POSITION or LEAK;
    reason says why, as the end of a sentence that begins with the feature. is_copy: in all documents it is
    the grade or a rising or falling function of it, which cannot be chance. is_asked: nothing is learned before it is
    said whether it is known.
    """

    name: str
    is_named: bool
    kind: str
    reason: str
    is_copy: bool = False
    is_asked: bool = False

    @property
    def decision(self) -> ColumnQuestion:
        """What is asked about it."""
        if not self.is_named:
            return ColumnQuestion(
                f"feature {self.name} {self.reason} {_UNKNOWN}: remove it from the data.", (), self.is_asked
            )
        remedy = f"{_UNKNOWN}: {_drop(self.name)}."
        if self.is_asked:
            remedy = f"Is it known before the ranking? If not: {_drop(self.name)}. If so, {named(self.name)}"
        return ColumnQuestion(f"feature {self.name} {self.reason} {remedy}", left_out([self.name]), self.is_asked)


def questions_on(listed: Sequence[Suspect], features: Sequence[str] | str | None) -> list[ColumnQuestion]:
    """Return what is asked about suspects, but those that the option features names."""
    return [suspect.decision for suspect in listed if suspect.name not in exact_names(features)]


def suspects(queries: Queries) -> list[Suspect]:
    """Return the features that look like an id, a position or a leak of the grade, by a sample of the queries.

    A feature that was made of a column is only checked for leaks, and stands for the column.
    """
    sample = _sample(queries)
    if sample.n_queries < MIN_QUERIES or sample.n_documents < MIN_DOCUMENTS:
        return []
    names, pairs = queries.feature_names, _pairs(sample)
    sources = {} if queries.encoding is None else queries.encoding.sources(names or ())
    found: dict[str, Suspect] = {}
    powers: dict[str, _Power] = {}
    places: dict[str, int] = {}
    features: Features = sample.features
    numbers: Sequence[int] = range(sample.n_features)
    if not isinstance(features, np.ndarray):  # rows do not give columns quickly
        features = features.tocsc()
        filled = 2 * np.diff(features.indptr) >= sample.n_documents
        numbers = np.flatnonzero(filled).tolist()
        if len(pairs[0]) >= MIN_PAIRS:
            for column, power in _sparse_powers(features, filled, sample.grades, pairs):
                name = str(column + 1) if names is None else sources.get(names[column], names[column])
                if name not in powers or power.share > powers[name].share:
                    powers[name], places[name] = power, column
    for column in numbers:
        values, name = _column(features, column), str(column + 1) if names is None else names[column]
        source = sources.get(name, name)
        if not values.min() < values.max():
            continue
        if len(pairs[0]) >= MIN_PAIRS:
            power = _power(values, sample.grades, pairs)
            if source not in powers or power.share > powers[source].share:
                powers[source], places[source] = power, column
        kind, reason = _suspicion(values, sample) if source == name else ("", "")
        if name == f"{source}:age_days" and _is_of_queries(values, sample):
            kind = DATE
            reason = f'is the same date in all documents of a query: to test on the latest, time="{source}".'
        if reason == _ROW_ID and names is not None and queries.document_ids is None:
            reason += f' If it is the id of the document: document="{source}".'
        if kind:
            found[source] = Suspect(source, names is not None, kind, reason)
    after = set() if names is None else {name for name in powers if tells_after(name)}
    for source, (reason, is_asked) in _leaks(powers, after).items():
        is_copy = _is_copy(_column(queries.features, places[source]), queries)
        asked = is_copy or (is_asked and names is not None)
        found[source] = Suspect(source, names is not None, LEAK, _COPY if is_copy else reason, is_copy, asked)
    return sorted(found.values(), key=lambda suspect: places.get(suspect.name, -1))


def column_report(table: FrameTable, options: ReadOptions, listed: Sequence[Suspect]) -> list[Json]:
    """Return for each column its name, type, what it is taken as, and a note on what should perhaps be changed.

    What the names of the columns leave open is taken by the likeliest answer.
    """
    from ranktune.solvers.data.readers.frames import taken_as  # imports Arrow, which only tables need

    try:
        roles, features = taken_as(
            table, WantedRoles.of(options), options.get("missing", "keep"), qrels="qrels" in options
        )
    except Undecided as error:
        return column_report(table, cast(ReadOptions, answered(options, error.decisions)), listed)
    reasons, labels = {suspect.name: suspect.reason for suspect in listed}, set(roles.features)
    report = []
    for name, kind in zip(table.frame.column_names, table.frame.schema.types, strict=True):
        if name not in labels:
            use, note = roles.keys.get(name) or f"not used ({roles.dropped[name]})", ""
        elif features[name].is_usable:
            use = features[name].what
            note = features[name].remark or _note(name, reasons.get(name)) or features[name].note
        elif features[name].is_id:
            use, note = features[name].what, f'Looks like the id of the document: document="{name}", or {_drop(name)}'
        else:
            use, note = features[name].what, f"Cannot be a feature: {_drop(name)}"
        report.append({"column": name, "type": str(kind), "taken_as": use, "note": note})
    return report


def _drop(name: str) -> str:
    return f'drop="{name}"'


def _note(name: str, reason: str | None) -> str:
    """Return why a feature is suspect or what else its name stands for, with the argument that changes it."""
    if reason is not None:
        return f"{reason} {_UNKNOWN}: {_drop(name)}"
    if (role := RESERVED.get(plain(name))) is not None:
        return f'Called as {role.what}s are: {role.option}="{name}", or {_drop(name)}'
    if plain(name) in USUAL["position"].names:
        return f"Called as a position is. {_UNKNOWN}: {_drop(name)}"
    return ""


def _sample(queries: Queries) -> Queries:
    """Return queries at equal distances with about MOST_DOCUMENTS documents, at least MIN_QUERIES of them."""
    if queries.n_documents <= MOST_DOCUMENTS:
        return queries
    mean = queries.n_documents / queries.n_queries
    count = min(max(int(MOST_DOCUMENTS / mean), MIN_QUERIES), queries.n_queries)
    return queries.select(np.linspace(0, queries.n_queries - 1, count).astype(np.int64))


def _pairs(queries: Queries) -> tuple[Ints, Ints]:
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
    return better, worse


def _column(features: Features, number: int) -> Floats:
    """Return a feature, (n_documents,); a missing value is one less than the smallest one."""
    column = features[:, [number]]
    values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray(), dtype=np.float64).ravel()
    missing = np.isnan(values)
    if missing.any() and not missing.all():
        values[missing] = np.floor(values[~missing].min()) - 1.0
    return values


class _Power(NamedTuple):
    """How a feature alone orders documents as their grades do, or, if it falls, in the reverse.

    share is that of all pairs, where equal values count half, sure that of the `apart` pairs whose values differ.
    is_function: it is nearly a function of the grade.
    """

    share: float
    sure: float
    apart: int
    falls: bool
    is_function: bool


def _power(values: Floats, grades: Floats, pairs: tuple[Ints, Ints]) -> _Power:
    difference = values[pairs[0]] - values[pairs[1]]
    apart = int(np.count_nonzero(difference))
    right = int(np.count_nonzero(difference > 0.0))
    falls = bool(2 * right < apart)
    right = apart - right if falls else right
    share = (right + 0.5 * (len(difference) - apart)) / len(difference)
    return _Power(share, right / max(apart, 1), apart, falls, _explained(values, grades) >= NEARLY_ALL)


def _sparse_powers(
    features: sparse.csc_matrix, filled: Mask, grades: Floats, pairs: tuple[Ints, Ints]
) -> Iterator[tuple[int, _Power]]:
    """Yield the columns that are not filled and have more than a value, with what they order; NaN is a missing value.

    All of them at once take as long as their values: there may be a hundred thousand.
    """
    numbers = np.flatnonzero(~filled & (np.diff(features.indptr) > 1))
    columns = features[:, numbers].astype(np.float64)
    missing = np.flatnonzero(np.isnan(columns.data))
    of_value = np.repeat(np.arange(len(numbers)), np.diff(columns.indptr))
    smallest = np.zeros(len(numbers))  # most documents have 0
    np.fmin.at(smallest, of_value, columns.data)
    columns.data[missing] = np.floor(smallest[of_value[missing]]) - 1.0
    rows = columns.tocsr()
    difference = (rows[pairs[0]] - rows[pairs[1]]).tocsc()
    difference.eliminate_zeros()
    apart = np.diff(difference.indptr)
    right = np.bincount(np.repeat(np.arange(len(numbers)), apart)[difference.data > 0.0], minlength=len(numbers))
    explained = _explained_of_columns(columns, grades)
    for number, count, rising, share in zip(numbers.tolist(), apart.tolist(), right.tolist(), explained, strict=True):
        better = max(rising, count - rising)
        of_all = (better + 0.5 * (len(pairs[0]) - count)) / len(pairs[0])
        yield number, _Power(of_all, better / max(count, 1), count, 2 * rising < count, share >= NEARLY_ALL)


def _explained_of_columns(features: sparse.csc_matrix, grades: Floats) -> Floats:
    """Return the share of each column's variance that lies between the grades."""
    _, codes, counts = np.unique(grades, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        return np.zeros(features.shape[1])
    of_grade = sparse.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    means = np.asarray((of_grade @ features).todense()) / counts[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # squares of huge values, constant columns
        mean = counts @ means / len(grades)
        total = np.asarray(features.multiply(features).mean(axis=0)).ravel() - mean**2
        between = counts @ (means - mean) ** 2 / len(grades)
        return np.where((total > 0.0) & np.isfinite(total), between / total, 0.0)


def _leaks(powers: Mapping[str, _Power], called_after: Collection[str]) -> dict[str, tuple[str, bool]]:
    """Return features that order documents too well to be known before, each with why, and whether it must be decided.

    called_after are those called as what follows a ranking.
    All is relative to the other features. One that is called as what follows a ranking needs less evidence: that it is
    better than every other, or hardly ever wrong where it tells documents apart.
    """
    shares = sorted((power.share for name, power in powers.items() if name not in called_after), reverse=True)
    shares = [*shares, HALF]
    far = [n for n in range(1, len(shares)) if shares[n - 1] >= WELL and _errs(shares[n - 1]) <= FAR * _errs(shares[n])]
    few = [n for n in far if n <= max(2, len(powers) // 3)]
    rest = shares[few[-1] if few else 0]
    found: dict[str, tuple[str, bool]] = {}
    for name, (share, sure, apart, falls, is_function) in powers.items():
        how, after = "against" if falls else "as", name in called_after
        best = share * (share >= AFTER)
        reason = f"alone orders {share:.1%} of the pairs of documents {how} their grades do, others {rest:.1%} at most."
        if after and sure >= SURE and apart >= MIN_PAIRS and _errs(best) > BETTER * _errs(rest):
            best, reason = sure, f"alone is right in {sure:.1%} of the pairs of documents that it tells apart."
        if after:
            reason += " Its name is that of what comes after the ranking."
        if share > rest and share >= WELL and _errs(share) <= FAR * _errs(rest):
            found[name] = reason, share >= NEARLY_ALL or after
        elif is_function:
            found[name] = "is nearly a function of the grade.", True
        elif after and max(share, best) > rest:
            found[name] = reason, _errs(best) <= BETTER * _errs(rest)
    return found


def _errs(share: float) -> float:
    return 1.0 - share


def _suspicion(values: Floats, queries: Queries) -> tuple[str, str]:
    """Return the kind of suspect that a feature is by its values alone and why, two empty texts if it is none."""
    if not np.array_equal(values, np.round(values)):
        return "", ""
    if are_positions(values, queries):
        return POSITION, "counts the documents of a query from first to last, like a position."
    distinct = len(np.unique(values))
    if distinct >= NEARLY_ALL * len(values):
        return ID, _ROW_ID
    many = queries.n_queries >= MIN_DOCUMENTS and distinct >= NEARLY_ALL * queries.n_queries
    if many and _is_of_queries(values, queries):
        return ID, "is another whole number for nearly every query, like an id."
    return "", ""


def _is_of_queries(values: Floats, queries: Queries) -> bool:
    """Return whether all documents of each query have the same value."""
    starts = queries.starts[:-1]
    return np.array_equal(np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts))


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
    orders = sum(map(math.lgamma, queries.lengths + 1.0)) - sum(map(math.lgamma, cells + 1.0))
    return bool(np.log(queries.n_features) - orders < np.log(_CHANCE))


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
