"""The options of reading: their types, and which of them each kind of source has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict, get_args, get_type_hints

import numpy as np

from ranktune.solvers.core.arrays import Ids, Sizes
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.errors import ParameterError

Layout = Literal["auto", "dense", "sparse"]
Missing = Literal["keep", "error", "zero"]


class LineOptions(TypedDict, total=False):
    """Options of `TextBlocks`, except n_features."""

    dtype: type | str
    one_based: bool
    missing: Missing
    strict: bool
    max_features: int
    layout: Layout
    max_expansion: float


class TextOptions(LineOptions, total=False):
    """Options of `read_text`, except n_features."""

    qid: Ids | None
    group: Sizes | None


class ColumnOptions(TypedDict, total=False):
    """Which columns of a table are what: see `from_frame`."""

    grade: str | None
    document: str | None
    features: Sequence[str] | str | None
    drop: Sequence[str] | str
    levels: int
    weight: str | None
    document_weight: str | None
    group_by_time: str | None
    qrels: str | Path | None


class FrameOptions(ColumnOptions, total=False):
    """Options of tables and frames."""

    qid: str
    missing: Missing


class ArchiveOptions(TypedDict, total=False):
    """Options of `read_npz`."""

    max_expansion: float


class FolderOptions(TextOptions, total=False):
    """Options of `read_letor`."""

    n_features: int | None


class ReadOptions(TextOptions, ColumnOptions, total=False):
    """Options of `catalogue.read`, whatever the source; for tables, qid is the name of a column."""


class LoadOptions(ReadOptions, total=False):
    """Options of `catalogue.load`."""

    n_features: int | None


FRAME, ARCHIVE, FOLDER, COLUMNS = (
    tuple(get_type_hints(kind)) for kind in (FrameOptions, ArchiveOptions, FolderOptions, ColumnOptions)
)
"""Names of the options."""


def check_missing(missing: str) -> None:
    """Raise ParameterError unless missing is one of its values."""
    check_choice("missing", missing, get_args(Missing))


def check_text_options(n_features: int | None, dtype: type | str, layout: str, max_features: int) -> None:
    """Raise ParameterError for a value that an option of `read_text` cannot have."""
    try:
        known_dtype = np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        known_dtype = False
    if not known_dtype:
        raise ParameterError(f"dtype={dtype!r}: features are held as np.float32 or np.float64.")
    for name, count in (("n_features", n_features), ("max_features", max_features)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0):
            raise ParameterError(f"{name}={count!r}: it must be a whole number of at least 0.")
    check_choice("layout", layout, get_args(Layout))
