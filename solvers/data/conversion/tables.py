"""Tables to a folder of arrays, whose features are read in batches: csv, tsv, Parquet and Arrow files.

Ids, grades, weights, dates and categories are read first, as a whole: what they mean depends on all rows. That takes
memory for a few columns. The features, which are the most, are then read and written a batch of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw

from ranktune.solvers.core.arrays import Json, Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.disk.npy import Declared, mapped
from ranktune.solvers.data.disk.stored import write_array, write_description
from ranktune.solvers.data.frame_columns import encoded
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.columns import Roles, UnusableColumns, Wanted, id_columns, roles
from ranktune.solvers.data.readers.frames import Known, Table, as_eager, queries_of
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import Missing, ReadOptions
from ranktune.solvers.data.readers.parsing.query_runs import group_file
from ranktune.solvers.data.readers.tables.cells import check_cells
from ranktune.solvers.data.readers.tables.files import csv_titles, polars_options, with_whole_ids
from ranktune.solvers.data.readers.tables.kinds import (
    ARROW,
    COMPRESSED,
    PARQUET,
    SEPARATORS,
    count_cells,
    dialect_of,
    first_line,
    table_kind,
)
from ranktune.solvers.data.values import has_missing_values

BATCH = 1 << 22
"""Cells that are read at a time."""


def write_table(
    path: Path,
    folder: Path,
    source: Json,
    options: ReadOptions,
    on_share: Callable[[float], object] | None = None,
    *,
    sync: bool = True,
) -> bool:
    """Write what reading a table returns into a folder; return False where it cannot be read in batches.

    on_share is called with the share of the rows that was read. Raises DataError where the table cannot be read.
    """
    try:
        scan = _scan(path, Wanted.of(options))
    except _Unreadable:
        return False
    if scan is None:
        return False
    try:
        narrow, found = _narrow(scan, options)
        assert narrow.encoding is not None
        names = tuple(name for label in found.features for name in narrow.encoding.features_of(label))
        features = _Features(scan, found, Known(names, narrow.encoding), options.get("missing", "keep"))
        declared = _write_features(features, folder, narrow, on_share, sync=sync)
    except (_Unreadable, UnusableColumns):  # reading it as a whole says why
        return False
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    whole = mapped(folder / "features.npy", declared)
    queries = replace(
        narrow, features=whole, feature_names=names, has_missing=features.has_missing, features_checked=True
    )
    write_description(queries, folder, documents=True, source=source, declared={"features": declared})
    return True


class _Unreadable(Exception):
    """A library cannot read the table."""


@contextmanager
def _reading() -> Iterator[None]:
    """Raise _Unreadable for whatever a library raises in the block."""
    try:
        yield
    except BaseException as error:  # polars has one that is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError | DataError):
            raise
        raise _Unreadable from error


@dataclass(frozen=True)
class _Scan:
    """A table file whose columns polars reads as they are needed; ids are columns of text that may be numbers."""

    path: Path
    polars: ModuleType
    lazy: Any
    ids: Sequence[str] = ()

    def schema(self) -> nw.Schema:
        """Return the types of the columns."""
        with _reading():
            schema: nw.Schema = nw.from_native(self.lazy).collect_schema()
        return schema

    def columns(self, names: Sequence[str]) -> object:
        """Return columns as a whole."""
        with _reading():
            frame = self.lazy.select(names).collect(engine="streaming")
        return with_whole_ids(frame, [name for name in self.ids if name in names])

    def batches(self, names: Sequence[str], rows: int) -> Iterator[object]:
        """Yield columns in batches of rows. The pages of Parquet are compared with their checksums."""
        with _reading():
            if table_kind(self.path) != PARQUET:
                yield from self.lazy.select(names).collect_batches(chunk_size=rows, maintain_order=True)
                return
            parquet = import_module("pyarrow.parquet")
            with parquet.ParquetFile(self.path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(batch_size=rows, columns=list(names)):
                    yield self.polars.from_arrow(batch)


@dataclass
class _Features:
    """The features of a table in batches of rows, in the order of the file."""

    scan: _Scan
    found: Roles
    known: Known
    missing: Missing
    has_missing: bool = False

    def __iter__(self) -> Iterator[Matrix]:
        """Yield (n_rows, n_features) arrays."""
        done, rows = 0, max(BATCH // len(self.known.feature_names), 1)
        for batch in self.scan.batches(self.known.columns, rows):
            frame = as_eager(batch)
            try:
                block = encoded(frame, self.known.feature_names, self.known.encoding, self.missing)
            except DataError as error:
                raise DataError(f"of the rows from {done} on, counted from there: {error}") from None
            done += len(block)
            self.has_missing = self.has_missing or has_missing_values(block)
            yield block


def _scan(path: Path, wanted: Wanted) -> _Scan | None:
    """Return a table file that can be read in batches, None for any other."""
    kind = table_kind(path)
    needed = "pyarrow.parquet" if kind == PARQUET else "polars"
    if path.suffix in COMPRESSED or kind not in (PARQUET, ARROW, *SEPARATORS):
        return None
    try:
        polars = import_module("polars")
        import_module(needed)
    except ImportError:
        return None
    if not hasattr(polars.LazyFrame, "collect_batches"):
        return None
    if kind == PARQUET or kind == ARROW:
        with _reading():
            return _Scan(path, polars, (polars.scan_parquet if kind == PARQUET else polars.scan_ipc)(path))
    dialect = dialect_of(path, str(kind))
    if group_file(path) is not None or count_cells(first_line(path), dialect.separator):
        return None  # a file without titles
    rows = check_cells(path, dialect.separator)
    ids = id_columns(csv_titles(path, dialect.separator), wanted)
    options = polars_options(polars, dialect, ids)
    with _reading():  # the types of the columns are found once: that takes a pass over the file
        schema = polars.scan_csv(path, **options).collect_schema()
        lazy = polars.scan_csv(path, **dialect._asdict(), null_values=options["null_values"], schema=schema)
        lazy = lazy if rows is None else lazy.head(rows - 1)  # polars makes rows of the empty lines at the end
    return _Scan(path, polars, lazy, ids)


def _narrow(scan: _Scan, options: ReadOptions) -> tuple[Queries, Roles]:
    """Return the queries of a table without most of its numeric features, and how its columns are taken."""
    schema, wanted, qrels = scan.schema(), Wanted.of(options), options.get("qrels")
    found = roles(list(schema), wanted, judged=qrels is not None)
    other = [name for name in found.features if not (schema[name].is_numeric() or schema[name] == nw.Boolean)]
    chosen = other or list(found.features[:1])
    table = Table(scan.columns([*dict.fromkeys([*found.keys, *chosen])]), path=scan.path)
    judged = None if qrels is None else read_judgments(qrels)
    narrowed = replace(wanted, features=chosen, drop=())
    return queries_of(table, narrowed, options.get("missing", "keep"), judged), found


def _write_features(
    features: _Features, folder: Path, narrow: Queries, on_share: Callable[[float], object] | None, *, sync: bool
) -> Declared:
    """Write features.npy, in the order of the queries, and return what it is."""
    blocks = iter(features)
    first = next(blocks)
    width = (first.shape[1],)

    def in_file_order() -> Iterator[Matrix]:
        done = 0
        for block in chain([first], blocks):
            yield block
            done += len(block)
            if on_share is not None:
                on_share(done / narrow.n_documents)

    if narrow.rows is None:
        return write_array(folder / "features.npy", first.dtype, width, in_file_order(), sync=sync)
    draft = folder / "features.draft"
    given = mapped(draft, write_array(draft, first.dtype, width, in_file_order()))
    step = max(BATCH // width[0], 1)
    ordered = (given[narrow.rows[at : at + step]] for at in range(0, narrow.n_documents, step))
    declared = write_array(folder / "features.npy", first.dtype, width, ordered, sync=sync)
    draft.unlink()
    return declared
