"""The end of a study keeps its time limit: nothing is fitted twice, and nothing goes on for the sake of a sentence."""

import re
import sys
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

import ranktune
from ranktune import api, cli
from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.models.base import Model
from ranktune.solvers.registry import averages
from ranktune.tuner.evaluation.evaluate import EvaluationRun, evaluate
from ranktune.tuner.evaluation.models import keep_model
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.policy.next_trial import IN_VAIN
from ranktune.tuner.policy.reserve import Durations
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.selection.finals import Candidate, entry_of, task_of
from ranktune.tuner.selection.finished_trials import best_default
from ranktune.tuner.selection.leaderboard import default_model
from ranktune.tuner.storage.attributes import PATH, SECONDS, UNFINISHED
from ranktune.tuner.study import deadline as limits
from ranktune.tuner.study.deadline import AFTERWARDS, Deadline, limits_of_command
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.workers.executor import InProcess
from tests.support.clocks import Clock
from tests.support.engine_samples import graded


@pytest.mark.parametrize(
    "solvers",
    [
        ("BestFeature", "LambdaMART", "GBDTRanker"),
        ("GBDTRanker", "SymmetricGBDT"),
        ("LambdaMART", "SymmetricGBDT"),
    ],
)
def test_no_model_is_fitted_twice_to_all_queries(
    solvers: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits, fit = list[tuple[object, ...]](), Final._fitted

    def noted(self: Final, run: EvaluationRun) -> Model:
        params = {name: value for name, value in run.task.parameters.items() if name != "seeds"}
        fits.append((run.task.solver, *sorted(params.items())))
        return fit(self, run)

    monkeypatch.setattr(Final, "_fitted", noted)
    result = ranktune.tune(
        graded(40, 0), test=graded(20, 1), solvers=solvers, trials=len(solvers), home=tmp_path, jobs=1,
        space={f"{name}.trees": [10, 60] for name in solvers if name.endswith(("GBDTRanker", "GBDT", "MART"))},
    )  # fmt: skip
    assert result.tuning is not None
    assert len(set(fits)) == len(fits) > 0


@dataclass
class Trials:
    """Finished trials in memory."""

    finished: list[FrozenTrial]
    metric: str = "ndcg@10"
    weights: Floats | None = None

    def trials(self) -> list[FrozenTrial]:
        return self.finished

    def per_query(self, trial: FrozenTrial) -> Mapping[str, Floats]:
        return {self.metric: np.full(5, trial.value)}


@pytest.mark.parametrize(
    ("solver", "seconds"), [("GBDTRanker", [4.0, 3.0, 2.0]), ("SymmetricGBDT", [8.0, 1.0]), ("LambdaMART", [5.0] * 4)]
)
def test_a_default_that_has_grown_takes_the_seconds_of_all_its_parts(solver: str, seconds: list[float]) -> None:
    space = Study(solvers=(solver,)).union_space()
    found = []
    for number, own in enumerate(seconds):
        (params,), rounds = space.defaults(), 100 * (number + 1)
        last = number == len(seconds) - 1
        attrs = {
            "number": number,
            SECONDS: own,
            PATH: {"trees": [(rounds, 0.5)]},
            **({} if last else {UNFINISHED: True}),
        }
        trial = create_trial(
            state=TrialState.COMPLETE, value=0.5 + 0.1 * number, params=params | {f"{solver}.trees": rounds},
            distributions={name: space.distributions[name] for name in params}, user_attrs=attrs,
        )  # fmt: skip
        trial.datetime_start, trial.datetime_complete = None, None
        found.append(trial)
    patience = BoostedRanker.patience
    default = best_default(Trials(found), space, {})
    assert default is not None and default.params["trees"] == 100 * len(seconds)
    share = 100 * len(seconds) / (100 * len(seconds) + patience)
    assert default.seconds == pytest.approx(share * sum(seconds))


def never(*_: object) -> Model:
    raise AssertionError("it is fitted")


@pytest.mark.parametrize("solver", ["RidgeRanker", "RankSVM", "GBDTRanker"])
def test_a_default_is_compared_with_what_learned_from_the_same_queries_and_costs_no_time_beyond_the_limit(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(name="s", data="<Queries in memory>", solvers=(solver, "ListNet"))
    parts = graded(40, 0), graded(20, 1), graded(20, 2)
    folder = StudyFolder(tmp_path / "s")
    with folder.owned():
        (problem,) = prepare(study, [QuerySplit("", *parts)], folder)
    problem = problem.by_one_part()
    default, other = (
        Candidate(name, space, 0.5, np.full(20, 0.5), 1, number=place, seconds=1.0)
        for place, (name, space) in enumerate([(solver, {}), ("ListNet", {"l2": 0.5})])
    )
    left = {each: evaluate(Final(on_everything=False), task_of(study, problem, each)) for each in (default, other)}
    whole = evaluate(Final(), task_of(study, problem, other))
    over, chosen = Deadline(time.monotonic() - 1.0), entry_of(study, problem, other, left[other])

    def compared(made: Any, until: Deadline = over) -> Floats | None:
        found = default_model(study, problem, default, chosen, made, InProcess(), until)
        return None if found is None else found.test

    assert compared({other: whole}) is None  # a fit would be after the end
    keep_model(task_of(study, problem, default), left[default].model)
    monkeypatch.setattr(Final, "_fitted", never)
    of_trial = entry_of(study, problem, default, left[default]).test["ndcg@10"]
    np.testing.assert_array_equal(compared({other: replace(left[other], on_everything=False)}), of_trial)
    assert compared({other: whole}) is None
    refitted = replace(whole, model=left[default].model)
    np.testing.assert_array_equal(compared({other: whole, default: refitted}), of_trial)


@dataclass
class Lanes:
    """Functions of known seconds that run on some lanes, by a clock of their own."""

    lanes: int
    now: float = 0.0
    ends: dict[Future[Any], float] = field(default_factory=dict)

    def submit(self, seconds: float) -> Future[Any]:
        free = sorted([*self.ends.values(), *[0.0] * self.lanes])[-self.lanes]
        future = Future[Any]()
        self.ends[future] = free + seconds
        return future

    def wait(self, running: Collection[Future[Any]], timeout: float, _: object) -> None:
        self.now = min(self.now + timeout, *(self.ends[job] for job in running))
        for job in running:
            if self.ends[job] <= self.now and not job.done():
                job.set_result(None)

    def stop(self, job: Future[Any]) -> None:
        job.set_exception(RuntimeError("stopped"))


@pytest.mark.parametrize("seed", range(40))
def test_refits_end_at_the_limit_whatever_they_take(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are wrong by up to a factor of four. Boosting ends at its limit; something is delivered in any case."""
    draw = np.random.default_rng(seed)
    end, jobs = Durations(400, 4000, 40_000, 5, 5, averages), int(draw.integers(1, 5))
    costs = draw.exponential(4.0, draw.integers(1, 9))
    plain = [Candidate("GBDTRanker", {}, 0.5, np.full(9, 0.5), 1, seconds=5.0 / 1.25 * cost) for cost in costs]
    left = float(draw.uniform(-1.0, 1.5 * costs.sum()))
    given = end.refit_limits(plain, jobs, left)
    free = end.free(left, 1, len(plain))
    assert max(given) <= max(free, 0.0)
    assert len(end.refit_limits([replace(plain[0], seconds=0.0)], jobs, left)) == 1
    assert sum(given) <= max(jobs * free, 0.0) + 1e-6 or costs.sum() <= jobs * free
    lanes = Lanes(jobs)
    monkeypatch.setattr(limits, "wait", lanes.wait)
    a_round = 0.05
    took = [min(max(limit, a_round), cost * draw.uniform(0.5, 4.0)) for limit, cost in zip(given, costs, strict=True)]
    jobs_of = [lanes.submit(seconds) for seconds in took]

    def suffices() -> bool:
        return any(job.done() and job.exception() is None for job in jobs_of)

    until = Deadline(free, lambda: lanes.now)
    in_time = until.end(jobs_of, lanes.stop, suffices)
    first = min(took)
    assert all(job.done() for job in jobs_of) and suffices()
    assert lanes.now <= max(free, max(first, a_round)) + limits.POLL + 1e-9
    assert in_time == all(job.exception() is None for job in jobs_of)


@pytest.mark.parametrize(("command", "ago"), [("tune", 7.0), ("run", 0.5), ("tune", 1e4)])
def test_the_limit_of_a_command_counts_from_the_start_of_its_process(
    command: str, ago: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[float]()

    def run(study: Study, sources: object, given: object, deadline: Deadline) -> None:
        seen.append(deadline.left)
        raise ranktune.solvers.core.errors.StudyError("that is all.")

    (tmp_path / "s.toml").write_text('name = "s"\ndata = "api-search"\ntimeout = 40.0\n')
    words = {"tune": ["tune", "--timeout", "40"], "run": ["tune", str(tmp_path / "s.toml")]}[command]
    monkeypatch.setattr(api, "_run", run)
    monkeypatch.setattr(cli, "BEGUN", time.monotonic() - ago)
    monkeypatch.setattr(sys, "argv", ["ranktune", *words, "--home", str(tmp_path)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit), pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.showwarning", None)  # which main replaces
        cli.main()
    assert seen[0] <= 40.0 - ago - AFTERWARDS
    assert seen[0] > 20.0 - ago
    assert Deadline.after(40.0).left > 30.0  # of a function it counts from its call
    with limits_of_command(time.monotonic() - 1e3):
        assert Deadline.after(None).left == float("inf")


@pytest.mark.parametrize(
    ("trials", "tried"),
    [(1, {"RidgeRanker"}), (2, {"RidgeRanker", "SymmetricGBDT"}), (3, {"RidgeRanker", "SymmetricGBDT", "GBDTRanker"})],
)
def test_what_few_trials_have_not_tried_is_said(trials: int, tried: set[str], tmp_path: Path) -> None:
    solvers = ("BestFeature", "RidgeRanker", "RankSVM", "GBDTRanker", "SymmetricGBDT")
    result = ranktune.tune(graded(40, 0), solvers=solvers, trials=trials, home=tmp_path, jobs=1)
    untried = ", ".join(solver for solver in solvers if solver not in tried)
    said = f"Not tried with {trials} trial{'s' if trials > 1 else ''}: {untried}."
    assert result.ended_early == said == result.conclusion.details[-1]


def test_a_search_that_ended_in_vain_says_what_more_trials_would_take(tmp_path: Path) -> None:
    result = ranktune.tune(graded(40, 0), solvers=("RidgeRanker", "GBDTRanker"), home=tmp_path, jobs=1)
    assert result.trials < 60
    assert re.fullmatch(rf"{IN_VAIN}\. 20 more would take about \d+ s; on other data they .*", result.ended_early)


def test_no_timeout_never_ends() -> None:
    assert Deadline.after(None).left == float("inf")
    assert Deadline.after(None).share(5).left == float("inf")


def test_shares_are_of_what_is_left() -> None:
    clock = Clock(100.0)
    whole = Deadline.after(60.0, clock)
    assert whole.share(3).left == pytest.approx(20.0)
    clock.now += 5.0  # the first part took less than its share
    assert whole.share(2).left == pytest.approx(27.5)
    clock.now += 60.0
    assert whole.left == pytest.approx(-5.0)
