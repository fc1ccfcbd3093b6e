"""Features that give the grade away are refused, unless they are named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.sources.inspection import suspects
from tests.support.commands import called

GENERATOR = np.random.default_rng(0)
N = 240
QID = np.repeat(np.arange(N // 8), 8)
GRADE = GENERATOR.integers(0, 3, N)
NOISE = GENERATOR.normal(size=N)


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"qid": QID, "grade": GRADE, "a": NOISE, **columns})


def copies(feature: np.ndarray, grades: np.ndarray = GRADE, qid: np.ndarray = QID) -> bool:
    queries = Queries.from_arrays(np.column_stack([NOISE[: len(feature)], feature]), grades, qid=qid)
    return any(suspect.is_copy for suspect in suspects(queries))


def test_a_strictly_monotone_function_of_the_grade_is_a_copy() -> None:
    for feature in (GRADE, 3.5 * GRADE - 7, -GRADE, np.exp(GRADE)):
        assert copies(feature)
    almost = GRADE.astype(float)
    almost[100] += 0.5
    assert not copies(almost)
    assert not copies(np.minimum(GRADE, 1)) and not copies(np.abs(GRADE - 1)) and not copies(NOISE)


def test_what_may_be_chance_is_no_copy() -> None:
    grades = np.zeros(N)
    grades[5] = 1.0  # one document of eight: an eighth of all features that mark one document of that query would do
    assert not copies(grades, grades)
    assert not copies(GRADE[:8], GRADE[:8], QID[:8])


def test_a_study_refuses_a_copy_unless_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    table(stars=5 - GRADE).to_csv(file, index=False)
    tune = ["tune", str(file), "--home", str(tmp_path), "--trials", "1", "--solver", "BestFeature", "--jobs", "1"]
    with pytest.raises(DataError, match=r'feature stars is the grade.*drop="stars".*features="\*,stars"'):
        ranktune.tune(file, home=tmp_path, name="python", trials=1, jobs=1)
    refused = called(*tune)
    assert isinstance(refused.exception, DataError) and "stars" in str(refused.exception)
    with pytest.warns(UserWarning, match="stars is the grade"):
        assert called(*tune, "--features", "*,stars").exit_code == 0


@pytest.mark.parametrize("name", ["label", "relevance", "Rel"])
def test_a_second_column_of_grades_is_refused_unless_it_is_named(tmp_path: Path, name: str) -> None:
    frame = table(**{name: NOISE > 0})
    with pytest.raises(DataError, match=rf"beside the grade 'grade'.*'{name}'.*drop=\"{name}\""):
        catalogue.read(frame)
    assert catalogue.read(frame, drop=name).feature_names == ("a",)
    assert catalogue.read(frame, features=f"*,{name}").feature_names == ("a", name)
    with pytest.raises(DataError, match="called as grades are"):
        catalogue.read(frame, features="*")


@pytest.mark.parametrize("name", ["x" * 300, "d/" * 3000, "x" * 300 + ".csv"])
def test_a_path_that_cannot_be_looked_up_is_refused(tmp_path: Path, name: str) -> None:
    for read in (catalogue.read, catalogue.load):
        with pytest.raises(DataError, match="too long"):
            read(name)
    (tmp_path / "study.toml").write_text(f'data = "{name}"\ntrials = 1\n')
    done = called("tune", str(tmp_path / "study.toml"), "--home", str(tmp_path))
    assert isinstance(done.exception, DataError) and "too long" in str(done.exception)
