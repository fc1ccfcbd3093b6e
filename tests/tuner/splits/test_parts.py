"""Parts of the development queries are the selected queries, in one file for all; plans are read as they are now."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits import store as parts
from ranktune.tuner.splits.plans import PLAN, Fold, query_folds, save_plan
from ranktune.tuner.splits.store import (
    PARTS,
    read_development,
    read_part,
    read_plan,
    remove_parts,
    training_numbers,
    write_problem,
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 4)), generator.integers(0, 3, 300)
    development = Queries.from_arrays(X, y, qid=np.arange(300) // 10)
    write_problem(development, {PLAN: query_folds(development, 3, 0)}, tmp_path)
    return str(tmp_path)


def test_a_part_is_what_is_selected(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    development, numbers = read_development(folder), np.arange(0, 30, 2)
    small = read_part(folder, numbers)
    assert not (Path(folder) / PARTS).exists()
    monkeypatch.setattr(parts, "MIN_BYTES", 1)
    mapped = read_part(folder, numbers)
    assert len(list((Path(folder) / PARTS).iterdir())) == 1
    for part in (small, mapped, read_part(folder, numbers)):
        assert part.fingerprint == development.select(numbers).fingerprint
        assert origin_of(part)[0] is development
    assert read_part(folder, numbers) is mapped
    view = read_part(folder, np.arange(5, 20))
    assert np.shares_memory(view.features, development.features)


def test_processes_use_what_another_one_has_written(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MIN_BYTES", 1)
    first = read_part(folder, np.array([3, 1]))
    parts._mapped.clear()
    before = {path: path.stat().st_mtime_ns for path in Path(folder, PARTS).rglob("*")}
    assert read_part(folder, np.array([3, 1])).fingerprint == first.fingerprint
    assert {path: path.stat().st_mtime_ns for path in Path(folder, PARTS).rglob("*")} == before
    remove_parts(Path(folder))
    assert first.features.sum() == read_development(folder).select([3, 1]).features.sum()


def full(*args: object) -> Queries:
    raise OSError(28, "No space left on device")


def test_without_room_a_part_is_in_memory(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MIN_BYTES", 1)
    monkeypatch.setattr(parts, "gathered", full)
    numbers = np.array([7, 9])
    assert read_part(folder, numbers).fingerprint == read_development(folder).select(numbers).fingerprint
    assert list((Path(folder) / PARTS).iterdir()) == []

    monkeypatch.setattr(parts, "left", lambda: 10)
    with pytest.raises(StudyError, match=r"cannot be written \(No space left on device\).*Free as much on the disk"):
        read_part(folder, np.array([7, 9]))


def test_a_plan_that_another_process_has_replaced_is_read_anew(folder: str) -> None:
    plan = read_plan(folder, PLAN)
    assert isinstance(plan, tuple) and len(plan) == 3
    fold = Fold(np.arange(20), np.arange(20, 30))
    save_plan((fold,), Path(folder) / f"{PLAN}.npz")
    result = read_plan(folder, PLAN)
    assert isinstance(result, tuple) and len(result) == 1
    np.testing.assert_array_equal(training_numbers(folder), np.arange(20))
    assert read_plan(folder, "none") == ()
