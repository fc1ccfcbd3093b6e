"""Which model is the current one: only retune moves it, each in one step, and say so."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.daily.retuning import Retuned, retune
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.drift import watch
from ranktune.tuner.retuning import versions
from ranktune.tuner.retuning.decision import RetuneDecision, verdict_of
from ranktune.tuner.retuning.versions import CURRENT, DECISION, current
from ranktune.tuner.runner import retuning_stage
from ranktune.tuner.selection.results import Result
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.study.lock import owning
from tests.support.commands import called, succeeded, write_letor

PROBE = np.random.default_rng(9).normal(size=(50, 4))


def decide(patch: pytest.MonkeyPatch, decision: str) -> None:
    """Let the next versions end with this decision, as they do on data with another truth or after more trials."""

    def decided(*args: Any) -> RetuneDecision:
        return replace(verdict_of(*args), decision=decision)

    patch.setattr(retuning_stage, "verdict_of", decided)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, files = tmp_path_factory.mktemp("days"), list[Path]()
    for seed in range(3):
        X, noise = np.random.default_rng(seed).normal(size=(300, 4)), np.random.default_rng(seed + 9).normal(size=300)
        grades = np.digitize(X @ np.roll([1.0, 1.0, 0.0, 0.0], seed) + noise, [0.5, 1.5])
        files.append(write_letor(folder / f"{seed}.txt", X, grades, np.repeat(np.arange(30), 10)))
    return files


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, days: list[Path]) -> Path:
    home = tmp_path_factory.mktemp("home")
    ranktune.tune(
        days[0], name="shop", solvers=["RidgeRanker", "RankSVM"], trials=4, home=home,
    )  # fmt: skip
    return home


@pytest.fixture(scope="module")
def made(tuned: Path, days: list[Path]) -> Callable[[str], Path]:

    @cache
    def make(decision: str) -> Path:
        home = Path(shutil.copytree(tuned, tuned.with_name(f"{tuned.name}-{decision}")))
        with pytest.MonkeyPatch.context() as patch:
            decide(patch, decision)
            assert again(home, days[1], "v2").decision == decision
        return home

    return make


@pytest.fixture
def decided(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a home whose study has a version v2 that ended with a decision."""
    return lambda decision: Path(shutil.copytree(made(decision), tmp_path / decision))


def again(home: Path, data: Path, version: str) -> Retuned:
    return retune("shop", data, version=version, home=home)


def resumed(home: Path, name: str, trials: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Give a study more trials, and return what is shown."""
    capsys.readouterr()
    ranktune.resume(name, trials=trials, home=home, verbose=True)
    return capsys.readouterr().err


def scores(home: Path, name: str = "shop") -> Floats:
    """Return what the current model of a study scores, as the commands find it by its name."""
    return ranktune.load_model(versions.model_file(home, name)).predict(PROBE)


def marked(home: Path) -> list[str]:
    found = json.loads(succeeded("retune", "shop", "--history", "--home", home, "--json"))["versions"]
    return [line["version"] for line in found if line["current"]]


@pytest.mark.parametrize(
    ("first", "then", "back"),
    [("replace", "refit", False), ("refit", "replace", True), ("keep", "replace", False)],
)
def test_resume_leaves_what_is_current(
    first: str, then: str, back: bool, decided: Callable[[str], Path], days: list[Path],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Whatever a resumed version decides, and though its files are replaced; so with the first study."""
    home = decided(first)
    if back:
        assert succeeded("retune", "shop", "--rollback", "shop", "--home", home).startswith(
            "The current model of shop is that of"
        )
    at, before = ["shop" if back or first == "keep" else "v2"], scores(home)
    assert marked(home) == at
    decide(monkeypatch, then)
    for name in ("v2",) if back else ("v2", "shop"):
        old = (home / name / "model.json").read_bytes()
        line = next(line for line in resumed(home, name, 7, capsys).splitlines() if "current model" in line)
        assert (
            f"is that of {at[0]}: " in line and f"`ranktune retune shop --rollback {name}` makes that of {name}" in line
        )
        assert (home / name / "model.json").read_bytes() != old
        assert marked(home) == at
        np.testing.assert_array_equal(scores(home), before)
    assert json.loads((home / "v2" / DECISION).read_text())["decision"] == then
    assert watch("shop", days[1], home=home, save=False).quality is not None
    succeeded("retune", "shop", "--rollback", "v2", "--home", home)
    delivered = {"refit": "refit.json", "replace": "model.json"}[then]
    np.testing.assert_array_equal(scores(home), ranktune.load_model(home / "v2" / delivered).predict(PROBE))


@pytest.mark.parametrize("decision", ["replace", "refit", "keep"])
def test_a_retuning_that_is_given_again_says_what_is_true(
    decision: str, decided: Callable[[str], Path], days: list[Path]
) -> None:
    home = decided(decision)
    command = ("retune", "shop", days[1], "--as", "v2", "--home", home)
    delivered = {"keep": "shop/model.json", "refit": "v2/refit.json", "replace": "v2/model.json"}[decision]
    repeated = called(*command)
    current = f"The current model of shop is that of {delivered.partition('/')[0]}: {home / delivered}"
    assert current in repeated.stdout.replace("\n", "")
    succeeded("retune", "shop", "--rollback", "shop", "--home", home)
    answer = called(*command, "--json")
    found = json.loads(answer.stdout)
    assert answer.exit_code == repeated.exit_code and found["decision"] == decision
    assert found["model"] == str(home / "shop" / "model.json") and marked(home) == ["shop"]
    assert found["current"].startswith("The current model of shop is that of shop: ")
    assert ("since the rollback at 20" in found["current"]) is (decision != "keep")
    assert found["current"] in answer.stderr


def test_a_version_that_is_run_is_no_aim_of_a_rollback(decided: Callable[[str], Path]) -> None:
    home = decided("replace")
    before = asdict(versions.make_current(home, "shop", "shop"))
    shutil.rmtree(home / "v2" / versions.DELIVERED)  # as where its model is another one by now
    with owning(home / "v2"):  # as a process that resumes it does
        with pytest.raises(StudyError, match=r"'v2' is being run by process .*nothing was changed"):
            versions.make_current(home, "shop", "v2")
        assert asdict(current(home, "shop")) == before
    assert versions.make_current(home, "shop", "v2").version == "v2"


def rolled_back(home: Path, days: list[Path]) -> str:
    succeeded("retune", "shop", "--rollback", "shop", "--home", home)
    return "shop"


def to_another(home: Path, days: list[Path]) -> str:
    succeeded("retune", "shop", "--rollback", "v2", "--home", home)
    return "v2"


def retuned(home: Path, days: list[Path]) -> str:
    again(home, days[0], "other")
    return "other"


@pytest.mark.parametrize("meanwhile", [rolled_back, to_another, retuned])
def test_a_decision_moves_only_what_it_was_made_against(
    meanwhile: Callable[[Path, list[Path]], str],
    decided: Callable[[str], Path],
    days: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = decided("replace")
    rolled_back(home, days)
    at = list[str]()

    def moved(*args: Any) -> RetuneDecision:
        decide(monkeypatch, "replace")
        at.append(meanwhile(home, days))
        return replace(verdict_of(*args), decision="replace")

    monkeypatch.setattr(retuning_stage, "verdict_of", moved)
    done = again(home, days[2], "v3")
    assert done.decision == "replace" and marked(home) == at
    assert f"is that of {at[0]}: {done.model}" in done.current and done.model.parent == home / at[0]
    assert done.current.endswith("`ranktune retune shop --rollback v3` makes that of v3 current.")
    succeeded("retune", "shop", "--rollback", "v3", "--home", home)
    assert marked(home) == ["v3"]


def at_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Result, "save", killed)


def at_pointer(patch: pytest.MonkeyPatch) -> None:
    def seal(path: Path, content: str) -> None:
        if path.name == CURRENT and '"v2"' in content:
            killed()
        write_sealed(path, content)

    patch.setattr(versions, "write_sealed", seal)


def at_copy(patch: pytest.MonkeyPatch) -> None:
    kept = versions.with_copy
    patch.setattr(versions, "with_copy", lambda home, found: killed() if found.version == "v2" else kept(home, found))


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", [at_result, at_copy, at_pointer])
def test_a_version_is_complete_before_it_is_current(
    moment: Callable[[pytest.MonkeyPatch], None], home: Path, days: list[Path],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    decide(monkeypatch, "refit")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        moment(patch)
        again(home, days[1], "v2")
    assert marked(home) == ["shop"] and watch("shop", days[1], home=home, save=False).quality is not None
    if moment is at_result:
        with pytest.raises(StudyError, match="no result yet"):
            versions.make_current(home, "shop", "v2")
    assert "makes that of v2 current" in resumed(home, "v2", 6, capsys)
    assert marked(home) == ["shop"]
    answer = called("retune", "shop", days[1], "--as", "v2", "--home", home)
    assert answer.exit_code == 10 and marked(home) == ["v2"] and "is that of v2" in answer.stdout.replace("\n", "")


def test_what_an_earlier_release_wrote_is_read(
    home: Path,
    decided: Callable[[str], Path],
    days: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "current model" not in resumed(home, "shop", 5, capsys), "it was never retuned"
    home = decided("replace")
    kept, made = asdict(current(home, "shop")), json.loads((home / "v2" / DECISION).read_text())
    for found in (kept, made["incumbent"], made["delivered"]):
        for name in ("copy", "since", "version")[: 3 if found is not kept else 2]:
            found.pop(name, None)
    write_sealed(home / "shop" / CURRENT, json.dumps(kept))
    write_sealed(home / "v2" / DECISION, json.dumps(made))
    shutil.rmtree(home / "shop" / "delivered")
    shutil.rmtree(home / "v2" / "delivered")
    assert marked(home) == ["v2"] and current(home, "shop").path(home) == home / "v2" / "model.json"
    succeeded("retune", "shop", "--rollback", "shop", "--home", home)
    answer = called("retune", "shop", days[1], "--as", "v2", "--home", home, "--json")
    assert "is that of shop" in json.loads(answer.stdout)["current"] and marked(home) == ["shop"]
    os.remove(home / "shop" / CURRENT)
    with pytest.raises(StudyError, match=r"missing.*retune shop --rollback"):
        current(home, "shop")
