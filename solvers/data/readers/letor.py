"""LETOR folders: Fold1 to Fold5, each with train.txt, vali.txt and test.txt, as LETOR and MSLR are published."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import FolderOptions
from ranktune.solvers.data.readers.text import read_text

_PARTS = {"train": ("train",), "vali": ("vali", "valid", "validation"), "test": ("test",)}
_ENDINGS = (".txt", ".txt.gz", ".txt.bz2", "")


def is_letor_folder(path: str | Path) -> bool:
    """Return whether path is a folder of folds, or one fold: a folder with a training file."""
    folder = Path(path)
    return folder.is_dir() and bool(_folds(folder) or _part(folder, "train"))


def read_letor(path: str | Path, **options: Unpack[FolderOptions]) -> list[QuerySplit]:
    """Return one split per fold, named as its folder (Fold1 ...); a folder that is one fold gives one split.

    Parameters
    ----------
    path : str or Path
        The folder that holds the folds, or one fold.
    **options
        Options of `read_text`. Validation and test queries have the features and the layout of their fold's train.

    Returns
    -------
    list of Split
        In the order of the folds' numbers.

    Raises
    ------
    DataError
        The folder holds no folds, or a fold has no training file.
    """
    folder = Path(path)
    folds = _folds(folder) if folder.is_dir() else []
    if not folds and not is_letor_folder(folder):
        raise DataError(f"{folder}: is not a LETOR folder, which holds Fold1/train.txt and so on.{_hint(folder)}")
    return [_read_fold(fold, options) for fold in folds or [folder]]


def _folds(folder: Path) -> list[Path]:
    """Return the folders Fold1, Fold2 ... in the order of their numbers."""
    numbered = [
        (int(child.name[4:]), child)
        for child in folder.iterdir()
        if child.name[:4].lower() == "fold" and child.name[4:].isdecimal() and child.is_dir()
    ]
    return [child for _, child in sorted(numbered)]


def _part(fold: Path, part: str) -> Path | None:
    candidates = (fold / f"{name}{ending}" for name in _PARTS[part] for ending in _ENDINGS)
    return next((file for file in candidates if file.is_file()), None)


def _read_fold(fold: Path, options: FolderOptions) -> QuerySplit:
    files = {part: _part(fold, part) for part in _PARTS}
    if files["train"] is None:
        raise DataError(f"{fold}: has no train.txt. A fold holds train.txt, vali.txt and test.txt.")
    train = read_text(files["train"], **options)
    fixed = options | FolderOptions(n_features=train.n_features, layout="sparse" if train.is_sparse else "dense")

    def part(name: str) -> Queries | None:
        file = files[name]
        return None if file is None else read_text(file, **fixed)

    return QuerySplit(fold.name, train, part("vali"), part("test"))


def _hint(folder: Path) -> str:
    """Return a sentence that names folds in deeper folders, where the published archives unpack them."""
    if not folder.is_dir():
        return " There is no such folder."
    inner = sorted(child for pattern in ("*", "*/*") for child in folder.glob(pattern) if child.is_dir())
    candidate = next((child for child in inner if _folds(child)), None)
    return f" Did you mean {candidate}?" if candidate else ""
