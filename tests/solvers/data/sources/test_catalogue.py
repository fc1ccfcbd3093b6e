import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.data.api_search import dataset as api_search
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources.catalogue import load, read
from tests.support.refusals import assert_refused

TEXT = "2 qid:10 1:0.5 3:-2\n0 qid:10 2:100\n1 qid:12 1:1 2:2 3:3\n"
X = np.array([[0.5, 0, -2], [0, 100, 0], [1, 2, 3]], dtype=np.float32)
Y, QID = [2, 0, 1], [10, 10, 12]


def sources(folder: Path) -> dict[str, Any]:
    """The same data in every form."""
    (folder / "data.txt").write_text(TEXT)
    np.savez(folder / "data.npz", X=X, y=Y, qid=QID)
    columns: dict[str, Any] = {"grade": Y, "qid": QID} | {f"f{k}": X[:, k] for k in range(3)}
    pl.DataFrame(columns).write_csv(folder / "data.csv")
    return {
        "text": folder / "data.txt",
        "npz": folder / "data.npz",
        "csv": folder / "data.csv",
        "polars": pl.DataFrame(columns),
        "tuple": (X, Y, QID),
        "queries": Queries.from_arrays(X, Y, qid=QID),
    }


@pytest.mark.parametrize("kind", ["text", "npz", "csv", "polars", "tuple", "queries"])
def test_columns_may_be_more_or_fewer_where_they_are_numbered(tmp_path: Path, kind: str) -> None:
    source = sources(tmp_path)[kind]
    if read(source).feature_names is None:
        assert read(source, n_features=4).features.tolist() == np.pad(X, ((0, 0), (0, 1))).tolist()
        with pytest.raises(DataError, match="does not have: 3"):
            read(source, n_features=2)
    else:  # which of the named columns are meant is not known
        with pytest.raises(DataError, match="3 columns for 4 features"):
            read(source, n_features=4)
    (split,) = load(source, vali=source, test=source)
    assert split.vali is not None and split.test is not None
    assert split.train.fingerprint == split.vali.fingerprint == split.test.fingerprint


def test_test_data_has_the_features_of_training(tmp_path: Path) -> None:
    given = sources(tmp_path)
    wide, narrow = tmp_path / "wide.txt", tmp_path / "narrow.txt"
    wide.write_text("0 qid:1 1:1\n0 qid:1 4:1 6:2\n")
    narrow.write_text("0 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"wide.txt:2: .*4 and 6"):
        load(given["text"], test=wide)
    split = load(given["text"], vali=narrow, test=(X[:, :2], Y, QID))[0]
    assert split.vali is not None and split.vali.features.tolist() == [[1, 0, 0]]
    assert split.test is not None and split.test.n_features == 3
    with pytest.raises(DataError, match=r"test: .*does not have: 4"):
        load(given["text"], test=(np.ones((3, 4)), Y, QID))


def test_a_model_reads_columns_by_the_names_it_knows(tmp_path: Path) -> None:
    given = sources(tmp_path)
    names = ("f2", "f0", "f1")
    for kind in ("polars", "csv"):
        queries = read(given[kind], feature_names=names)
        assert queries.feature_names == names and queries.features.tolist() == X[:, [2, 0, 1]].tolist()
    with pytest.warns(RankTuneWarning, match="matched by position"):
        assert read(given["text"], feature_names=names).features.tolist() == X.tolist()
    assert read(given["polars"], feature_names=("f1", "f0")).features.tolist() == X[:, [1, 0]].tolist()
    with pytest.raises(DataError, match="no column 'f7'"):
        read(given["polars"], feature_names=("f0", "f7"))
    with pytest.raises(DataError, match="does not have: 3"):
        read(given["text"], n_features=2)


def test_options_reach_the_reader_and_only_a_reader_that_has_them(tmp_path: Path) -> None:
    given = sources(tmp_path)
    assert read(given["text"], dtype=np.float64).features.dtype == np.float64
    renamed = given["polars"].rename({"grade": "judged", "qid": "asked"})
    split = load(renamed, test=renamed, grade="judged", qid="asked")[0]
    assert split.test is not None and split.test.grades.tolist() == Y
    with pytest.raises(ParameterError, match="Did you mean 'missing'"):
        read(given["text"], mising="zero")  # type: ignore[call-arg]
    given["converted"] = tmp_path / "made"
    ranktune.convert(given["tuple"], given["converted"])
    for kind in ("npz", "tuple", "queries", "converted"):
        with pytest.raises(ParameterError, match="missing= is not an option"):
            read(given[kind], missing="zero")
    (tmp_path / "zero.txt").write_text("0 qid:1 0:1 2:NULL\n")
    split = load(tmp_path / "zero.txt", vali=tmp_path / "zero.txt", one_based=False, missing="zero", n_features=5)[0]
    assert split.train.n_features == 5 and split.vali is not None and split.vali.n_features == 5


def test_a_letor_folder_gives_its_folds(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"Fold{number}").mkdir()
        for part in ("train", "vali", "test"):
            (tmp_path / f"Fold{number}" / f"{part}.txt").write_text(TEXT)
    splits = load(str(tmp_path), dtype=np.float64)
    assert [split.name for split in splits] == ["Fold1", "Fold2"]
    assert all(split.vali is not None and split.test is not None for split in splits)
    assert splits[0].train.features.dtype == np.float64
    with pytest.raises(DataError, match="brings its own"):
        load(tmp_path, test=tmp_path / "Fold1" / "test.txt")
    with pytest.raises(DataError, match=r"LETOR folder, which load\(\) reads"):
        read(tmp_path)


def test_the_embedded_data_is_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    split = QuerySplit("api-search", Queries.from_arrays(X, Y, qid=QID))
    monkeypatch.setattr(api_search, "load_split", lambda: split)
    assert load("api-search") == [split]
    with pytest.raises(DataError, match="brings its own"):
        load("api-search", test="x.txt")
    with pytest.raises(DataError, match="has train, vali and test queries") as refused:
        read("api-search")
    assert "Give a file of LETOR" in str(refused.value) and "the name api-search" not in str(refused.value)
    with pytest.raises(ParameterError, match="dtype"):
        load("api-search", dtype=np.float64)


def test_documents_to_score_need_no_grades(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("f1,qid,f0,note\n2.0,7,1.0,x\n4.0,7,3.0,y\n")
    queries = read(file, feature_names=("f0", "f1"), graded=False)
    assert queries.features.tolist() == [[1, 2], [3, 4]] and queries.grades.tolist() == [0, 0]
    file.write_text("f1,qid,grade,f0\n2.0,7,bad,1.0\n4.0,7,,3.0\n")
    with pytest.warns(RankTuneWarning, match="matched by position"):
        assert read(file, n_features=2, graded=False).features.tolist() == [[2, 1], [4, 3]]
    with pytest.raises(DataError, match="grade column"):
        read(file)


def test_missing_cells_of_a_table_are_zeros_where_asked(tmp_path: Path) -> None:
    file = tmp_path / "holes.csv"
    file.write_text("grade,qid,f0,f1,f2\n1,1,,2.0,NULL\n0,1,3,NaN,5\n")
    with pytest.raises(DataError, match=r"holes\.csv"):
        read(file, missing="error")
    np.testing.assert_array_equal(read(file).features, [[np.nan, 2, np.nan], [3, np.nan, 5]])
    assert read(file).has_missing
    assert read(file, missing="zero").features.tolist() == [[0, 2, 0], [3, 0, 5]]
    with pytest.raises(ParameterError, match="Did you mean 'zero'"):
        read(file, missing="zeros")  # type: ignore[arg-type]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_compressed_table_is_read_as_a_table(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    sources(tmp_path)
    ending = ".gz" if pack is gzip.compress else ".bz2"
    packed = tmp_path / f"data.csv{ending}"
    packed.write_bytes(pack((tmp_path / "data.csv").read_bytes()))
    assert read(packed).fingerprint == read(tmp_path / "data.csv").fingerprint
    assert load(packed)[0].name == "data"
    assert_refused(packed, packed.read_bytes()[:-12], "damaged or cut off")
    assert_refused(tmp_path / f"data.parquet{ending}", pack(b"PAR1"), r"compressed inside.*Unpack it")
