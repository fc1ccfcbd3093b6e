"""All files of a log, tables and JSON lines, into a store, with the checks that need the whole log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.events import UNWEIGHTED, add_events, numbers_and_texts, text_of
from ranktune.solvers.clicks.reading.roles import AMOUNTS, KINDS, check_complete, roles_of, wanted
from ranktune.solvers.clicks.reading.store import CLICK, NONE, Names, Store, first_of
from ranktune.solvers.core.arrays import Mask
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.errors import DataError, ParameterError, listed, nearest
from ranktune.solvers.data.columns.usual import find_roles, plain
from ranktune.solvers.data.readers.formats import COMPRESSED
from ranktune.solvers.data.readers.tables.arrow_files import kind_of
from ranktune.solvers.data.readers.tables.json_lines import Record, batch_of, look, records
from ranktune.solvers.data.readers.tables.opening import open_table

PART = 8 << 20
"""Bytes of text whose events are joined in memory at a time."""
MOST_PARTS = 512
PACKED = 8
"""How many times its size a packed file or Parquet may hold."""
MOST_CLICKS = 1000
"""A session with more of them is no person's."""
SURE_CLICKS, MANY_SHOWN = 0.95, 50
"""A session that clicks this share of at least so many impressions is no person's."""
ZEROS = 0.05
"""Positions begin at 0 where 0 occurs at least this often for each 1; else a few zeros are faults."""


def checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of all kinds of events by their usual names. Raises ParameterError for one below 0."""
    for kind, weight in weights.items():
        check_not_negative(f"weights[{kind!r}]", weight)
    return {"click": 1.0, **{KINDS.get(kind.lower(), kind.lower()): float(w) for kind, w in weights.items()}}


def read_store(
    paths: Sequence[Path], columns: Mapping[str, str], weights: Mapping[str, float], now: int, *, further: bool
) -> Store:
    """Return the events in files. Raises DataError for what cannot be read, and a column that is in none of them."""
    numbers, texts = _further(paths, columns, weights) if further else ((), ())
    store = Store(_parts(paths), (*numbers, *texts), {name: Names() for name in texts})
    read = wanted(columns, weights) | {*map(plain, store.further)}
    names: dict[str, None] = {}
    for path in paths:
        for batch in batches(path, read, store.account):
            roles = roles_of(batch.schema.names, columns, weights)
            check_complete(roles, partial(_looked_at, path, columns, weights), path)
            names |= dict.fromkeys(batch.schema.names)
            add_events(batch, roles, weights, now, store)
    find_roles(list(names), dict.fromkeys(columns, ()), columns, listed(paths))
    return store


def _further(
    paths: Sequence[Path], columns: Mapping[str, str], weights: Mapping[str, float]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the other columns that hold numbers, and those that hold text, by the first rows of each file."""
    numbers, texts = dict[str, None](), dict[str, None]()
    for path in paths:
        _, rest = _first_rows(path, columns, weights)
        plain, others = numbers_and_texts(rest)
        numbers |= dict.fromkeys(plain)
        texts |= dict.fromkeys(name for name in others if name not in numbers)
    return list(numbers), [name for name in texts if name not in numbers]


def _first_rows(
    path: Path, columns: Mapping[str, str], weights: Mapping[str, float]
) -> tuple[list[str], pa.RecordBatch]:
    """Return the names of all columns of a file, and those without a role, in its first rows."""
    batch = next(batches(path, None, ReadingAccount()), pa.record_batch({}))
    names = batch.schema.names
    used = {name for group in roles_of(names, columns, weights).values() for name in group}
    return names, batch.select([name for name in names if name not in used])


def _looked_at(path: Path, columns: Mapping[str, str], weights: Mapping[str, float]) -> tuple[list[str], str | None]:
    """Return the names of all columns, and that without a role whose texts look like ids: many, without spaces."""
    names, rest = _first_rows(path, columns, weights)
    values = {name: set(text_of(rest, [name]).to_pylist()) - {None} for name in numbers_and_texts(rest)[1]}
    ids = [name for name, texts in values.items() if not any(" " in text for text in texts)]
    return names, max(ids, key=lambda name: len(values[name]), default=None)


def _parts(paths: Sequence[Path]) -> int:
    """Return the number of parts that keeps each small."""
    size = 0
    for path in paths:
        packed = path.suffix in (*COMPRESSED, ".parquet", ".pq")
        size += path.stat().st_size * (PACKED if packed else 1) if path.is_file() else 0
    return min(size // PART + 1, MOST_PARTS)


def check_store(store: Store, weights: Mapping[str, float], paths: str) -> None:
    """Raise DataError where there is nothing to learn from, ParameterError for a weight of what does not occur."""
    shown, clicked = int(store.sessions.shown.sum()), int(store.sessions.clicked.sum())
    why = store.account.most_left_out
    if not shown and not store.results:
        raise DataError(
            f"{paths}: holds {clicked:,} clicks and no impressions: what was shown and not clicked must be known too. "
            f"Give the events of kind 'impression', or queries with their results.{why}"
        )
    if shown and clicked == shown and "click" in store.columns:
        raise DataError(
            f"{paths}: all {shown:,} impressions have a click: what was shown and not clicked must be known too. Log "
            "all results shown, or give a row of click 0 for each."
        )
    actions = [reason.removeprefix(UNWEIGHTED) for reason in store.account.left_out if reason.startswith(UNWEIGHTED)]
    for kind in weights:
        if kind not in store.counted and kind not in AMOUNTS:
            raise ParameterError(
                f"weights has {kind!r}, which is not in the log. {nearest(kind, [*store.counted, *actions])}"
            )
    if not any(store.counted[kind] for kind, weight in weights.items() if weight):
        raise DataError(
            f"{paths}: holds {shown:,} impressions, and nothing with a weight happened to them. Name the column of "
            f"clicks or of kinds: columns={{'click': 'NAME'}}, or give weights.{why}"
        )


def bots_of(store: Store) -> Mask:
    """Return whether each session is no person's, (n_sessions,)."""
    sessions, named = store.sessions, slice(len(store.session_names.names))
    shown, clicked = sessions.shown[named], sessions.clicked[named]
    documents = clicked.copy()  # a double click is of one document
    for rows in store.read() if "kind" in store.columns else ():
        clicks = rows[rows["kind"] == CLICK]
        again = ~first_of(clicks["search"], clicks["session"], clicks["document"])
        np.subtract.at(documents, clicks["session"][again], 1)
    return (clicked > MOST_CLICKS) | ((shown >= MANY_SHOWN) & (documents >= SURE_CLICKS * shown))


def first_positions(store: Store, first: int | None) -> dict[int, int]:
    """Return application -> the position at which its lists begin."""
    return {
        source: int(counts[0] < max(ZEROS * counts[1], 1)) if first is None else first
        for source in range(NONE, len(store.sources.names))
        for counts in (store.starts.get(source, Counter()),)
    }


OBJECTS = 1 << 13
"""JSON objects that become a batch."""


def batches(path: Path, wanted: Collection[str] | None, account: ReadingAccount) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a file whose names, as they are compared, are wanted, or all. account counts the lines.

    Raises DataError where the file cannot be read, is damaged, or is of another format.
    """
    if path.is_file() and kind_of(path) == "json":
        objects = (record for _, record in records(path, account.skip))
        while block := list(islice(objects, OBJECTS)):
            account.lines += len(block)
            yield _of_objects(block, wanted)
        return
    table = open_table(path)
    if kind_of(path) == "csv":
        account.skip("titles")
    chosen = [name for name in table.names if wanted is None or plain(name) in wanted]
    for batch in table.batches(chosen or table.names[:1], text=True):
        account.lines += batch.num_rows
        yield batch


def _of_objects(records: Sequence[Record], wanted: Collection[str] | None) -> pa.RecordBatch:
    """Return the columns that are wanted of objects; an inner object is an empty column beside those of its fields."""
    found = dict[str, set[type]]()
    for record in records:
        look(record, "", found)
    for name in list(found):
        for end, sign in enumerate(name):
            if sign == ".":
                found.setdefault(name[:end], {dict})
    kinds = {name: kind - {type(None)} for name, kind in found.items() if wanted is None or plain(name) in wanted}
    types = {name: pa.list_(pa.string()) if kind == {list} else pa.string() for name, kind in kinds.items()}
    return batch_of(records, types or {"": pa.null()})
