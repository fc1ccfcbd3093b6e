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
    max_features: int
    layout: Layout


class TextOptions(LineOptions, total=False):
    """Options of `read_text`, except n_features."""

    qid: Ids | None
    group: Sizes | None


class ColumnOptions(TypedDict, total=False):
    """Which columns of a table are what: see `WantedRoles`."""

    grades: object
    time: str | None
    group_by_time: str | None
    session: str | None
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


class FolderOptions(TextOptions, total=False):
    """Options of `read_letor`."""

    n_features: int | None


class ReadOptions(TextOptions, ColumnOptions, total=False):
    """Options of `catalogue.read`, whatever the source; for tables, qid is the name of a column."""


class LoadOptions(ReadOptions, total=False):
    """Options of `catalogue.load`."""

    n_features: int | None
