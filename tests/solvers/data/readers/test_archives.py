import io
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import dense as to_dense
from ranktune.solvers.core.arrays import stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.archives import read_npz

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.array([0, 1, 2, 0])
QID = np.array(["b", "a", "b", "a"])


def saved(folder: Path, **members: Any) -> Path:
    np.savez_compressed(folder / "data.npz", **members)
    return folder / "data.npz"


def with_member(folder: Path, name: str, content: bytes) -> Path:
    file = saved(folder, y=Y, qid=QID)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file


def test_dense_and_sparse_archives_are_read(tmp_path: Path) -> None:
    dense = read_npz(saved(tmp_path, X=X, y=Y, qid=QID, feature_names=np.array(["p", "q", "r"])))
    assert dense.features.dtype == np.float32 and dense.feature_names == ("p", "q", "r")
    assert dense.in_caller_order(dense.features[:, 0]).tolist() == X[:, 0].tolist()
    assert dense.query_ids.tolist() == ["b", "a"]
    matrix = sparse.csr_array(X)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    csr = read_npz(saved(tmp_path, **parts, y=Y, group=np.array([1, 3]), document_ids=QID))
    assert csr.is_sparse and (to_dense(csr.features) == X).all()
    assert csr.starts.tolist() == [0, 1, 4]
    assert csr.document_ids is not None and csr.document_ids.tolist() == QID.tolist()


def test_columns_first_arrays_are_read(tmp_path: Path) -> None:
    assert (read_npz(saved(tmp_path, X=np.asfortranarray(X), y=Y, group=np.array([4]))).features == X).all()


@pytest.mark.parametrize("lacking", ["X", "y", "qid"])
def test_missing_members_are_named(tmp_path: Path, lacking: str) -> None:
    members = {name: value for name, value in {"X": X, "y": Y, "qid": QID}.items() if name != lacking}
    with pytest.raises(DataError, match=f"data.npz: needs {lacking}"):
        read_npz(saved(tmp_path, **members))


class Bomb:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('code ran')",))


def test_python_objects_are_not_loaded(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="could run code"):
        read_npz(with_member(tmp_path, "X.npy", buffer.getvalue()))
    with pytest.raises(DataError):
        read_npz(with_member(tmp_path, "X.npy", pickle.dumps(Bomb())))


def test_a_header_that_promises_too_much_is_refused_before_allocation(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 1 << 10)})
    file = with_member(tmp_path, "X.npy", buffer.getvalue() + b"\0" * 80)
    tracemalloc.start()
    with pytest.raises(DataError, match="declares shape"):
        read_npz(file)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.solvers.data.readers.archives.FREE_EXPANSION", 1 << 16)
    monkeypatch.setattr("ranktune.solvers.data.readers.archives.MAX_EXPANSION", 1100)
    file = saved(tmp_path, X=np.zeros((4, 1 << 20)), y=Y, qid=QID)
    assert read_npz(file).n_features == 1 << 20
    monkeypatch.setattr("ranktune.solvers.data.readers.archives.MAX_EXPANSION", 100)
    with pytest.raises(DataError, match="decompression bomb"):
        read_npz(file)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 9])},
        {"indices": np.array([0, -1])},
        {"indptr": np.array([0, 2, 1, 2, 2])},
        {"indptr": np.array([0, 2])},
        {"shape": np.array([4])},
        {"shape": np.array([4.0, 3.0])},
        {"data": np.array([1.0, np.inf])},
    ],
)
def test_damaged_sparse_parts_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    parts: dict[str, Any] = {
        "data": np.array([1.0, 2.0]), "indices": np.array([0, 2]), "indptr": np.array([0, 1, 2, 2, 2]),
        "shape": np.array([4, 3]),
    }  # fmt: skip
    assert stored_values(read_npz(saved(tmp_path, **parts, y=Y, qid=QID)).features).size == 2
    with pytest.raises(DataError, match=r"data\.npz"):
        read_npz(saved(tmp_path, **{**parts, **change}, y=Y, qid=QID))


def test_every_cut_and_flip_is_an_error_or_the_same_data(tmp_path: Path) -> None:
    content = saved(tmp_path, X=X, y=Y, qid=QID).read_bytes()
    expected = read_npz(tmp_path / "data.npz").fingerprint
    file = tmp_path / "hurt.npz"
    generator = np.random.default_rng(0)
    refused = 0
    hurt = [content[:cut] for cut in range(0, len(content), 29)]
    for at in generator.integers(0, len(content), 200).tolist():
        hurt.append(content[:at] + bytes([content[at] ^ (1 << int(generator.integers(0, 8)))]) + content[at + 1 :])
    for bad in hurt:
        file.write_bytes(bad)
        try:
            assert read_npz(file).fingerprint == expected
        except DataError as error:
            assert "hurt.npz" in str(error)
            refused += 1
    assert refused > len(hurt) // 2


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("0 qid:1 1:1\n")
    for name in ("text.npz", "none.npz"):
        with pytest.raises(DataError, match=name):
            read_npz(tmp_path / name)


def test_what_an_archive_declares_must_fit_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path, X=np.ones((400, 3), dtype=np.uint8), y=np.zeros(400), qid=np.ones(400))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * 1200 - 1))
    with pytest.raises(DataError, match=r"X\.npy of shape \(400, 3\) takes about 0 MB of memory"):
        read_npz(file)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"qid": np.zeros(4, dtype="V0")}, "records"),
        ({"qid": np.array([7, 7, 8, np.nan])}, r"qid\[3\] is nan"),
    ],
)
def test_an_archive_keeps_the_rules_of_queries(tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"data\.npz: .*{message}"):
        read_npz(saved(tmp_path, **({"X": X, "y": Y, "qid": QID} | parts)))


def test_more_columns_than_a_model_can_have_are_refused(tmp_path: Path) -> None:
    parts = sparse.csr_array(X)
    with pytest.raises(DataError, match=f"{2**40} features"):
        read_npz(
            saved(
                tmp_path, data=parts.data, indices=parts.indices, indptr=parts.indptr,
                shape=np.array([4, 2**40]), y=Y, qid=QID,
            )
        )  # fmt: skip
