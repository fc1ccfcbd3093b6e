"""The list of stages: their order, what they need, one replaced, and a study that goes on after a stop."""

import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import LeftOut, RankTuneWarning, StudyError
from ranktune.solvers.core.files.archives import read_archive
from ranktune.solvers.models.base import load_model
from ranktune.tuner.evaluation.evaluate import EvaluationRun
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.runner import choice_stages
from ranktune.tuner.runner.choice_stages import BLEND, RESCORE, SAVE
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.runner.final_stages import REPORTED, STAGES
from ranktune.tuner.runner.stage import Instead, SplitState, Stage, run_stages
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.selection.finals import FinalChoice, best_by_solver
from ranktune.tuner.selection.rescoring import RESCORED
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.selection.rows import LeaderboardRow
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers.executor import Executor, InProcess, Processes
from tests.support.engine_samples import graded, tuned

FIRST = Stage("first", lambda state: 2, text=lambda state: None)
SECOND = Stage("second", lambda state: 3 * state[FIRST], (FIRST,), lambda state: None)


def _silent(_: SplitState) -> None:
    """What a stage without a text shows."""


def nothing() -> SplitState:
    """A state before any stage, of stages that look at results alone."""
    unused: Any = None
    return SplitState(unused, unused, unused, unused, 0.0, 1.0)


def test_a_stage_has_the_results_of_those_it_needs() -> None:
    state = run_stages([FIRST, SECOND], nothing(), keep=[SECOND])
    assert state[SECOND] == 6
    assert set(state.results) == {"second"}  # others are dropped once nothing needs them
    assert set(state.seconds) == {"first", "second"}


def test_a_stage_before_what_it_needs_is_refused_before_anything_runs() -> None:
    ran = []
    begin = Stage("begin", lambda state: ran.append("begin"))
    with pytest.raises(StudyError, match="stage 'second' needs first"):
        run_stages([begin, SECOND, FIRST], nothing())
    assert ran == []


@pytest.mark.parametrize("in_process", [True, False])
def test_a_stage_beside_others_ends_before_those_that_need_it(in_process: bool) -> None:
    def failing(_: SplitState) -> bool:
        went.wait(0.0 if in_process else 60.0)
        raise ValueError(went.is_set())

    went, logged, unused = threading.Event(), list[LeftOut](), cast(Any, None)
    executor: Executor = InProcess() if in_process else Processes(2)
    session: Any = SimpleNamespace(executor=executor, log=logged.append)
    state = SplitState(session, cast(Any, SimpleNamespace(name="outer1")), unused, unused, 0.0, 1.0)
    slow = Stage("slow", failing, (), _silent, instead=Instead("it", lambda _: went.is_set()), beside=True)
    quick: Stage[None] = Stage("quick", lambda _: went.set(), (), _silent)
    last = Stage("last", lambda state: state[slow], (slow,), _silent)
    with pytest.warns(RankTuneWarning, match=f"{not in_process}"):
        ended = run_stages([slow, quick, last], state, keep=[last])
    assert ended[last] is not in_process and went.is_set()
    assert list(ended.seconds) == ["slow", "quick", "last"]
    assert [(each.what, each.split) for each in ended.left_out] == [("it", "outer1")] and ended.left_out == logged


def test_the_stages_of_a_study_are_in_order_and_timed(tmp_path: Path) -> None:
    result = tuned(tmp_path, test=graded(20, 1))
    assert list(result.stages) == [stage.name for stage in STAGES]
    assert 0.0 < sum(result.stages.values()) <= result.seconds + 0.01
    names = [event["name"] for event in read_events(tmp_path / "s") if event["event"] == "stage"]
    assert names == ["reading", "search", "rescoring", "blending", "refitting", "saving", "answer", "beginning"]
    known = {stage.name for stage in STAGES}
    assert all(need.name in known for stage in STAGES for need in (*stage.needs, *REPORTED))
    assert Path(result.model) == (tmp_path / "s" / "model.json").resolve()
    assert SAVE in REPORTED and np.isfinite(result.best_model.predict(graded(5, 2))).all()


def test_a_stage_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def single(state: SplitState) -> FinalChoice:
        result = state[RESCORE]
        best = best_by_solver(result)
        return FinalChoice(best, best[0], best)

    alone = Stage("blending", single, BLEND.needs)
    stages = tuple(alone if stage == BLEND else stage for stage in STAGES)
    monkeypatch.setattr("ranktune.session.StudyRun", partial(StudyRun, stages=stages))
    assert not any(row.is_blend for row in tuned(tmp_path, test=graded(20, 1)).leaderboard)


def test_trials_rescored_before_a_stop_are_not_rescored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(choice_stages, "blended_candidates", stopped)
        with pytest.raises(KeyboardInterrupt):
            tuned(tmp_path, test=graded(20, 1), timeout=600.0, solvers=("RankSVM", "RidgeRanker"), trials=4)
    kept = read_archive(tmp_path / "s" / RESCORED)
    means = [np.nanmean(kept[name].astype(np.float64)) for name in kept if name.startswith("again")]
    monkeypatch.setattr(choice_stages, "rescored", stopped)
    resumed = ranktune.resume("s", home=tmp_path, jobs=1)
    assert len(means) > 1
    for row in (row for row in resumed.leaderboard if not row.is_blend):
        assert row.again is not None and min(abs(row.again.mean - mean) for mean in means) < 1e-12
    assert not (tmp_path / "s" / RESCORED).exists()


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_a_study_stopped_after_its_answer_ends_as_another_without_fitting_the_choice_again(
    timeout: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stops(Silent):
        def answer(self, result: Result) -> None:
            raise KeyboardInterrupt

    given: dict[str, Any] = {"test": graded(20, 1), "solvers": ("RankSVM", "RidgeRanker"), "trials": 5}
    with pytest.raises(KeyboardInterrupt, match="`ranktune resume s` compares it with the others"):
        tuned(tmp_path, **given, timeout=timeout, progress=Stops())
    answer = load_result(tmp_path / "s" / "result.json")
    assert not answer.is_complete and len(answer.leaderboard) == 1 and answer.tuning is None
    scores = load_model(answer.model).predict(graded(5, 2))
    said = answer.conclusion
    assert "goes on with that" in said.next[-1]
    fits, fit = list[object](), Final._fitted

    def counted(self: Final, run: EvaluationRun) -> Any:
        fits.append(run.task)
        return fit(self, run)

    monkeypatch.setattr(Final, "_fitted", counted)
    with monkeypatch.context() as patch:
        patch.setattr(TrialLoop, "run", lambda _: pytest.fail("the search goes on"))
        resumed = ranktune.resume("s", home=tmp_path, jobs=1)
    assert resumed.is_complete and len(resumed.leaderboard) > 1 and resumed.trials == 5
    assert said.lines[:3] == resumed.conclusion.lines[:3]
    np.testing.assert_array_equal(resumed.best_model.predict(graded(5, 2)), scores)
    again = len(fits)
    if timeout is None:
        assert ranktune.resume("s", home=tmp_path, jobs=1) == resumed and len(fits) == again
    whole = tuned(tmp_path, **given, name="whole")
    assert again < len(fits) - again
    assert [*map(of_row, whole.leaderboard)] == [*map(of_row, resumed.leaderboard)] or timeout is not None
    assert not [*(tmp_path / "s").glob("answered*")]


def of_row(row: LeaderboardRow) -> tuple[object, ...]:
    """What of a row does not depend on the time of its fits."""
    return row.solver, row.params, row.vali, row.test, row.p_holm, row.nonzeros
