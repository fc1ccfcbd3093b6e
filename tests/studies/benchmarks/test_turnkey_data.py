"""Cases are read from LETOR folders, in folders of parts, by prefixes and in single files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import concatenate
from ranktune.studies.benchmarks.turnkey.data import Case, dealt, load_cases
from tests.support.turnkey_samples import queries, write


def counts(case: Case) -> list[tuple[int | None, ...]]:
    """Return the number of queries of each part of each split."""
    return [
        tuple(None if part is None else part.n_queries for part in (split.train, split.vali, split.test))
        for split in case.splits
    ]


def three(folder: Path, before: str = "", after: str = ".txt") -> None:
    for number, part in enumerate(("train", "vali", "test"), 1):
        write(folder / f"{before}{part}{after}", queries(2 + number, number))


@pytest.mark.parametrize("before", ["", "n.", "n_", "a.b-"])
def test_a_folder_of_parts_is_a_case(tmp_path: Path, before: str) -> None:
    three(tmp_path, before)
    (tmp_path / "notes.txt").write_text("no data")
    (case,) = load_cases([tmp_path])
    assert counts(case) == [(3, 4, 5)] and not case.letor
    assert case.name == tmp_path.name


def test_a_file_is_dealt_in_one_way(tmp_path: Path) -> None:
    file = write(tmp_path / "all.txt", queries(20, 1))
    first, second = (load_cases([file])[0] for _ in range(2))
    assert counts(first) == [(12, 4, 4)] and first.name == "all"
    assert first.splits[0].train.fingerprint == second.splits[0].train.fingerprint


def test_folds_are_a_letor_case(tmp_path: Path) -> None:
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        three(tmp_path / fold)
    (case,) = load_cases([tmp_path])
    assert case.letor and counts(case) == [(3, 4, 5)] * 2


def test_what_is_missing_is_explained(tmp_path: Path) -> None:
    train = write(tmp_path / "n.train.txt", queries(4, 1))
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError, match=r"holds no data set. Give a file, .* test.txt"):
            load_cases([path])
    three(tmp_path, "n.")
    with pytest.raises(ParameterError, match=r"both called .*: give each data set once"):
        load_cases([tmp_path, tmp_path])
    (tmp_path / "n.train.txt.gz").write_bytes(gzip.compress(train.read_bytes()))
    with pytest.raises(DataError, match=r"n.train.txt and n.train.txt.gz hold the same part"):
        load_cases([tmp_path])


@pytest.mark.parametrize("n_queries", [5, 23])
def test_parts_that_are_dealt_are_a_partition(n_queries: int) -> None:
    whole = queries(n_queries, 1)
    split = dealt(whole)
    assert split.vali is not None and split.test is not None
    together = concatenate([split.train, split.vali, split.test])
    assert sorted(together.query_ids) == sorted(whole.query_ids)
    assert split.train.n_queries >= 3 * (n_queries // 5)
    at = int(np.flatnonzero(whole.query_ids == split.test.query_ids[0])[0])
    rows = slice(whole.starts[at], whole.starts[at + 1])
    assert np.array_equal(split.test.features[: split.test.starts[1]], whole.features[rows])
    with pytest.raises(DataError, match="4 queries cannot be dealt"):
        dealt(queries(4, 1))
