"""Cases are read from LETOR folders, in folders of parts, by prefixes and in single files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import concatenate
from ranktune.studies.benchmarks.turnkey.data import Case, load_cases, redealt
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
    assert counts(case) == [(3, 4, 5)] and case.split_seed is None and not case.letor
    assert case.name == tmp_path.name


def test_a_file_is_dealt_by_the_seed(tmp_path: Path) -> None:
    file = write(tmp_path / "all.txt", queries(20, 1))
    ids = []
    for seed, expected in ((None, 0), (0, 0), (3, 3)):
        (case,) = load_cases([file], seed)
        assert counts(case) == [(12, 4, 4)] and (case.name, case.split_seed) == ("all", expected)
        assert case.splits[0].test is not None
        ids.append(case.splits[0].test.query_ids.tolist())
    assert ids[0] == ids[1] != ids[2]


def test_folds_are_a_letor_case(tmp_path: Path) -> None:
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        three(tmp_path / fold)
    (case,) = load_cases([tmp_path])
    assert case.letor and counts(case) == [(3, 4, 5)] * 2
    (case,) = load_cases([tmp_path], 7)
    assert case.letor and case.split_seed == 7 and len(case.splits) == 5


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
def test_reassigned_folds_are_a_partition(n_queries: int) -> None:
    whole = queries(n_queries, 1)
    three = [whole.select(np.arange(n_queries)[part::3]) for part in range(3)]
    folds = redealt([QuerySplit("Fold1", *three)], seed=4)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    for fold in folds:
        assert fold.vali is not None and fold.test is not None
        together = concatenate([fold.train, fold.vali, fold.test])
        assert sorted(together.query_ids) == sorted(whole.query_ids)
        assert len(set(together.query_ids.tolist())) == n_queries
        assert fold.train.n_queries >= 3 * (n_queries // 5)
        at = int(np.flatnonzero(whole.query_ids == fold.test.query_ids[0])[0])
        rows = slice(whole.starts[at], whole.starts[at + 1])
        assert np.array_equal(fold.test.features[: fold.test.starts[1]], whole.features[rows])
    tested = [q for fold in folds if fold.test is not None for q in fold.test.query_ids]
    assert sorted(tested) == sorted(whole.query_ids)
    other = redealt([QuerySplit("Fold1", *three)], seed=5)
    assert n_queries == 5 or [f.train.fingerprint for f in folds] != [f.train.fingerprint for f in other]
    with pytest.raises(DataError, match="4 queries cannot be dealt"):
        redealt([QuerySplit("Fold1", queries(4, 1))], seed=0)
