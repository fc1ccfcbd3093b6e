import gzip
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.letor import is_letor_folder, read_letor


def fold(folder: Path, **parts: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in parts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_folds_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        fold(tmp_path / f"Fold{number}", train=f"{number} qid:1 1:1 3:1\n", vali="0 qid:2 1:1\n", test="0 qid:3 2:1\n")
    assert is_letor_folder(tmp_path)
    splits = read_letor(tmp_path)
    assert [split.name for split in splits] == ["Fold1", "Fold2", "Fold10"]
    assert [split.train.grades[0] for split in splits] == [1, 2, 10]
    for split in splits:
        assert split.vali is not None and split.test is not None
        assert split.train.n_features == split.vali.n_features == split.test.n_features == 3


def test_one_fold_is_a_folder_too(tmp_path: Path) -> None:
    folder = fold(tmp_path / "MyFold", train="0 qid:1 1:1\n")
    (folder / "vali.txt.gz").write_bytes(gzip.compress(b"1 qid:5 1:2\n"))
    assert is_letor_folder(folder)
    (split,) = read_letor(folder)
    assert split.name == "MyFold" and split.test is None
    assert split.vali is not None and split.vali.query_ids.tolist() == [5]


def test_a_test_file_with_features_that_train_lacks_is_an_error(tmp_path: Path) -> None:
    fold(tmp_path / "Fold1", train="0 qid:1 1:1\n", test="0 qid:1 1:1\n0 qid:2 4:1 7:1\n")
    with pytest.raises(DataError, match=r"test.txt:2: .*4 and 7"):
        read_letor(tmp_path)


def test_vali_and_test_have_the_layout_of_train(tmp_path: Path) -> None:
    sparse = "".join(f"0 qid:1 {column}:1\n" for column in range(1, 30))
    fold(tmp_path / "Fold1", train=sparse, test="0 qid:1 " + " ".join(f"{k}:1" for k in range(1, 29)) + "\n")
    (split,) = read_letor(tmp_path)
    assert split.train.is_sparse and split.test is not None and split.test.is_sparse


def test_what_is_no_such_folder_is_an_error(tmp_path: Path) -> None:
    assert not is_letor_folder(tmp_path / "none") and not is_letor_folder(tmp_path)
    fold(tmp_path / "Data" / "Norm" / "Fold1", train="0 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"Did you mean .*Norm"):
        read_letor(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        read_letor(tmp_path / "none")
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(DataError, match=r"Fold1: has no train.txt"):
        read_letor(tmp_path)
