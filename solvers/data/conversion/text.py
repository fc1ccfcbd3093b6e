"""Ranking text to a folder of arrays, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.core.arrays import Features, Ids, Sizes
from ranktune.solvers.data.conversion.segments import Segments
from ranktune.solvers.data.readers.parsing.feature_rows import csr_block, is_dense, scatter
from ranktune.solvers.data.readers.parsing.options import LineOptions
from ranktune.solvers.data.readers.text import TextBlocks


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
