"""Data of the comparison of whole tools: cases of training, validation and test queries, from folders and files.

A path is one of these:

LETOR folder   Fold1 ... each with train, vali and test
folder         a file of each part, named by it: train.txt, rank.vali.csv, a_test.gz
api-search     the example data
file           any file that `ranktune.tune` reads: its queries are dealt 3 : 1 : 1 at random
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.api_search import NAME
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.letor import is_letor_folder
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.studies.papers.reproduce import load_dataset

FOLDS = 5
GIVEN, DEALT = "given", "dealt"
"""Names of the only split of a case: its parts are as given, or dealt from one file."""

_FILE = re.compile(
    r"(?:.+[._-])?(train|vali|test)(?:\.(?:txt|dat|svm|libsvm|csv|parquet|npz))?(?:\.(?:gz|bz2))?", re.IGNORECASE
)


@dataclass(frozen=True)
class Case:
    """One data set.

    letor  whether it is a LETOR folder of folds
    """

    name: str
    splits: tuple[QuerySplit, ...]
    letor: bool = False


def load_cases(paths: Sequence[Path], **options: Unpack[ReadOptions]) -> list[Case]:
    """Return the cases of the paths; options are those of reading tables, for single files.

    Raises DataError where a path holds no such data, ParameterError where two cases have one name.
    """
    cases = [_case_of(path, options) for path in paths]
    names = [case.name for case in cases]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ParameterError(
                f"{paths[names.index(name)]} and {paths[k]} are both called {name}: give each data set once, or rename "
                "one. Results are kept by name."
            )
    return cases


def _case_of(path: Path, options: ReadOptions) -> Case:
    if path.is_file():
        return Case(path.name.split(".")[0], (dealt(catalogue.read(path, **options)),))
    parts = _parts(path)
    if str(path) == NAME:
        return Case(NAME, tuple(catalogue.load(NAME)))
    if parts.keys() >= {"train", "test"}:
        (split,) = catalogue.load(parts["train"], vali=parts.get("vali"), test=parts["test"])
        return Case(path.resolve().name, (replace(split, name=GIVEN),))
    if is_letor_folder(path):
        dataset = load_dataset(path)
        return Case(dataset.name, dataset.splits, letor=True)
    raise DataError(
        f"{path}: holds no data set. Give a file, or a folder with Fold1/train.txt and so on (a LETOR folder), or "
        "with files named by their part: train.txt, test.txt and, where there are validation queries, vali.txt; "
        "also .csv, .parquet, .npz, packed or not."
    )


def _parts(folder: Path) -> dict[str, Path]:
    """Return the file of each part in a folder. Raises DataError for two of one part."""
    parts: dict[str, Path] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _FILE.fullmatch(file.name)
        if match is not None and file.is_file():
            before = parts.setdefault(match[1].lower(), file)
            if before != file:
                raise DataError(f"{before} and {file.name} hold the same part. Keep one.")
    return parts


def dealt(queries: Queries) -> QuerySplit:
    """Return queries dealt 3 : 1 : 1 at random, the same at each call. Raises DataError for fewer than five."""
    if queries.n_queries < FOLDS:
        raise DataError(f"{queries.n_queries} queries cannot be dealt 3 : 1 : 1. Give at least {FOLDS}.")
    parts = np.array_split(np.random.default_rng(0).permutation(queries.n_queries), FOLDS)
    train, vali, test = (queries.select(np.sort(each)) for each in (np.concatenate(parts[:3]), *parts[3:]))
    return QuerySplit(DEALT, train, vali, test)
