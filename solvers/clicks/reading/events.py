"""A part of a log to rows of the store: what each line is, and which are left out whatever else the log holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.clicks.reading.roles import KINDS, amounts
from ranktune.solvers.clicks.reading.store import CLICK, IMPRESSION, NO_TIME, NONE, QUERY, RESULT, Names, Store, coded
from ranktune.solvers.core.arrays import Array, Floats, Ints, Mask, as_floats
from ranktune.solvers.data.columns.arrow import cast_or_none
from ranktune.solvers.data.columns.dates import microseconds_of
from ranktune.solvers.data.columns.grammar import bits_of, number_of

Roles = Mapping[str, Sequence[str]]
Cells = Mapping[str, pa.StringArray]

UNWEIGHTED = "an action without a weight: "
"""Begins the reason for which events of other kinds are left out."""
DAY = 86_400_000
_FARTHEST = 10**9
"""A position beyond is counted as this one, which is above any page."""
_CELLS = ("query", "search", "document", "position", "session", "time", "kind", "propensity", "source")


def add_events(batch: pa.RecordBatch, roles: Roles, weights: Mapping[str, float], now: int, store: Store) -> None:
    """Add the events in a batch to the store. Times beyond now, in milliseconds, are in the future."""
    for role, names in roles.items():
        store.columns.setdefault(role, {}).update(dict.fromkeys(names))
    apart = "kind" in roles or "click" not in roles  # impressions and clicks are rows of their own
    cells: Cells = {role: text_of(batch, roles.get(role, ())) for role in _CELLS}
    if not apart and "query" not in roles:
        cells = {**cells, "query": pc.fill_null(cells["query"], "")}
    kind = _kinds(cells, roles, store)
    place, time = numbers_of(cells["position"]), milliseconds(cells["time"])
    amount = {
        name: numbers_of(pc.fill_null(text_of(batch, roles[name]), "0"), TRUTH)
        for name in amounts(weights)
        if name in roles
    }
    reasons = _reasons(cells, roles, weights, kind, place, time, amount, apart=apart, now=now)
    used = store.account.sift(chain(_actions(kind, weights, store), reasons))
    if not used.any():
        return
    which = pa.array(used)
    cells = {role: column.filter(which) for role, column in cells.items()}
    kind, place, time = kind[used], place[used], time[used]
    amount = {name: number[used] for name, number in amount.items()}
    numbers = int(np.isfinite(numbers_of(cells["time"])).sum())
    store.times.update(numbers=numbers, dates=int((time != NO_TIME).sum()) - numbers)
    store.has_clock |= bool((time[time != NO_TIME] % DAY != 0).any())
    store.has_propensity |= "propensity" in roles
    rows = store.rows(len(kind))
    query = store.queries.numbered(cells["query"])
    by_id = apart and roles.get("query") == roles.get("search")
    rows["query"] = NONE - 1 - query if by_id else query
    session = store.session_names.numbered(cells["session"])
    session[session == NONE] = store.session_names.anonymous(int((session == NONE).sum()))
    rows["session"], rows["kind"], rows["time"] = session, kind, time
    rows["search"] = hashed(cells["search"]) if apart else session
    rows["document"] = store.documents.numbered(cells["document"])
    rows["source"] = store.sources.numbered(cells["source"])
    rows["position"] = np.clip(np.where(np.isnan(place), NONE, place), NONE, _FARTHEST)
    rows["propensity"] = numbers_of(cells["propensity"])
    weighted = (weights[name] * number for name, number in amount.items() if weights.get(name))
    rows["click"] = sum(weighted, np.zeros(len(kind)))
    for number, name in enumerate(store.further):
        column = text_of(batch, [name] if name in batch.schema.names else []).filter(which)
        rows["further"][:, number] = codes(column, store.texts[name]) if name in store.texts else numbers_of(column)
    _count(rows, amount, store)
    store.add(rows)
    if "results" in roles:
        _add_results(rows, lists_of(batch.column(roles["results"][0])).filter(which), store)


def _kinds(cells: Cells, roles: Roles, store: Store) -> Ints:
    """Return the numbers of kinds, NONE without; a query has no document, and no kind where others have one."""
    if "kind" not in roles:
        return np.full(len(cells["kind"]), IMPRESSION if "document" in roles else QUERY)
    place, names = coded(cells["kind"])
    kind = np.array([*(store.kinds.number(KINDS.get(name.lower(), name.lower())) for name in names), NONE])[place]
    return np.where((kind == NONE) & is_null(cells["document"]), QUERY, kind)


def _actions(kind: Ints, weights: Mapping[str, float], store: Store) -> Iterator[tuple[str, Mask]]:
    """Yield the names of actions that do not count, and which lines are one, (n,)."""
    counted = {"impression", "query", *amounts(weights)}
    for number in np.unique(kind[kind != NONE]).tolist():
        if store.kinds.names[number] not in counted:
            yield f"{UNWEIGHTED}{store.kinds.names[number]}", kind == number


def _reasons(
    cells: Cells,
    roles: Roles,
    weights: Mapping[str, float],
    kind: Ints,
    place: Floats,
    time: Ints,
    amount: Mapping[str, Floats],
    *,
    apart: bool,
    now: int,
) -> Iterator[tuple[str, Mask]]:
    """Yield why lines are left out, each reason with its lines, (n,); of several the first holds."""
    query, shown = kind == QUERY, kind == IMPRESSION
    absent = {role: is_null(column) for role, column in cells.items()}
    yield "no kind of event", kind == NONE
    if apart:
        yield "no search", absent["search"]
    yield "a query without text", query & absent["query"]
    yield "no document", ~query & absent["document"]
    if not apart:
        yield "no query", absent["query"]
    yield "no position", shown & absent["position"]
    yield "impossible position", shown & ~((place >= 0) & (place == np.floor(place)))
    for name, number in amount.items():
        if weights.get(name):
            yield "impossible number of clicks or other events", ~(number >= 0)
    if "propensity" in roles:
        chance = numbers_of(cells["propensity"])
        yield "a propensity that is not above 0 and at most 1", shown & ~((chance > 0) & (chance <= 1))
    yield "unreadable time", ~query & ~absent["time"] & (time == NO_TIME)
    yield "time in the future", ~query & (time > now)


def _count(rows: Array, amount: Mapping[str, Floats], store: Store) -> None:
    """Count what is known of sessions, kinds and first positions."""
    kinds = np.bincount(rows["kind"])
    store.counted.update({store.kinds.names[number]: int(kinds[number]) for number in np.flatnonzero(kinds)})
    store.counted.update({name: int((number > 0).sum()) for name, number in amount.items()})
    clicked = rows["kind"] == CLICK
    if "click" in amount:
        clicked |= (rows["kind"] == IMPRESSION) & (amount["click"] > 0)
    store.sessions.add(rows, clicked, len(store.session_names.names))
    shown = rows[rows["kind"] == IMPRESSION]
    places = 3 * (shown["source"] - NONE) + np.clip(shown["position"], 0, 2)
    for place, count in enumerate(np.bincount(places).tolist()):
        if count:
            store.starts.setdefault(place // 3 + NONE, Counter())[place % 3] += count


def _add_results(rows: Array, results: pa.ListArray, store: Store) -> None:
    """Add the results that queries list as rows, at positions from 0."""
    listed = pc.greater(pc.list_value_length(results), 0).fill_null(False).to_numpy(zero_copy_only=False)
    listed &= rows["kind"] == QUERY
    if listed.any():
        results = results.filter(pa.array(listed))
        query = pc.list_parent_indices(results).to_numpy()
        derived = rows[listed][query]
        derived["kind"], derived["position"] = RESULT, np.arange(len(query)) - np.searchsorted(query, query)
        derived["document"] = store.documents.numbered(pc.list_flatten(results))
        store.results += int(listed.sum())
        store.sessions.add(derived, np.zeros(len(derived), dtype=bool), len(store.session_names.names))
        store.add(derived)


MOST_TEXTS = 10_000
"""Different values beyond which a further column of text is none of categories."""
TRUTH: Mapping[str, float] = {"true": 1.0, "false": 0.0}
_NO_WORDS: Mapping[str, float] = MappingProxyType({})


def text_of(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> pa.StringArray:
    """Return the text of columns, (n,), of several the first that a row has; null for lists and objects."""
    columns = [batch.column(name) for name in names]
    columns = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
    texts = [column.cast(pa.string()) for column in columns if not pa.types.is_nested(column.type)]
    return pc.coalesce(*texts, pa.nulls(batch.num_rows, pa.string()))


def numbers_of(column: pa.StringArray, words: Mapping[str, float] = _NO_WORDS) -> Floats:
    """Return the numbers in a column of text, (n,), NaN where it is null or holds other text, but for these words."""
    whole = cast_or_none(column, pa.float64())
    if whole is None:
        place, texts = coded(column)
        each = (words.get(text.lower(), number_of(text.strip() or "-")) for text in texts)
        numbers = np.array([*(math.nan if number is None else number for number in each), math.nan])[place]
    else:
        numbers = whole.to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), as_floats(numbers), math.nan)


def milliseconds(column: pa.StringArray) -> Ints:
    """Return the times in a column of text since 1970, (n,), NO_TIME where one is missing or is no time."""
    times = microseconds_of(pa.chunked_array([column]), count=True) // 1000.0
    return np.where(np.isnan(times), NO_TIME, np.nan_to_num(times).astype(np.int64))


def lists_of(column: pa.Array) -> pa.ListArray:
    """Return the lists of text in a column, (n,), null where it holds something else."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return column.cast(pa.list_(pa.string()))
    return pa.nulls(len(column), pa.list_(pa.string()))


def hashed(column: pa.StringArray) -> Array:
    """Return 64 bits for each text, (n,), 0 where it is null."""
    place, texts = coded(column)
    return np.array([*map(bits_of, texts), 0], dtype=np.uint64)[place]


def is_null(column: pa.Array) -> Mask:
    """Return which values are null, (n,)."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def codes(column: pa.StringArray, names: Names) -> Floats:
    """Return the numbers of the values of a column of text as floats, (n,), NaN where it is null.

    There are none once the column has more different values than a category can have.
    """
    if len(names.names) > MOST_TEXTS:
        return np.full(len(column), math.nan)
    numbers = names.numbered(column)
    return np.where(numbers == NONE, math.nan, numbers)


def numbers_and_texts(batch: pa.RecordBatch | pa.Table) -> tuple[list[str], list[str]]:
    """Return the columns that hold numbers and, besides empty cells, nothing else; and those that hold other text."""
    numbers, texts = list[str](), list[str]()
    for name in batch.schema.names:
        column = text_of(batch, [name])
        if column.null_count < len(column):
            plain = np.isfinite(numbers_of(column)).sum() == len(column) - column.null_count
            (numbers if plain else texts).append(name)
    return numbers, texts
