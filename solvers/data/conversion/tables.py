"""Tables to a folder of arrays, whose features are read in batches: csv, tsv, Parquet and Arrow files.

Ids, grades, weights, dates and categories are held as a whole: what they mean depends on all rows. That takes memory
for a few columns. The features, which are the most, are read and written a batch of rows at a time, while polars parses
the next one. Of a csv file with dates and categories all columns are held where memory suffices, so that it is parsed
once, as one without them is; of other files the few columns are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import narwhals as nw
import numpy as np
import polars

from ranktune.solvers.core.arrays import Json, Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import free_memory
from ranktune.solvers.core.table import named
from ranktune.solvers.data.columns.dates import with_dates
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.solvers.data.columns.documents import COLUMNS
from ranktune.solvers.data.columns.encoding import Encoding
from ranktune.solvers.data.columns.roles import Wanted, roles
from ranktune.solvers.data.columns.values import encoded
from ranktune.solvers.data.conversion.segments import Segments
from ranktune.solvers.data.grouping import Grouping
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import COMPRESSED, Reader
from ranktune.solvers.data.readers.frames import Known, Table, as_eager, learnt, queries_of
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.readers.tables.files import csv_form, with_whole_ids
from ranktune.solvers.data.values import has_missing_values

_HELD = 4
"""Times the size of a text file that must be free to hold its columns, so that it is parsed once."""
BATCH = 1 << 20
"""Cells that are read at a time: 8 MB, which are still in the processor's cache when they are written."""


@dataclass(frozen=True)
class Scan:
    """A table file whose columns are read as they are needed.

    ids      columns of text that may be numbers
    is_text  whether to read a few columns takes about as long as to read all
    wider    makes the scan to take where a value does not fit the types of the columns; None where they are certain
    """

    path: Path
    lazy: polars.LazyFrame
    ids: Sequence[str] = ()
    is_text: bool = False
    wider: Callable[[], Scan] | None = None

    def columns(self, names: Sequence[str]) -> polars.DataFrame:
        """Return columns as a whole."""
        with _reading():
            return self.lazy.select(names).collect(engine="streaming")

    def n_rows(self) -> int:
        """Return the number of rows."""
        with _reading():
            return int(self.lazy.select(polars.len()).collect().item())

    def batches(self, names: Sequence[str], rows: int) -> Iterator[polars.DataFrame]:
        """Yield columns in batches of rows."""
        with _reading():
            yield from self.lazy.select(names).collect_batches(chunk_size=rows, maintain_order=True)


class ParquetScan(Scan):
    """A Parquet file, whose pages are compared with their checksums."""

    def batches(self, names: Sequence[str], rows: int) -> Iterator[polars.DataFrame]:
        """Yield columns in batches of rows."""
        from pyarrow import parquet

        with _reading(), parquet.ParquetFile(self.path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=rows, columns=list(names)):
                frame = polars.from_arrow(batch)
                assert isinstance(frame, polars.DataFrame)
                yield frame


def scan_arrow(path: Path, wanted: Wanted) -> Scan:
    """Return an Arrow file as it is read in batches."""
    return Scan(path, polars.scan_ipc(path, glob=False))


def scan_parquet(path: Path, wanted: Wanted) -> Scan:
    """Return a Parquet file as it is read in batches."""
    return ParquetScan(path, polars.scan_parquet(path, glob=False))


def scan_csv(path: Path, wanted: Wanted) -> Scan | None:
    """Return a csv or tsv file as it is read in batches, None for one whose queries are known by their sizes."""
    form = csv_form(path, wanted)
    if form.sizes is not None:
        return None
    same = {name: form.options[name] for name in ("separator", "decimal_comma", "null_values", "glob", "new_columns")}

    def typed(first: int | None) -> Scan:
        """Return the file with the types of so many first rows, or of all: that takes longer than to read them."""
        inferred = polars.scan_csv(path, infer_schema_length=first, **form.options)
        with _reading():
            schema = inferred.collect_schema()
            texts = [name for name, kind in schema.items() if kind == polars.String and name not in form.ids]
            if first is not None and texts:
                begin = inferred.select(texts).head(first).collect()
                if any(column.is_null().all() for column in begin):  # so that its type is unknown
                    return typed(None)
        lazy, wider = polars.scan_csv(path, schema=schema, **same), None if first is None else partial(typed, None)
        lazy = lazy if form.n_rows is None else lazy.head(form.n_rows)
        return Scan(path, lazy, form.ids, is_text=True, wider=wider)

    return typed(form.first)


def write_table(
    reader: Reader,
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
    if path.suffix in COMPRESSED or not hasattr(polars.LazyFrame, "collect_batches"):
        return False
    try:
        with _reading():
            scan: Scan | None = named(reader.scan)(path, Wanted.of(options))
        if scan is None:
            return False
        try:
            try:
                return _write(scan, folder, source, options, on_share, sync=sync)
            except _Unreadable:
                if scan.wider is None:
                    raise
                return _write(scan.wider(), folder, source, options, on_share, sync=sync)
        except Undecided:  # reading it as a whole says all that is open
            return False
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    except _Unreadable:  # reading it as a whole says why
        return False


class _Unreadable(Exception):
    """A library cannot read the table."""


@contextmanager
def _reading() -> Iterator[None]:
    """Raise _Unreadable for whatever a library raises in the block."""
    try:
        yield
    except BaseException as error:  # polars raises an error that is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError | DataError):
            raise
        raise _Unreadable from error


def _write(
    scan: Scan,
    folder: Path,
    source: Json,
    options: ReadOptions,
    on_share: Callable[[float], object] | None,
    *,
    sync: bool,
) -> bool:
    """Write the queries with all their features, in the order of the file; return False where rows are left out."""
    qrels = options.get("qrels")
    judgments = None if qrels is None else read_judgments(qrels, options)
    if judgments is not None and judgments.weights is not None:
        return False
    with _reading():
        schema: nw.Schema = nw.from_native(scan.lazy).collect_schema()
    wanted, missing = Wanted.of(options), options.get("missing", "keep")
    taken = roles(list(schema), wanted, qrels=qrels is not None)
    other = [name for name in taken.features if not (schema[name].is_numeric() or schema[name] == nw.Boolean)]
    chosen = other or list(taken.features[:1])
    held = list(dict.fromkeys([*taken.keys, *chosen]))

    def table_of(frame: polars.DataFrame) -> Table:
        return Table(with_whole_ids(frame, [name for name in scan.ids if name in frame.columns]))

    def narrowed(table: Table, known: Known | None = None) -> Queries:
        """Return the queries of a table with the known features, else the chosen ones."""
        features = chosen if known is None else known.columns
        return queries_of(table, replace(wanted, features=features, drop=()), missing, judgments, known)

    if scan.is_text and other and _HELD * scan.path.stat().st_size <= free_memory():
        frame = scan.columns(list(dict.fromkeys([*held, *taken.features])))
        scan = replace(scan, lazy=with_dates(as_eager(frame), other).to_polars().lazy(), is_text=False)
    narrow, encoding = None, Encoding()
    if other or not scan.is_text:
        few = table_of(scan.columns(held))
        known = learnt(few, replace(wanted, features=chosen, drop=()), missing, qrels=qrels is not None)
        encoding = known.encoding
        narrow = narrowed(few, known if missing == "error" else Known(known.feature_names[:1], encoding))
    names = tuple(name for label in taken.features for name in encoding.features_of(label))
    parts, n_rows = list[polars.DataFrame](), 0 if on_share is None else scan.n_rows()
    kept = held if narrow is None else []
    blocks = _blocks(scan, Known(names, encoding), missing, kept, parts)
    first = next(blocks)
    done, has_missing = 0, False
    with Segments(folder, first.dtype, sync=sync) as segments:
        for block in chain([first], blocks):
            segments.add(block, np.empty(0))
            done, has_missing = done + len(block), has_missing or has_missing_values(block)
            if on_share is not None:
                on_share(done / n_rows)
        narrow = narrow or narrowed(table_of(polars.concat(parts)))
        given = narrow.in_caller_order
        ids = None if narrow.document_ids is None else given(narrow.document_ids)
        columns = {name: given(values) for name in COLUMNS if (values := getattr(narrow, name)) is not None}
        segments.add(first[:0], given(narrow.grades), ids, columns)  # all but the features, of all documents
        segments.finish(
            Grouping(narrow.starts, narrow.query_ids, narrow.rows), len(names), is_sparse=False,
            has_missing=has_missing, dated=narrow.dated, query_weights=narrow.query_weights, feature_names=names,
            encoding=narrow.encoding, source=source,
        )  # fmt: skip
    return True


def _blocks(
    scan: Scan, known: Known, missing: str, held: Sequence[str], parts: list[polars.DataFrame]
) -> Iterator[Matrix]:
    """Yield the features of a table in batches of rows, in the order of the file, (n_rows, n_features) each.

    The columns of held are added to parts.
    """
    done, names = 0, list(dict.fromkeys([*known.columns, *held]))
    for batch in scan.batches(names, max(BATCH // len(known.feature_names), 1)):
        parts.append(batch.select(held))
        try:
            yield encoded(as_eager(batch), known.feature_names, known.encoding, missing)
        except DataError as error:
            raise DataError(f"of the rows from {done} on, counted from there: {error}") from None
        done += batch.height
