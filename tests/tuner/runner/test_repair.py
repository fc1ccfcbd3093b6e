"""Studies whose stored arrays are damaged: resumed, they give the undamaged results; the user gets one line."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.evaluation import plans
from ranktune.tuner.splits.seals import DIGESTS
from tests.faults.test_study_faults import found_by
from tests.support.commands import letor
from tests.support.finished import Heard
from tests.tuner.splits.test_proof import emptied, one_bit, zeroed

TRIALS = 4


def tuned(home: Path, **options: Any) -> dict[str, Any]:
    result = ranktune.tune(
        str(home.parent / "train.txt"), test=str(home.parent / "test.txt"), solvers=("RankSVM", "LambdaMART"),
        trials=TRIALS, sampler="random", jobs=1, home=home, name="s", space={"LambdaMART.trees": 10}, **options,
    )  # fmt: skip
    return found_by(result)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A study that was interrupted after three of four trials, and the result of the whole study."""
    folder = tmp_path_factory.mktemp("repair")
    letor(folder / "train.txt", 20, 1, documents=6)
    letor(folder / "test.txt", 8, 2, documents=6)
    expected = tuned(folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        tuned(folder / "part", progress=Heard(until=3))
    return folder / "part", expected


def resumed(interrupted: Path, home: Path, damage: Callable[[Path], object]) -> tuple[dict[str, Any], list[str]]:
    """Resume a copy of the study, damaged, and return what it finds, and the lines about damage."""
    shutil.copytree(interrupted, home / "home")
    damage(home / "home" / "s")
    heard = Heard()
    result = found_by(ranktune.resume("s", home=home / "home", jobs=1, progress=heard))
    return result, [line for line in heard.lines if "damaged" in line or "cannot read" in line]


def data_file(study: Path, name: str) -> Path:
    (result,) = study.glob(f"data/all-*/{name}")
    return result


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param("features.npy", zeroed, id="features"),
        pytest.param("plan.npz", one_bit, marks=pytest.mark.thorough, id="plan"),
        pytest.param("test/starts.npy", emptied, marks=pytest.mark.thorough, id="test"),
        pytest.param(DIGESTS, Path.unlink, marks=pytest.mark.thorough, id="digests"),
    ],
)
def test_damaged_data_are_reread(
    interrupted: tuple[Path, dict[str, Any]], tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    result, lines = resumed(interrupted[0], tmp_path, lambda study: damage(data_file(study, name)))
    assert result == interrupted[1]
    (line,) = lines
    assert name in line
    assert line.endswith("The data are read again.")


def test_undamaged_data_are_not_reread(interrupted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    result, lines = resumed(interrupted[0], tmp_path, lambda study: study)
    assert (result, lines) == (interrupted[1], [])


def test_scores_that_found_no_room_are_computed_again_to_the_bit(
    interrupted: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not missed until models are blended: fits along a path of values depend on those before."""
    monkeypatch.setattr(plans, "keep_scores", lambda task, scores: None)
    assert tuned(interrupted[0].parent / "unkept") == interrupted[1]


def test_damaged_data_whose_source_changed_are_refused(
    interrupted: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    source = interrupted[0].parent / "train.txt"
    before = source.read_bytes()
    try:
        source.write_bytes(before.replace(b" 1:0.", b" 1:1."))
        with pytest.raises(StudyError, match="exists with other data"):
            resumed(interrupted[0], tmp_path, lambda study: zeroed(data_file(study, "features.npy")))
        source.unlink()
        with pytest.raises(StudyError, match="data of study 's' were kept and are damaged, and cannot be read again"):
            resumed(interrupted[0], tmp_path / "b", lambda study: zeroed(data_file(study, "features.npy")))
    finally:
        source.write_bytes(before)


def artifacts(study: Path) -> list[Path]:
    return sorted((study / "artifacts").iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(emptied, marks=pytest.mark.thorough, id="emptied"),
        pytest.param(one_bit, id="one bit"),
        pytest.param(Path.unlink, marks=pytest.mark.thorough, id="gone"),
    ],
)
def test_the_trial_of_a_damaged_artifact_is_reevaluated(
    interrupted: tuple[Path, dict[str, Any]], tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    before = {file.name: file.read_bytes() for file in artifacts(interrupted[0] / "s")}
    assert len(before) == 3
    result, lines = resumed(interrupted[0], tmp_path, lambda study: damage(artifacts(study)[0]))
    assert result == interrupted[1]
    (line,) = lines
    assert re.fullmatch(r"the stored arrays of trial \d are damaged: evaluated again from the same parameters", line)
    after = {file.name: file.read_bytes() for file in artifacts(tmp_path / "home" / "s")}
    assert before.items() <= after.items()


def test_where_no_arrays_are_left_they_may_be_elsewhere(
    interrupted: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(StudyError, match=r"arrays of all 3 trials are gone or damaged\. Are they elsewhere"):
        resumed(interrupted[0], tmp_path, lambda study: shutil.rmtree(study / "artifacts"))
