"""The options of reading: their types, and which of them each kind of source has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from ranktune.solvers.core.arrays import Ids, Sizes

Layout = Literal["auto", "dense", "sparse", "written"]
Missing = Literal["keep", "error", "zero"]


class LineOptions(TypedDict, total=False):
    """Options of `TextBlocks`, except n_features."""

    grades: object
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


class MoreOptions(TypedDict, total=False):
    """Which columns are times, and what grades mean: see `from_frame`."""

    grades: object
    time: str | None
    group_by_time: str | None
    session: str | None


class ColumnOptions(MoreOptions, total=False):
    """Which columns of a table are what: see `from_frame`."""

    grade: str | None
    document: str | None
    features: Sequence[str] | str | None
    drop: Sequence[str] | str
    levels: int
    weight: str | None
    document_weight: str | None
    position: str | None
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
