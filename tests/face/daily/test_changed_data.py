"""What goes on compares data by content: a version of a study, a study, a pass; and queries as they were given."""

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.daily.retuning import retune
from ranktune.solvers.core.errors import RankTuneWarning, StudyError
from ranktune.tuner.retuning.versions import versions
from tests.support.commands import called, letor
from tests.support.postgres_server import free_port


def table(first: int, count: int, truth: tuple[float, float] = (1.0, 1.0)) -> pl.DataFrame:
    """Searches with these numbers, one a row group of eight; a few brands, of which more come with time, and dates."""
    generator = np.random.default_rng(first)
    n = 8 * count
    X, search = generator.normal(size=(n, 2)).round(3), first + np.arange(n) // 8
    brand = (generator.zipf(1.4, n) % (3 + search // 20)).astype(int)
    grades = np.digitize(X @ truth + 0.2 * (brand == 1) + 0.3 * generator.normal(size=n), [0.5, 1.5])
    days = pl.Series(search // 4 + generator.integers(0, 3, n)).cast(pl.Int32).cast(pl.Date)
    return pl.DataFrame({"qid": search, "grade": grades, "a": X[:, 0], "b": X[:, 1]}).with_columns(
        brand=pl.Series([f"brand {k}" for k in brand]), published=days + pl.duration(days=20000)
    )


def stop(monkeypatch: pytest.MonkeyPatch, begin: Callable[[], object], stage: str = "blended_candidates") -> None:
    """Interrupt what begins a study once its trials have finished."""

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"ranktune.tuner.runner.choice_stages.{stage}", ended)
        begin()


def write(path: Path, seed: int) -> Path:
    """Write forty queries; where the file is there already, the new one has its size and its time."""
    before = path.stat() if path.exists() else None
    letor(path, 40, seed)
    if before is not None:
        assert path.stat().st_size == before.st_size
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    data = write(home / "first.txt", 1)
    ranktune.tune(data, name="shop", solvers=["RidgeRanker"], trials=4, home=home)
    return home


def file_replaced(folder: Path) -> Callable[[int], dict[str, Any]]:
    return lambda day: {"data": write(folder / "today.txt", day)}


def validation_replaced(folder: Path) -> Callable[[int], dict[str, Any]]:
    return lambda day: {"data": write(folder / "same.txt", 7), "vali": write(folder / "vali.txt", day)}


def arrays(folder: Path) -> Callable[[int], dict[str, Any]]:
    return lambda day: {"data": ranktune.read(write(folder / "read.txt", day))}


@pytest.mark.parametrize("given", [file_replaced, validation_replaced, arrays])
def test_a_decision_is_about_the_data_that_are_given(
    given: Callable[[Path], Callable[[int], dict[str, Any]]],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Monday's version is interrupted; on Tuesday the same name holds other data."""
    alone = Path(shutil.copytree(home, tmp_path / "alone"))
    day = given(tmp_path)
    stop(monkeypatch, lambda: retune("shop", **day(2), version="monday", home=home))
    with pytest.raises(StudyError, match=r"'monday' of 'shop' was interrupted, on other data.*version="):
        retune("shop", **day(3), version="monday", home=home)
    with pytest.warns(RankTuneWarning, match="'monday' of 'shop' was interrupted, on other data"):
        done = retune("shop", **day(3), home=home)
    known = retune("shop", **day(3), home=alone)
    assert done.result.study == known.result.study != "monday"
    assert done.evidence["means"] == known.evidence["means"] and done.decision == known.decision
    assert [each.has_result for each in versions(home, "shop")] == [True, False, True], "Monday's is left alone"


def test_a_decision_is_repeated_for_its_own_data_alone(home: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "today.txt", 2)
    words = ("retune", "shop", data, "--as", "new", "--home", home)
    first = called(*words)
    os.utime(data, (2e9, 2e9))
    assert called(*words).stdout == first.stdout, "the file was only touched"
    write(data, 3)
    os.utime(data, (1e9, 1e9))
    refused = called(*words)
    assert refused.exit_code == 1 and "there is a study 'new' already" in str(refused.exception)


def of_text(path: Path, day: int) -> None:
    write(path, day)


def of_table(path: Path, day: int) -> None:
    table(day, 60).write_csv(path)


@pytest.mark.parametrize(("name", "make"), [("d.txt", of_text), ("d.csv", of_table)])
def test_a_study_that_goes_on_says_that_its_file_has_changed(
    name: str, make: Callable[[Path, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / name
    make(data, 1)
    settings: dict[str, Any] = {"solvers": "RidgeRanker", "trials": 4, "home": tmp_path}
    whole = ranktune.tune(data, name="whole", **settings)
    stop(monkeypatch, lambda: ranktune.tune(data, name="mine", **settings))
    make(data, 2)
    with pytest.warns(RankTuneWarning, match=f"{name} no longer holds the data that the study began with"):
        stop(monkeypatch, lambda: ranktune.resume("mine", home=tmp_path))
    make(data, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stop(monkeypatch, lambda: ranktune.resume("mine", home=tmp_path))
        data.unlink()
        done = ranktune.resume("mine", home=tmp_path)
    assert [row.vali for row in done.leaderboard] == [row.vali for row in whole.leaderboard], (
        "it went on with the data that it began with"
    )


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a study of 60 searches with brands and dates."""
    home = tmp_path_factory.mktemp("catalogue")
    test = table(1000, 20)
    ranktune.tune(table(0, 60), test=test, name="shop", solvers=["RidgeRanker"], trials=2, home=home)
    return home


def as_it_is(frame: pl.DataFrame, folder: Path) -> object:
    return frame


def as_csv_in_another_order(frame: pl.DataFrame, folder: Path) -> object:
    frame.select(reversed(frame.columns)).write_csv(folder / "new.csv")
    return folder / "new.csv"


def as_parquet_with_more_columns(frame: pl.DataFrame, folder: Path) -> object:
    more = frame.with_columns(c=pl.col("a") * pl.col("b"), shelf=pl.Series(["x", "y", "z", None] * (len(frame) // 4)))
    more.with_columns(pl.col("b").cast(pl.Float32)).write_parquet(folder / "new.parquet")
    return folder / "new.parquet"


@pytest.mark.parametrize("form", [as_it_is, as_csv_in_another_order, as_parquet_with_more_columns])
def test_the_current_model_is_not_judged_on_the_queries_it_was_fitted_to(
    form: Callable[[pl.DataFrame, Path], object], catalogue: Path, tmp_path: Path
) -> None:
    """A cumulative export, with other levels at the front and later dates."""
    home = Path(shutil.copytree(catalogue, tmp_path / "home"))
    old, new = table(0, 60), table(60, 100)
    data = form(pl.concat([old.sample(fraction=1.0, shuffle=True, seed=0), new]), tmp_path)
    done = retune("shop", data, home=home)
    taught = old.group_by("qid").agg(pl.col("grade").n_unique() > 1)["grade"].sum()
    assert done.evidence["seen"] == taught > 50
    assert all(each["queries"] <= 100 for each in done.evidence["contenders"].values())
    if form is as_it_is:
        later = retune("shop", table(500, 40), home=home)
        assert later.evidence["seen"] == 0 and later.evidence["contenders"]


def test_retuning_does_not_ignore_a_database(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, url = write(tmp_path / "new.txt", 5), f"postgresql://nobody@127.0.0.1:{free_port()}/runs"
    with pytest.raises(StudyError, match=r"127\.0\.0\.1"):
        retune("shop", data, storage=url, home=home)
    monkeypatch.setenv("RANKTUNE_STORAGE", url)
    refused = called("retune", "shop", data, "--home", home)
    assert isinstance(refused.exception, StudyError), refused.output
    assert [each.path.name for each in versions(home, "shop")] == ["shop"]
    with pytest.warns(RankTuneWarning, match="'shop' keeps its record where it began"):
        ranktune.resume("shop", trials=5, storage=url, home=home)
