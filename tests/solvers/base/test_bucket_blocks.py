"""Blocks in a bucket: downloaded once, checked, and as good as folders."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers import RidgeRanker, fit_blocks
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data import blocked
from ranktune.solvers.data.disk.stored import write_queries
from tests.support.blocks import parts_of
from tests.support.buckets import put, s3_bucket


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    with s3_bucket(monkeypatch, "data") as url:
        yield url


def upload(folder: Path, prefix: str) -> None:
    for file in folder.iterdir():
        put(f"data/{prefix}/{file.name}", file.read_bytes())


def test_blocks_in_a_bucket_are_those_of_folders(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, _ = parts_of(0)
    for number, part in enumerate(parts):
        write_queries(part, tmp_path / str(number))
        upload(tmp_path / str(number), f"train/{number}")
    urls = [f"{bucket}/train/{number}" for number in range(len(parts))]
    here = fit_blocks(RidgeRanker(), [tmp_path / str(number) for number in range(len(parts))])
    np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, here.coef_)
    with monkeypatch.context() as patched:
        patched.setattr(blocked, "_download", lambda *_: pytest.fail("it is in the cache"))
        np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, here.coef_)
    others, _ = parts_of(1)  # in place of the first block
    write_queries(others[0], tmp_path / "0")
    upload(tmp_path / "0", "train/0")
    changed = fit_blocks(RidgeRanker(), [others[0], *parts[1:]]).coef_
    np.testing.assert_array_equal(fit_blocks(RidgeRanker(), urls).coef_, changed)


def test_damage_is_noticed_and_not_kept(bucket: str, tmp_path: Path) -> None:
    parts, _ = parts_of(2)
    write_queries(parts[0], tmp_path / "q")
    content = bytearray((tmp_path / "q" / "features.npy").read_bytes())
    content[-3] ^= 1
    (tmp_path / "q" / "features.npy").write_bytes(content)
    upload(tmp_path / "q", "q")
    for _ in range(2):
        with pytest.raises(DataError, match=r"features\.npy"):
            fit_blocks(RidgeRanker(), f"{bucket}/q")
    assert list((tmp_path / "cache" / "blocks").iterdir()) == []


def test_errors_say_what_is_wrong(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s3://data/none: there is nothing"):
        fit_blocks(RidgeRanker(), f"{bucket}/none")
    with pytest.raises(DataError, match=r"s3://elsewhere/q.*Are bucket"):
        fit_blocks(RidgeRanker(), "s3://elsewhere/q")
    with pytest.raises(ParameterError, match="s3://BUCKET/PREFIX"):
        fit_blocks(RidgeRanker(), bucket)
    put("data/deep/more/x")
    with pytest.raises(DataError, match="no file of a stored data set"):
        fit_blocks(RidgeRanker(), f"{bucket}/deep")
