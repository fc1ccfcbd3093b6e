"""Data of the comparison of whole tools: cases of training, validation and test queries, from folders and files.

A path is one of these:

LETOR folder   Fold1 ... each with train, vali and test
folder         files named by their part: train.txt, n.vali.csv, rank_test.gz; one case for each beginning (n, rank)
prefix         DIR/n stands for DIR/n.train.txt, DIR/n.vali.txt and DIR/n.test.txt
api-search     the example data
file           any file that `ranktune.tune` reads: its queries are dealt 3 : 1 : 1 at random
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.api_search import NAME
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.letor import is_letor_folder
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.split import Split
from ranktune.studies.papers.protocols import all_queries
from ranktune.studies.papers.reproduce import load_dataset

FOLDS = 5
GIVEN, DEALT = "given", "dealt"
"""Names of the only split of a case: its parts are as given, or dealt from one file."""

_PART_OF = {"training": "train", "valid": "vali", "validation": "vali"}
_FILE = re.compile(
    r"(?:(?P<name>.+)[._-])?(?P<part>train|training|vali|valid|validation|test)"
    r"(?:\.(?:txt|dat|svm|libsvm|csv|parquet|npz))?(?:\.(?:gz|bz2))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Case:
    """One data set.

    split_seed  by which its queries were dealt; None where its parts are as given
    letor       whether it is a LETOR folder of folds
    """

    name: str
    splits: tuple[Split, ...]
    split_seed: int | None = None
    letor: bool = False


def load_cases(paths: Sequence[Path], split_seed: int | None = None, **options: Unpack[ReadOptions]) -> list[Case]:
    """Return the cases of the paths; with a seed, all queries of each are dealt anew: a folder's into five folds.

    options are those of reading tables, for single files.

    Raises DataError where a path holds no such data, ParameterError where two cases have one name.
    """
    taken: dict[str, Path] = {}
    cases = []
    for path in paths:
        for case in _cases_of(path, split_seed, options):
            if case.name in taken:
                raise ParameterError(
                    f"{taken[case.name]} and {path} are both called {case.name}: give each data set once, or rename "
                    "one. Results are kept by name."
                )
            taken[case.name] = path
            cases.append(case)
    return cases


def _cases_of(path: Path, split_seed: int | None, options: ReadOptions) -> list[Case]:
    if path.is_file():
        queries, seed = catalogue.read(path, **options), split_seed or 0
        dealt = redealt([Split(DEALT, queries)], seed)[0]
        return [Case(path.name.split(".")[0], (replace(dealt, name=DEALT),), seed)]
    if str(path) == NAME:
        return [_dealt_case(Case(NAME, tuple(catalogue.load(NAME))), split_seed)]
    groups = _groups(path)
    if not groups and is_letor_folder(path):
        dataset = load_dataset(path)
        return [_dealt_case(Case(dataset.name, dataset.splits, letor=True), split_seed)]
    if not groups:
        raise DataError(_nothing_found(path))
    return [_dealt_case(Case(name, (_read(files),)), split_seed) for name, files in groups.items()]


def _dealt_case(case: Case, seed: int | None) -> Case:
    return case if seed is None else replace(case, splits=tuple(redealt(case.splits, seed)), split_seed=seed)


def _groups(path: Path) -> dict[str, dict[str, Path]]:
    """Return the files of each case by part, of a folder or of a prefix, for the cases that have training queries."""
    prefix = None if path.is_dir() else path.name.rstrip("._-")
    folder = path if prefix is None else path.parent
    groups: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _FILE.fullmatch(file.name)
        if match is None or not file.is_file() or (prefix is not None and match["name"] != prefix):
            continue
        part = match["part"].lower()
        files = groups.setdefault(match["name"] or folder.resolve().name, {})
        before = files.setdefault(_PART_OF.get(part, part), file)
        if before != file:
            raise DataError(f"{before} and {file.name} hold the same part. Keep one, or name the case: {folder}/NAME.")
    return {name: files for name, files in groups.items() if "train" in files}


def _read(files: Mapping[str, Path]) -> Split:
    train = files["train"]
    if "test" not in files:
        wanted = re.sub("train(ing)?", "test", train.name, flags=re.IGNORECASE)
        raise DataError(
            f"{train}: has no test queries beside it. Add them as {wanted}, or give {train.name} itself: "
            "its queries are then dealt into training, validation and test queries."
        )
    (split,) = catalogue.load(train, vali=files.get("vali"), test=files["test"])
    return replace(split, name=GIVEN)


def _nothing_found(path: Path) -> str:
    if path.is_dir():
        return (
            f"{path}: holds no data set. Looked for Fold1/train.txt and so on (a LETOR folder), and for files named by "
            "their part: train.txt and test.txt, or NAME.train.txt and NAME.test.txt; also .csv, .parquet, .npz, "
            "packed or not. Validation queries (vali) may be missing."
        )
    return (
        f"{path}: there is no such file or folder, nor {path.name}.train.txt beside it. Give a LETOR folder, a folder "
        "with train and test files, a file, or the common beginning of NAME.train.txt and NAME.test.txt."
    )


def redealt(splits: Sequence[Split], seed: int) -> list[Split]:
    """Return all queries of a case (those of its first split) in five new folds, 3 : 1 : 1, at random by seed.

    Each query is a test query in one fold and a validation query in one other, as in LETOR. Raises DataError for fewer
    than five queries.
    """
    queries = all_queries(splits[0])
    if queries.n_queries < FOLDS:
        raise DataError(f"{queries.n_queries} queries cannot be dealt into {FOLDS} folds. Give at least {FOLDS}.")
    parts = np.array_split(np.random.default_rng(seed).permutation(queries.n_queries), FOLDS)

    def part(*numbers: int) -> Queries:
        return queries.select(np.sort(np.concatenate([parts[number % FOLDS] for number in numbers])))

    return [Split(f"Fold{k + 1}", part(k, k + 1, k + 2), part(k + 3), part(k + 4)) for k in range(FOLDS)]
