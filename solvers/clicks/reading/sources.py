"""Files of a log as batches of text: tables of all kinds, and JSON lines whose faults are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.data.columns.usual import plain
from ranktune.solvers.data.readers.tables.arrow_files import kind_of
from ranktune.solvers.data.readers.tables.json_lines import Record, batch_of, look, records
from ranktune.solvers.data.readers.tables.opening import open_table

OBJECTS = 1 << 13
"""JSON objects that become a batch."""


def batches(path: Path, wanted: Collection[str] | None, account: ReadingAccount) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a file whose names, as they are compared, are wanted, or all. account counts the lines.

    Raises DataError where the file cannot be read, is damaged, or is of another format.
    """
    if path.is_file() and kind_of(path) == "json":
        objects = (record for _, record in records(path, account.skip))
        while held := list(islice(objects, OBJECTS)):
            account.lines += len(held)
            yield _of_objects(held, wanted)
        return
    table = open_table(path)
    if kind_of(path) == "csv":
        account.skip("titles")
    chosen = [name for name in table.names if wanted is None or plain(name) in wanted]
    for batch in table.batches(chosen or table.names[:1], text=True):
        account.lines += batch.num_rows
        yield batch


def _of_objects(held: Sequence[Record], wanted: Collection[str] | None) -> pa.RecordBatch:
    """Return the columns that are wanted of objects; an inner object is an empty column beside those of its fields."""
    found = dict[str, set[type]]()
    for record in held:
        look(record, "", found)
    for name in list(found):
        for end, sign in enumerate(name):
            if sign == ".":
                found.setdefault(name[:end], {dict})
    kinds = {name: kind - {type(None)} for name, kind in found.items() if wanted is None or plain(name) in wanted}
    types = {name: pa.list_(pa.string()) if kind == {list} else pa.string() for name, kind in kinds.items()}
    return batch_of(held, types or {"": pa.null()})
