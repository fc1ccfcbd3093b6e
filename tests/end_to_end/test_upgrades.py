"""Studies of every release are opened: listed, shown, reported, resumed; of other formats one line says why not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.storages import RDBStorage

import ranktune
from ranktune.command_line.pages import write as write_report
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.terminal.listing import listing
from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.models.base import load_model
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.compatibility import saved_space
from ranktune.tuner.study.home import FORMAT, StudyFolder, all_folders, find_folder
from tests.support.engine_samples import SOLVERS, graded
from tests.support.released_studies import ASSETS, FINISHED, INTERRUPTED_AT, TRIALS, UNFINISHED, unpacked, write
from tests.support.reports import unpacked_page

RELEASES = sorted(ASSETS.glob("format-*"))

NEWER = {"digests", "explanations.json", "facts.json", "fitted.npz", "portfolio.json", "reference.npz"}
"""Files that the release did not write."""


@pytest.fixture(params=RELEASES, ids=lambda release: release.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path / "home")


def numbers(folder: Path) -> list[tuple[int, dict[str, Any], float | None]]:
    return [(trial.number, dict(trial.params), trial.value) for trial in open_study(folder).splits[0].trials]


def near(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    """The same parameters, numbers up to rounding: a release was written on another kind of machine."""
    return len(rows) == len(wanted) and all(
        row.keys() == other.keys()
        and all(value == (pytest.approx(other[key], rel=1e-9) if isinstance(value, float) else other[key])
                for key, value in row.items())
        for row, other in zip(rows, wanted, strict=True)
    )  # fmt: skip


def test_there_are_studies_of_the_present_format_and_they_are_small() -> None:
    assert ASSETS / f"format-{FORMAT}" in RELEASES
    sizes = [file.stat().st_size for release in RELEASES for file in release.iterdir()]
    assert sum(sizes) < 200_000 * len(RELEASES)


def test_the_studies_of_a_release_are_listed_and_shown(home: Path) -> None:
    lines = {line["study"]: line for line in listing(home)}
    assert {name: (line["state"], line["done"], line["trials"]) for name, line in lines.items()} == {
        FINISHED: ("finished", TRIALS, TRIALS),
        UNFINISHED: ("interrupted", INTERRUPTED_AT, TRIALS),
    }
    result = load_result(home / FINISHED / "result.json")
    assert lines[FINISHED]["solver"] == result.best.solver
    assert lines[UNFINISHED]["best"] == max(value or 0.0 for _, _, value in numbers(home / UNFINISHED))
    assert not any(folder.is_running() for folder in all_folders(home))


def test_the_models_of_a_release_rank(home: Path) -> None:
    test = graded(12, 2)
    model = load_model(home / FINISHED / "model.json")
    result = load_result(home / FINISHED / "result.json")
    assert ranktune.solvers.metrics.metrics.parse_metric("ndcg@10").mean(model.predict(test), test) == pytest.approx(
        result.test_metrics["ndcg@10"], abs=1e-9
    )
    assert all(np.isfinite(load_model(file).predict(test)).all() for file in (home / FINISHED / "models").iterdir())


@pytest.mark.parametrize("name", [FINISHED, UNFINISHED])
def test_the_pages_of_a_release_are_made(home: Path, name: str) -> None:
    page = unpacked_page(write_report(name, home, None).read_text())
    assert "RankSVM" in page and name in page


@pytest.mark.parametrize("name", [FINISHED, UNFINISHED])
def test_optuna_reads_the_records_of_a_release(home: Path, name: str) -> None:
    storage = RDBStorage(f"sqlite:///{home / name / 'record.db'}")
    study = optuna.load_study(study_name=name, storage=storage)
    assert len(study.trials) == (TRIALS if name == FINISHED else INTERRUPTED_AT)
    assert study.best_value == max(value or 0.0 for _, _, value in numbers(home / name))
    storage.engine.dispose()


def test_the_unfinished_study_of_a_release_is_resumed(home: Path) -> None:
    before = numbers(home / UNFINISHED)
    result = ranktune.resume(UNFINISHED, home=home, jobs=1)
    after = numbers(home / UNFINISHED)
    assert result.trials == TRIALS
    assert after[:INTERRUPTED_AT] == before
    assert [number for number, _, _ in after] == list(range(TRIALS))
    finished = load_result(home / FINISHED / "result.json")
    of_release = numbers(home / FINISHED)
    assert near([params for _, params, _ in before], [params for _, params, _ in of_release[:INTERRUPTED_AT]])
    assert all(value is not None for _, _, value in after)  # the other suggestions follow the scores of today's solvers
    assert result.best.solver in {row.solver for row in finished.leaderboard}  # the choice is that of today


def test_the_finished_study_of_a_release_gets_more_trials_of_the_same_data_only(home: Path) -> None:
    folder = find_folder(home, FINISHED)
    declared = folder.study()
    options: dict[str, Any] = {
        "also": declared.also, "solvers": declared.solvers, "sampler": declared.sampler, "trials": TRIALS + 2,
        "name": FINISHED, "home": home, "jobs": 1,
    }  # fmt: skip
    with pytest.raises(StudyError, match="other data"):
        ranktune.tune(graded(24, 7), vali=graded(12, 1), test=graded(12, 2), **options)
    result = ranktune.tune(graded(24, 0), vali=graded(12, 1), test=graded(12, 2), **options)
    assert result.trials == TRIALS + 2


@pytest.mark.parametrize("release", ["0.2.0", "0.2.1"])
def test_studies_of_trees_of_a_release_go_on_and_a_pass_says_why_it_cannot(release: str, tmp_path: Path) -> None:
    home = unpacked(ASSETS / release, tmp_path) / "studies"
    states = {line["study"]: (line["state"], line["done"]) for line in listing(home)}
    assert states == {FINISHED: ("finished", 4), UNFINISHED: ("interrupted", INTERRUPTED_AT)}
    test, metric = graded(12, 2), ranktune.solvers.metrics.metrics.parse_metric("ndcg@10")
    delivered = load_result(home / FINISHED / "result.json").test_metrics["ndcg@10"]
    assert metric.mean(load_model(home / FINISHED / "model.json").predict(test), test) == pytest.approx(delivered)
    assert all(
        np.isfinite(load_model(file).predict(test)).all() for file in (home / FINISHED / "models").glob("*.json")
    )
    before = numbers(home / UNFINISHED)
    assert {params.keys() >= {"trees"} for _, params, _ in before} == {True, False}  # of both solvers
    assert ranktune.resume(UNFINISHED, home=home, jobs=1).trials == 8
    after = numbers(home / UNFINISHED)
    assert after[:INTERRUPTED_AT] == before and len(after) == 8
    for name in (FINISHED, UNFINISHED):
        assert "LambdaMART" in unpacked_page(write_report(name, home, None).read_text())
    with pytest.raises(StudyError, match=r"before 0\.2\.2 .*: remove such a file, and the pass begins"):
        ranktune.one_pass(graded(3000, 0), folder=home / "pass", configurations=4, survivors=2)


def test_a_study_of_another_search_space_goes_on_with_its_own(tmp_path: Path) -> None:
    """LambdaMART of 0.1.0 searched other ranges, and had fewer parameters."""
    home = unpacked(ASSETS / "0.1.0", tmp_path)
    folder, before = StudyFolder(home / "boosted"), numbers(home / "boosted")
    searched = json.loads(folder.declaration.read_text())["space"]
    with pytest.raises(StudyError, match=r"'boosted', run by RankTune 0\.1\.0, exists .*: 'LambdaMART.trees' is"):
        folder.check_settings(folder.study())
    assert ranktune.resume("boosted", trials=8, home=home, jobs=1).trials == 8
    after, space = numbers(home / "boosted"), folder.study().union_space()
    assert after[: len(before)] == before
    assert all(value is not None for _, _, value in after)
    known = {name: saved for name, saved in saved_space(space).items() if name in searched}
    assert known == searched
    new = {name.partition(".")[2] for name in space.distributions} - {name.partition(".")[2] for name in searched}
    assert {"within_query", "decay"} <= new
    for _, params, _ in after[len(before) :]:
        assert {name: params[name] for name in new & params.keys()} == {
            name: LambdaMART().get_params()[name] for name in new & params.keys()
        }


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (1, "has format 1, of a RankTune that validated trials in another way"),
        (FORMAT + 1, f"has format {FORMAT + 1}, of a newer RankTune; this one reads {FORMAT}. Upgrade"),
        ("2", "is not a declaration of a study"),
        (None, "is not a declaration of a study"),
        (True, "is not a declaration of a study"),
    ],
)
def test_another_format_is_explained_in_one_line(tmp_path: Path, written: Any, said: str) -> None:
    home = unpacked(ASSETS / f"format-{FORMAT}", tmp_path)
    file = home / UNFINISHED / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": written}))
    before = file.read_bytes()
    for use in (
        lambda: ranktune.resume(UNFINISHED, home=home, jobs=1),
        lambda: ranktune.tune(graded(24, 0), name=UNFINISHED, home=home, jobs=1),
        lambda: StudyFolder(home / UNFINISHED).study(),
    ):
        with pytest.raises(StudyError) as caught:
            use()
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
    states = {line["study"]: line["state"] for line in listing(home)}
    assert states[FINISHED] == "finished"
    assert said in states[UNFINISHED]
    assert file.read_bytes() == before


def test_a_declaration_that_this_version_cannot_run_is_explained(tmp_path: Path) -> None:
    home = unpacked(ASSETS / f"format-{FORMAT}", tmp_path)
    file = home / UNFINISHED / "study.json"
    declared = json.loads(file.read_text())
    for change in ({"solvers": ["Withdrawn"]}, {"space": {"RankSVM.gone": 1}}, {"colour": "red"}, {"trials": "many"}):
        file.write_text(json.dumps(declared | {"study": declared["study"] | change}))
        with pytest.raises(StudyError, match=r"declares what this version of RankTune cannot run: .*wrote it\.$"):
            StudyFolder(home / UNFINISHED).study()
    assert listing(home)[0]["state"].startswith(("finished", "unreadable"))


def test_the_studies_can_be_rewritten(tmp_path: Path) -> None:
    write(tmp_path / "format")
    home = unpacked(tmp_path / "format", tmp_path / "home")
    released = unpacked(ASSETS / f"format-{FORMAT}", tmp_path / "released")
    defaults = len(SOLVERS)
    for name in (FINISHED, UNFINISHED):
        result, wanted = numbers(home / name), numbers(released / name)
        assert [number for number, _, _ in result] == [number for number, _, _ in wanted]
        # each solver begins with its defaults; what is tried then is the choice of a version
        assert near([params for _, params, _ in result[:defaults]], [params for _, params, _ in wanted[:defaults]])
        assert [value for _, _, value in result[:defaults]] == pytest.approx(
            [value for _, _, value in wanted[:defaults]], abs=1e-3
        )
        files = [{file.name for file in (where / name).iterdir()} for where in (home, released)]
        assert files[0] - NEWER == files[1]
