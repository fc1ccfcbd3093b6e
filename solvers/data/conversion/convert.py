"""Any data set to a folder of arrays that are mapped when it is opened; ranking text block by block."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.core.arrays import Features, Ids, Json, Sizes
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.files.atomic import atomic_folder, remedy_of
from ranktune.solvers.core.table import named
from ranktune.solvers.data.conversion.segments import Segments
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import find_reader
from ranktune.solvers.data.readers.parsing.entries import file_beside
from ranktune.solvers.data.readers.parsing.feature_rows import csr_block, is_dense, scatter
from ranktune.solvers.data.readers.parsing.options import LineOptions, LoadOptions
from ranktune.solvers.data.readers.text import TextBlocks

Read = Callable[[], Queries]

_SAMPLES, _SAMPLE = 16, 1 << 14
AFTER, EVERY = 2.0, 1.0
"""Seconds before the first line of progress, and between lines."""


def write_converted(
    source: object, output: Path, read: Read, options: LoadOptions, say: Callable[[str], object] | None = None
) -> Queries:
    """Write the documents of a source into the new folder output, and return them as they are in it.

    read reads the source into memory where it cannot be written block by block. Raises DataError where the source
    cannot be read or changes meanwhile, and where the folder exists or cannot be written; then nothing is left there.
    """
    exists = DataError(f"{output}: exists already. Remove it, or write to another folder.")
    if output.exists():
        raise exists
    path = Path(source) if isinstance(source, str | Path) and Path(source).is_file() else None
    try:
        with atomic_folder(output) as draft:
            write_into(draft, path, read, options, say)
    except FileExistsError:
        raise exists from None
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error.strerror or error}). Nothing is left there. "
            f"{remedy_of(error) or 'Check the place'}, or write to another folder."
        ) from None
    return read_queries(output, check=False)


def write_into(
    folder: Path,
    path: Path | None,
    read: Read,
    options: LoadOptions,
    say: Callable[[str], object] | None = None,
    *,
    sync: bool = True,
) -> None:
    """Write the documents of the file at path, or of what read returns, into an existing folder.

    A file with weights or positions beside it is read whole.
    """
    facts = {} if path is None else facts_of(path)
    if path is None or file_beside(path, "weight", "position") is not None:
        write_queries(read(), folder, documents=True, source=facts)
        return
    reader, report = find_reader(path), None if say is None else ShareReport(path.name, say)
    begun = partial(Segments, folder, facts, report, sync)
    written = False
    if reader is not None and reader.write:
        named(reader.write)(path, begun(), **options)
        written = True
    elif reader is not None and reader.is_table_file:
        from ranktune.solvers.data.conversion.tables import write_table  # loads Arrow, which only tables need

        written = write_table(path, begun, options)
    if not written:
        write_queries(read(), folder, documents=True, source=facts)
    check_unchanged(path, facts)


def facts_of(path: Path) -> Json:
    """Return the size of a file, when it changed, and a digest of 16 samples of it, its beginning and its end too.

    They are noted with its converted form, which is not used where the file has changed since. Raises DataError where
    the file cannot be read.
    """
    try:
        about = path.stat()
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb", buffering=0) as file:
            last = max(about.st_size - _SAMPLE, 0)
            for number in range(_SAMPLES):
                file.seek(last * number // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    return {
        "path": str(path.absolute()),
        "size": about.st_size,
        "mtime_ns": about.st_mtime_ns,
        "ctime_ns": about.st_ctime_ns,  # which nobody can set back
        "digest": digest.hexdigest(),
    }


def check_unchanged(path: Path, before: Json) -> None:
    """Raise DataError unless a file is what it was when it was opened."""
    if facts_of(path) != before:
        raise DataError(f"{path}: changed while it was read. Read it again when nothing writes to it any more.")


class ShareReport:
    """Says in a line a second how much of a file is done, and how long the rest takes at the speed so far."""

    def __init__(self, what: str, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self._say, self._clock = what, say, clock
        self._last = clock() + AFTER - EVERY
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> None:
        """Say that a share of the file, at most 1, is done, if it is time to."""
        now, share = self._clock(), min(share, 1.0)
        if self._first is None:  # what comes before it, such as compiling, is done once
            self._first = now, share
        if now - self._last >= EVERY:
            self._last = now
            start, done = self._first
            left = f", about {(now - start) * (1.0 - share) / (share - done):.0f} s left" if share > done else ""
            self._say(f"{self.what}: {share:.0%}{left}")


def write_text(
    path: Path,
    segments: Segments,
    *,
    n_features: int | None = None,
    qid: Ids | None = None,
    group: Sizes | None = None,
    **options: Unpack[LineOptions],
) -> None:
    """Write what `read_text` returns into a folder, in memory that does not depend on the length of the file.

    Raises DataError where the file is no ranking text, and OSError where the folder cannot be written.
    """
    layout = options.get("layout", "auto")
    blocks = TextBlocks(path, n_features=n_features, **options)
    n_entries = 0
    with segments:
        for block in blocks:
            n_entries += len(block.values)
            width = blocks.n_features or blocks.width
            if is_dense(layout, n_entries, blocks.n_rows, width):
                features: Features = np.zeros((len(block.grades), width), dtype=blocks.dtype)
                scatter(block.values, block.columns, block.ends, features)
            else:
                features = csr_block(block.values, block.columns, block.ends, width, blocks.dtype)
            ids = None if block.document_ids is None else np.array(block.document_ids, dtype=object)
            segments.add(features, block.grades, ids)
            if segments.on_share is not None:
                segments.on_share(blocks.position.share)
        grouping, width = blocks.grouping(qid, group), blocks.check_features()
        is_sparse = not is_dense(layout, n_entries, blocks.n_rows, width)
        segments.finish(grouping, width, is_sparse=is_sparse, has_missing=blocks.has_missing)
