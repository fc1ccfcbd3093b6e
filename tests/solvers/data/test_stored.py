"""Queries on disk come back bit for bit, mapped rather than read. A stored data set that is damaged, cut off, foreign
or of another machine is refused with its place and a remedy."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Json, stored_arrays, stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.disk.writer import QueriesWriter
from ranktune.solvers.data.queries import Queries
from tests.support.query_samples import assert_same, some


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_trip(tmp_path: Path, layout: str, dtype: str) -> None:
    queries = some(1, layout=layout, dtype=dtype)
    write_queries(queries, tmp_path / "q", documents=True)
    assert_same(read_queries(tmp_path / "q"), queries)


def test_changing_what_was_read_does_not_change_the_file(tmp_path: Path, hard_queries: Queries) -> None:
    write_queries(hard_queries, tmp_path)
    mapped = read_queries(tmp_path)
    mapped.features[:] = 0.0
    assert read_queries(tmp_path).fingerprint == hard_queries.fingerprint


def test_ids_of_any_type_become_plain(tmp_path: Path) -> None:
    queries = Queries.from_arrays(np.eye(3), [0, 1, 2], qid=[("x", 1), 2.5, "t"])
    write_queries(queries, tmp_path)
    assert read_queries(tmp_path).query_ids.tolist() == ["('x', 1)", "2.5", "t"]


def _written(folder: Path, *, csr: bool = False) -> Path:
    X = np.arange(60, dtype=np.float32).reshape(20, 3) % 7
    qid = np.repeat(np.arange(5), 4)
    write_queries(Queries.from_arrays(sparse.csr_array(X) if csr else X, np.arange(20) % 3, qid=qid), folder)
    return folder


def _edit(folder: Path, change: Callable[[Json], object]) -> None:
    about = json.loads((folder / "queries.json").read_text())
    change(about)
    (folder / "queries.json").write_text(json.dumps(about))


@pytest.mark.parametrize("name", ["features", "grades", "starts", "query_ids"])
def test_each_byte_of_the_content_counts(tmp_path: Path, name: str) -> None:
    path = _written(tmp_path) / f"{name}.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}\.npy: is damaged: .* Convert the source again"):
        read_queries(tmp_path)


@pytest.mark.parametrize("size", [0, 5, 100, 140, -1])
@pytest.mark.parametrize("name", ["features", "grades"])
def test_a_file_that_is_cut_off(tmp_path: Path, name: str, size: int) -> None:
    path = _written(tmp_path) / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match=rf"{name}\.npy: .* Convert the source again"):
        read_queries(tmp_path)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: np.save(path, np.zeros((20, 4), dtype=np.float32)),
         r"holds float32 of shape \(20, 4\), not float32 of shape \(20, 3\)"),
        (lambda path: np.save(path, np.array([None, {}], dtype=object), allow_pickle=True),
         r"features\.npy: cannot be read \(it is no array of numbers"),
        (lambda path: path.write_bytes(b"PAR1" + bytes(400)), "it is no array"),
        (Path.unlink, r"features\.npy: cannot be read \(No such file"),
    ],
    ids=["shape", "type", "foreign", "missing"],
)  # fmt: skip
def test_a_file_of_another_kind_or_none_is_refused(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    damage(_written(tmp_path) / "features.npy")
    with pytest.raises(DataError, match=words):
        read_queries(tmp_path)


def test_another_byte_order_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = _written(tmp_path) / "features.npy"
    np.save(path, np.load(path).astype(">f4"))
    _edit(tmp_path, lambda about: about["arrays"]["features"].update(dtype=">f4"))
    with pytest.raises(DataError, match=r"the other byte order\. Convert the source on this one"):
        read_queries(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(shape=[20, 4]),
        lambda about: about.update(shape=[19, 3]),
        lambda about: about.update(shape=20),
        lambda about: about.pop("arrays"),
        lambda about: about["arrays"].pop("grades"),
        lambda about: about["arrays"]["grades"].update(shape=[-20]),
        lambda about: about["arrays"]["grades"].update(dtype="O"),
        lambda about: about["arrays"]["grades"].update(dtype="nonsense"),
        lambda about: about["arrays"].update({"../grades": about["arrays"]["grades"]}),
        lambda about: about.update(format="other"),
        lambda about: about.update(encoding={"version": 99}),
        lambda about: about.update(feature_names=["a", "a", "b"]),
    ],
)
def test_an_index_that_is_damaged(tmp_path: Path, change: Callable[[Json], object]) -> None:
    _edit(_written(tmp_path), change)
    with pytest.raises(DataError):
        read_queries(tmp_path)


def test_an_index_of_a_later_version_says_so(tmp_path: Path) -> None:
    _edit(_written(tmp_path), lambda about: about.update(version=3))
    with pytest.raises(DataError, match=r"has version 3 of the format, and this RankTune reads up to 2\. Upgrade"):
        read_queries(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 5000])
def test_an_index_that_is_no_json(tmp_path: Path, content: bytes) -> None:
    (_written(tmp_path) / "queries.json").write_bytes(content)
    with pytest.raises(DataError, match=r"queries\.json: cannot be read"):
        read_queries(tmp_path)


@pytest.mark.parametrize(("part", "at", "value"), [("indices", 3, 3), ("indices", 0, -1), ("indptr", 2, 99)])
def test_columns_and_row_ends_outside_the_array_reach_no_kernel(
    tmp_path: Path, part: str, at: int, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _written(tmp_path, csr=True) / f"{part}.npy"
    array = np.load(path)
    array[at] = value
    np.save(path, array)
    monkeypatch.setattr("ranktune.solvers.data.disk.stored.CHECKED_ON_OPENING", 0)  # as of a larger one
    with pytest.raises(DataError, match="is damaged"):
        read_queries(tmp_path)


def test_the_content_of_large_arrays_is_compared_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path) / "features.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr("ranktune.solvers.data.disk.stored.CHECKED_ON_OPENING", 0)
    assert read_queries(tmp_path).n_documents == 20
    with pytest.raises(DataError, match="is damaged"):
        read_queries(tmp_path, check=True)


@pytest.mark.parametrize("csr", [False, True])
def test_blocks_are_written_as_the_whole_is(tmp_path: Path, csr: bool) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 6)).astype(np.float32) * (generator.random((50, 6)) < 0.3)
    ids = [f"d{k}" if k % 7 else "a much longer name" for k in range(50)]
    features = sparse.csr_array(X) if csr else X
    queries = Queries.from_arrays(features, generator.integers(0, 3, 50), group=[20, 5, 25], document_ids=ids)
    with QueriesWriter(tmp_path, 6, np.float32, is_sparse=csr) as writer:
        for first in range(0, 50, 8):  # blocks end within queries
            rows = slice(first, first + 8)
            writer.add(queries.features[rows], queries.grades[rows], np.array(ids[rows]))
        writer.finish(queries.starts, queries.query_ids)
    loaded = read_queries(tmp_path)
    assert loaded.fingerprint == queries.fingerprint
    assert loaded.document_ids is not None
    assert loaded.document_ids.tolist() == ids
    assert not list(tmp_path.glob("*.draft"))


@pytest.mark.thorough
def test_more_values_than_32_bits_count(tmp_path: Path) -> None:
    """A CSR array of 2**31 + 8 values, whose file is a hole: nothing of it is copied, and its last block is right."""
    n_rows, per_row = 4, (1 << 29) + 2
    folder = _written(tmp_path, csr=True)
    n_values = n_rows * per_row
    ends = np.arange(n_rows + 1) * per_row
    np.save(folder / "indptr.npy", ends)
    for name, dtype in (("data", np.float32), ("indices", np.int32)):
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (n_values,)}
        with open(folder / f"{name}.npy", "wb") as file:
            np.lib.format.write_array_header_2_0(file, header)
            file.truncate(file.tell() + 4 * n_values)
    np.lib.format.open_memmap(folder / "data.npy", mode="r+")[-1] = 5.0
    np.save(folder / "grades.npy", np.arange(4.0))
    np.save(folder / "starts.npy", np.array([0, 2, 4]))
    np.save(folder / "query_ids.npy", np.array([1, 2]))

    def declare(about: Json) -> None:
        about["shape"] = [n_rows, 3]
        for name, length in (("data", n_values), ("indices", n_values), ("indptr", 5), ("grades", 4), ("starts", 3)):
            about["arrays"][name].update(shape=[length])
        about["arrays"]["query_ids"].update(shape=[2])

    _edit(folder, declare)
    queries = read_queries(folder)
    assert [part.dtype for part in stored_arrays(queries.features)] == [np.float32, np.int32, np.int64]
    *_, (first, last) = query_ranges(queries.starts, 2)
    block = block_of(queries, first, last)
    assert block.n_documents == 2
    assert len(stored_values(block.features)) == 2 * per_row
    assert stored_values(block.features)[-1] == 5.0
