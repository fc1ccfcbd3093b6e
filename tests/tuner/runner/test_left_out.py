"""The end of a study: explanations, pages and copies that fail are said and left out, and the result is saved."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import ranktune
from ranktune.command_line.study_commands import _show
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views import progress as page
from ranktune.dashboards.web.page import write_report
from ranktune.solvers.core.errors import DataError, RankTuneWarning, StudyError, or_left_out
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.evaluation.evaluate import EvaluationRun
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.runner import choice_stages, final_stages
from ranktune.tuner.runner import engine as board
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.runner.final_stages import STAGES
from ranktune.tuner.runner.stage import Stage
from ranktune.tuner.selection import explaining, finals, saving
from ranktune.tuner.selection.evidence import EXPLANATIONS, read_explanations
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.study.events import read_events
from tests.support.reports import unpacked_page

LIST_SCALED = {
    "ElasticRank.optimizer": "psgd", "ElasticRank.threshold": 1.0, "ElasticRank.scaling": "list",
    "ElasticRank.eta0": 0.01, "ElasticRank.passes": 1,
}  # fmt: skip
"""Weights below 1 are set to 0 after each ten queries, of which random grades leave none."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Random grades of 25 queries, on which no feature is of use: 20 are left without those of the test."""
    generator = np.random.default_rng(0)
    X, grades = generator.normal(size=(200, 3)), generator.integers(0, 3, size=200)
    rows = [f"q{k // 8},{grade},{','.join(map(str, x))}" for k, (grade, x) in enumerate(zip(grades, X, strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(["qid,grade,a,b,c", *rows]))
    return tmp_path / "data.csv"


def tuned(data: Path, **more: Any) -> ranktune.StudyResult:
    options = {"name": "s", "solvers": ["RidgeRanker"], "trials": 2, "sampler": "random", "jobs": 1, **more}
    return ranktune.tune(data, home=data.parent, **options)


def failing(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("by design")


def test_a_study_whose_model_uses_no_feature_ends_and_is_resumed(data: Path) -> None:
    result = tuned(data, solvers=["ElasticRank"], space=LIST_SCALED)
    model = result.best_model
    assert isinstance(model, LinearModel) and model.list_scaling and model.nonzeros == 0
    actual = read_explanations(data.parent / "s" / EXPLANATIONS)
    assert (actual.importance, actual.effects, actual.closely) == ((), (), ())
    assert actual.spreads == {"ElasticRank": {"list": {}}}
    assert write_report(data.parent / "s", data.parent / "out.html").exists()
    assert ranktune.resume("s", trials=3, home=data.parent, jobs=1).trials == 3
    assert ranktune.explain(model, data)["features"] == []


REPLACEABLE = [stage for stage in STAGES if stage.instead is not None]


def broken(*stages: Stage[Any]) -> partial[StudyRun]:
    """A run of a study whose given stages fail."""
    return partial(StudyRun, stages=tuple(replace(each, run=failing) if each in stages else each for each in STAGES))


@pytest.mark.parametrize(
    "failed", [*([stage] for stage in REPLACEABLE), REPLACEABLE], ids=lambda stages: stages[-1].name
)
def test_stages_that_fail_are_said_and_left_out(
    failed: list[Stage[Any]], data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a model, and the causes are in all that shows it; where all stages fail, also of a resumed study."""
    monkeypatch.setattr("ranktune.session.StudyRun", broken(*failed))
    wanted = [stage.instead.what for stage in failed if stage.instead is not None]
    plan: dict[str, Any] = {"plan": "nested", "outer": 2} if len(failed) > 1 else {}
    places = ["outer1", "outer2", "all"] if plan else [""]
    given: dict[str, Any] = {"solvers": ["RidgeRanker", "RankSVM"], "baseline": "column:a", **plan}
    for trials in (3, 4) if plan else (3,):
        with pytest.warns(RankTuneWarning, match=r"by design\.") as said:
            result = tuned(data, trials=trials, **given)
        assert {str(line.message).partition(" failed and")[0] for line in said} >= set(wanted)
        assert [(missing.split, missing.what) for missing in result.left_out] == [
            (p, w) for p in places for w in wanted
        ]
        assert all("in failing" in missing.trace for missing in result.left_out)
        assert np.isfinite(result.best_model.predict(ranktune.read(data))).all()
    logged = [event for event in read_events(data.parent / "s") if event["event"] == "left_out"]
    assert [(e["name"], e["trace"]) for e in logged[-len(result.left_out) :]] == [
        (m.what, m.trace) for m in result.left_out
    ]
    _show(load_result(data.parent / "s" / "result.json"), as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"Left out: {what}{' (outer1, outer2, all)' if plan else ''}. Zero" in shown for what in wanted)
    page = unpacked_page(write_report(data.parent / "s", data.parent / "out.html").read_text())
    assert all(what in page for what in wanted)


PIECES: dict[str, tuple[object, str]] = {
    "the comparison of models": (board, "leaderboard"),
    "the gain over the baseline": (board, "gain_over"),
    "the gain of tuning": (board, "tuning_gain"),
    "the interval expected on test queries": (board, "expected_on_test"),
    "what the systems cost": (board, "restriction"),
}


@pytest.mark.parametrize("failed", [[*PIECES][:1], [*PIECES][1:]], ids=["comparison", "others"])
def test_what_fails_of_the_result_is_left_out(failed: list[str], data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for what in failed:
        monkeypatch.setattr(*PIECES[what], failing)
    with pytest.warns(RankTuneWarning) as said:
        result = tuned(data, baseline="column:a", serve=["solr"])
    assert {missing.what for missing in result.left_out} == {*failed}
    assert {str(line.message).partition(" failed and is left out")[0] for line in said} == {*failed}
    _show(load_result(data.parent / "s" / "result.json"), as_json=False)
    write_report(data.parent / "s", data.parent / "out.html")


def test_the_model_of_a_trial_stands_for_a_refit_that_fails(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no solver fits all queries at once, as for want of memory, one fits those of a fold as its trial did."""
    fitted = Final._fitted

    def fit(self: Final, run: EvaluationRun) -> Model:
        if self.on_everything:
            raise MemoryError("all queries")
        return fitted(self, run)

    monkeypatch.setattr(Final, "_fitted", fit)
    with pytest.warns(RankTuneWarning, match="refitting failed and is left out: no candidate could be refitted: Mem"):
        result = tuned(data)
    assert len(result.left_out) == len(result.leaderboard) == 1
    assert result.best_model.solver == "RidgeRanker"


def test_a_blend_that_cannot_be_built_or_saved_leaves_single_models(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name in ((finals, "_spread"), (BlendModel, "save")):
        with monkeypatch.context() as patch, pytest.warns(RankTuneWarning, match="Blend failed"):
            patch.setattr(place, name, failing)
            result = tuned(data, solvers=["RankSVM", "GBDTRanker"], trials=6, name=name)
        assert {row.solver for row in result.leaderboard} - {"TreeBlend"} == {"RankSVM", "GBDTRanker"}
        assert result.best_model.solver == result.best.solver


FAILURES: dict[str, tuple[object, str]] = {
    "the importance of features": (explaining, "_importance"),
    "the effect of features": (explaining, "partial_effects"),
    "the spread of contributions": (explaining, "contribution_spread"),
    "the explanation of single queries": (explaining, "contributions"),
    "the explanation of the models": (final_stages, "save_explanations"),
    "what each model scores by query": (saving, "_evidence"),
    "the estimate": (choice_stages, "estimate"),
}


@pytest.mark.parametrize("failed", [[*FAILURES][k:m] for k, m in ((0, 1), (1, 4), (4, 7))], ids=lambda names: names[0])
def test_what_fails_at_the_end_is_said_and_left_out(
    failed: list[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        for what in failed:
            broken.setattr(*FAILURES[what], failing)
        with pytest.warns(RankTuneWarning) as said:
            result = tuned(data)
    lines = {str(warning.message) for warning in said}
    begins = " failed and is left out: ZeroDivisionError in test_left_out.py, line "
    assert {line.partition(begins)[0] for line in lines} == {*failed}
    assert all(line.endswith(": by design. The result is saved without it.") for line in lines)
    assert json.loads((data.parent / "s" / "result.json").read_text())["best"]["solver"] == result.best.solver
    assert open_study(data.parent / "s").splits[0].damage == ""
    write_report(data.parent / "s", data.parent / "out.html")
    assert ranktune.resume("s", trials=3, home=data.parent, jobs=1).trials == 3
    assert read_explanations(data.parent / "s" / EXPLANATIONS).spreads["RidgeRanker"]


def test_the_explanations_of_a_former_model_are_removed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned(data)
    monkeypatch.setattr(final_stages, "save_explanations", failing)
    with pytest.warns(RankTuneWarning, match="the explanation of the models failed"):
        ranktune.resume("s", trials=3, home=data.parent, jobs=1)
    (split,) = open_study(data.parent / "s").splits
    assert split.explanations is None and split.evidence is not None and split.damage == ""


def test_a_page_that_fails_leaves_the_others(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned(data)
    monkeypatch.setattr(page, "trials", failing)
    with pytest.warns(RankTuneWarning, match="the page 'Trials' of the report failed and is left out"):
        assert write_report(data.parent / "s", data.parent / "out.html").stat().st_size > 10_000


@pytest.mark.parametrize("error", [StudyError("no room"), KeyboardInterrupt()])
def test_errors_of_the_study_and_interrupts_are_raised(
    error: BaseException, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(explaining, "write_explanations", ended)
    with pytest.raises(type(error)):
        tuned(data)
    assert not load_result(data.parent / "s" / "result.json").is_complete


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            DataError("the data are bad: give others."),
            "the page failed and is left out: the data are bad: give others. N",
        ),
        (ValueError(), r"the page failed and is left out: ValueError in test_left_out.py, line \d+. N"),
        (ValueError("x" * 999), r"line \d+: x{297}. N"),
    ],
)
def test_the_cause_is_said(error: Exception, said: str) -> None:
    def make() -> NoReturn:
        raise error

    with pytest.warns(RankTuneWarning, match=said):
        assert or_left_out("the page", make, 3, "N") == 3


def test_what_does_not_fail_is_returned() -> None:
    assert or_left_out("the page", lambda: 2, 3) == 2
