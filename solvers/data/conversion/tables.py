"""Tables to a folder of arrays, whose features are read in batches: csv, tsv, Parquet and Arrow files.

Ids, grades, weights, dates and categories are held as a whole: what they mean depends on all rows. That takes memory
for a few columns. The features, which are the most, are read and written a batch of rows at a time, while Arrow parses
the next one. Of a csv file with dates and categories all columns are held where memory suffices, so that it is parsed
once, as one without them is; of other files the few columns are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from ranktune.solvers.core.arrays import Matrix
from ranktune.solvers.core.errors import DataError, counted_from, in_file
from ranktune.solvers.core.memory import free_memory
from ranktune.solvers.data.columns.arrow import is_number, of_few_types
from ranktune.solvers.data.columns.dates import with_dates
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.columns.roles import WantedRoles, roles
from ranktune.solvers.data.columns.values import encoded
from ranktune.solvers.data.conversion.segments import Segments
from ranktune.solvers.data.grouping import Grouping
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import DOCUMENT, QUERY, columns_of
from ranktune.solvers.data.readers.formats import COMPRESSED
from ranktune.solvers.data.readers.frames import FeatureSchema, FrameTable, learnt, queries_of
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.readers.tables.arrow_files import TrainingFile, open_training, with_whole_ids
from ranktune.solvers.data.readers.tables.batches import WiderType
from ranktune.solvers.data.values import has_missing_values

_HELD = 4
"""Times the size of a text file that must be free to hold its columns, so that it is parsed once."""
BATCH = 1 << 20
"""Cells that are read at a time: 8 MB, which are still in the processor's cache when they are written."""


def write_table(
    path: Path,
    begun: Callable[[], Segments],
    options: ReadOptions,
) -> bool:
    """Write what reading a table returns into a folder; return False where it cannot be read in batches.

    Raises DataError where the table cannot be read.
    """
    if path.suffix in COMPRESSED:
        return False
    file = open_training(path, WantedRoles.of(options))
    try:
        while True:
            try:
                return file.sizes is None and _write(file, begun(), options)
            except WiderType:
                continue
    except Undecided:  # reading it as a whole says all that is open
        return False
    except DataError as error:
        raise error if str(error).startswith(str(path)) else in_file(path, error) from None


def _write(
    file: TrainingFile,
    segments: Segments,
    options: ReadOptions,
) -> bool:
    """Write the queries with all their features, in the order of the file; return False where rows are left out."""
    qrels = options.get("qrels")
    judgments = None if qrels is None else read_judgments(qrels, options)
    if judgments is not None and judgments.weights is not None:
        return False
    wanted, missing = WantedRoles.of(options), options.get("missing", "keep")
    found = roles(file.table.names, wanted, qrels=qrels is not None)
    other = _without_numbers(file, found.features)
    chosen = other or list(found.features[:1])
    columns_read = list(dict.fromkeys([*found.keys, *chosen]))

    def table_of(columns: pa.Table) -> FrameTable:
        return FrameTable(with_whole_ids(columns, [name for name in file.ids if name in columns.column_names]))

    def narrowed(table: FrameTable, schema: FeatureSchema | None = None) -> Queries:
        """Return the queries of a table with the known features, else the chosen ones."""
        features = chosen if schema is None else schema.columns
        return queries_of(table, replace(wanted, features=features, drop=()), missing, judgments, schema)

    whole = None
    if file.is_text and other and _HELD * Path(file.table.name).stat().st_size <= free_memory():
        whole = with_dates(of_few_types(file.table.read(list(dict.fromkeys([*columns_read, *found.features])))), other)
    narrow, encoding = None, TableEncoding()
    if other or not file.is_text:
        few = table_of(file.table.read(columns_read) if whole is None else whole.select(columns_read))
        schema = learnt(few, replace(wanted, features=chosen, drop=()), missing, qrels=qrels is not None)
        encoding = schema.encoding
        narrow = narrowed(few, schema if missing == "error" else FeatureSchema(schema.feature_names[:1], encoding))
    if other != _without_numbers(file, found.features):
        raise WiderType
    names = tuple(name for label in found.features for name in encoding.features_of(label))
    parts = list[pa.Table]()
    besides = columns_read if narrow is None else []
    blocks = _blocks(file, whole, FeatureSchema(names, encoding), missing, besides, parts)
    first = next(blocks, None)
    if first is None:
        raise DataError("there are no rows: there must be one a document.")
    done, has_missing, n_rows = 0, False, file.table.n_rows if segments.on_share is not None else None
    with segments:
        for block in chain([first], blocks):
            segments.add(block, np.empty(0))
            done, has_missing = done + len(block), has_missing or has_missing_values(block)
            if segments.on_share is not None and n_rows:
                segments.on_share(min(done / n_rows, 1.0))
        narrow = narrow or narrowed(table_of(pa.concat_tables(parts)))
        in_order = narrow.in_caller_order
        ids = None if narrow.document_ids is None else in_order(narrow.document_ids)
        columns = {name: in_order(values) for name, values in columns_of(narrow, DOCUMENT).items()}
        segments.add(first[:0], in_order(narrow.grades), ids, columns)  # all but the features, of all documents
        segments.finish(
            Grouping(narrow.starts, narrow.query_ids, narrow.rows), len(names), is_sparse=False,
            has_missing=has_missing, dated=narrow.dated, columns=columns_of(narrow, QUERY), feature_names=names,
            encoding=narrow.encoding,
        )  # fmt: skip
    return True


def _without_numbers(file: TrainingFile, names: Sequence[str]) -> list[str]:
    """Return the columns, of these names, that hold neither numbers nor truth values."""
    return [name for name in names if not is_number(file.table.schema.field(name).type)]


def _blocks(
    file: TrainingFile,
    whole: pa.Table | None,
    schema: FeatureSchema,
    missing: str,
    besides: Sequence[str],
    parts: list[pa.Table],
) -> Iterator[Matrix]:
    """Yield the features of a table in batches of rows, in the order of the file, (n_rows, n_features) each.

    whole is the table where it is in memory. The columns besides are added to parts.
    """
    done, names = 0, list(dict.fromkeys([*schema.columns, *besides]))
    rows = max(BATCH // len(schema.feature_names), 1)
    if whole is None:
        batches = file.table.batches(names, rows=rows)
    else:
        batches = (whole.slice(first, rows) for first in range(0, whole.num_rows, rows))
    for batch in batches:
        part = of_few_types(pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch)
        parts.append(part.select(besides))
        try:
            yield encoded(part, schema.feature_names, schema.encoding, missing)
        except DataError as error:
            raise DataError(counted_from(done, error)) from None
        done += part.num_rows
