"""Tables to a folder of arrays, whose features are read in batches: csv, tsv, Parquet and Arrow files.

Ids, grades, weights, dates and categories are read first, as a whole: what they mean depends on all rows. That takes
memory for a few columns. The features, which are the most, are then read and written a batch of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import narwhals as nw
import polars

from ranktune.solvers.core.arrays import Json, JsonView, Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.table import named
from ranktune.solvers.data.columns.documents import COLUMNS
from ranktune.solvers.data.columns.roles import Roles, UnusableColumns, Wanted, roles
from ranktune.solvers.data.columns.values import encoded
from ranktune.solvers.data.conversion.segments import Segments
from ranktune.solvers.data.grouping import Grouping
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import COMPRESSED, Reader
from ranktune.solvers.data.readers.frames import Known, Table, as_eager, queries_of
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.readers.tables.files import FIRST_ROWS, csv_form, with_whole_ids
from ranktune.solvers.data.values import has_missing_values

BATCH = 1 << 22
"""Cells that are read at a time."""


@dataclass(frozen=True)
class Scan:
    """A table file whose columns are read as they are needed; ids are columns of text that may be numbers."""

    path: Path
    lazy: polars.LazyFrame
    ids: Sequence[str] = ()

    def columns(self, names: Sequence[str]) -> polars.DataFrame:
        """Return columns as a whole."""
        with _reading():
            frame = self.lazy.select(names).collect(engine="streaming")
        return with_whole_ids(frame, [name for name in self.ids if name in names])

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
    return Scan(path, polars.scan_ipc(path))


def scan_parquet(path: Path, wanted: Wanted) -> Scan:
    """Return a Parquet file as it is read in batches."""
    return ParquetScan(path, polars.scan_parquet(path))


def scan_csv(path: Path, wanted: Wanted) -> Scan | None:
    """Return a csv or tsv file as it is read in batches, None for one whose queries are known by their sizes."""
    form = csv_form(path, wanted)
    if form.sizes is not None:
        return None
    same = {name: form.options[name] for name in ("separator", "decimal_comma", "null_values")}
    lazy = polars.scan_csv(path, schema=_types(path, form.options, same), **same)
    return Scan(path, lazy if form.n_rows is None else lazy.head(form.n_rows), form.ids)


def _types(path: Path, options: JsonView, same: JsonView) -> polars.Schema:
    """Return the types of the columns of a csv file: those of the first rows, where all others fit them too.

    To infer them from all rows takes four times as long as to read all rows with types that are given.
    """
    first = polars.scan_csv(path, infer_schema_length=FIRST_ROWS, **options)
    try:
        schema = first.collect_schema()
        if not first.head(FIRST_ROWS).select(polars.all().is_null().all()).collect().transpose().to_series().any():
            polars.scan_csv(path, schema=schema, **same).select(polars.all().null_count()).collect(engine="streaming")
            return schema
    except polars.exceptions.PolarsError:
        pass
    return polars.scan_csv(path, infer_schema_length=None, **options).collect_schema()


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
            narrow, columns = _narrow(scan, options)
            _write(scan, narrow, columns, folder, source, options, on_share, sync=sync)
        except UnusableColumns:
            return False
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    except _Unreadable:  # reading it as a whole says why
        return False
    return True


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


def _narrow(scan: Scan, options: ReadOptions) -> tuple[Queries, Roles]:
    """Return the queries of a table without most of its numeric features, and how its columns are taken."""
    with _reading():
        schema: nw.Schema = nw.from_native(scan.lazy).collect_schema()
    wanted, qrels = Wanted.of(options), options.get("qrels")
    taken = roles(list(schema), wanted, qrels=qrels is not None)
    other = [name for name in taken.features if not (schema[name].is_numeric() or schema[name] == nw.Boolean)]
    chosen = other or list(taken.features[:1])
    table = Table(scan.columns([*dict.fromkeys([*taken.keys, *chosen])]))
    judgments = None if qrels is None else read_judgments(qrels)
    if judgments is not None and judgments.weights is not None:
        raise _Unreadable  # in batches: rows are left out
    narrowed = replace(wanted, features=chosen, drop=())
    return queries_of(table, narrowed, options.get("missing", "keep"), judgments), taken


def _write(
    scan: Scan,
    narrow: Queries,
    taken: Roles,
    folder: Path,
    source: Json,
    options: ReadOptions,
    on_share: Callable[[float], object] | None,
    *,
    sync: bool,
) -> None:
    """Write the queries with all their features, which are read in the order of the file."""
    encoding, given = narrow.encoding, narrow.in_caller_order
    assert encoding is not None
    names = tuple(name for label in taken.features for name in encoding.features_of(label))
    blocks = _blocks(scan, Known(names, encoding), options.get("missing", "keep"))
    first = next(blocks)
    grades = given(narrow.grades)
    ids = None if narrow.document_ids is None else given(narrow.document_ids)
    columns = {name: given(values) for name in COLUMNS if (values := getattr(narrow, name)) is not None}
    done, has_missing = 0, False
    with Segments(folder, first.dtype, sync=sync) as segments:
        for block in chain([first], blocks):
            rows = slice(done, done + len(block))
            of_rows = {name: values[rows] for name, values in columns.items()}
            segments.add(block, grades[rows], None if ids is None else ids[rows], of_rows)
            done, has_missing = rows.stop, has_missing or has_missing_values(block)
            if on_share is not None:
                on_share(done / narrow.n_documents)
        segments.finish(
            Grouping(narrow.starts, narrow.query_ids, narrow.rows), len(names), is_sparse=False,
            has_missing=has_missing, dated=narrow.dated, query_weights=narrow.query_weights, feature_names=names,
            encoding=encoding, source=source,
        )  # fmt: skip


def _blocks(scan: Scan, known: Known, missing: str) -> Iterator[Matrix]:
    """Yield the features of a table in batches of rows, in the order of the file, (n_rows, n_features) each."""
    done = 0
    for batch in scan.batches(known.columns, max(BATCH // len(known.feature_names), 1)):
        try:
            yield encoded(as_eager(batch), known.feature_names, known.encoding, missing)
        except DataError as error:
            raise DataError(f"of the rows from {done} on, counted from there: {error}") from None
        done += batch.height
