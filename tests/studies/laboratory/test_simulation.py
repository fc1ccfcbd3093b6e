"""Laws of simulated studies, on small tables that are made up."""

import re
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from optuna.trial import FrozenTrial
from typer.testing import CliRunner

from ranktune.solvers.names import STANDARD as EVERY
from ranktune.studies.benchmarks.results import BenchmarkResult, append_result
from ranktune.studies.benchmarks.task_table import ConfigurationRow, ModelCheckpoint
from ranktune.studies.benchmarks.tasks import sizes
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.known import KnownTask, by_task, known_task
from ranktune.studies.laboratory.rows import METRIC, configurations, name_of, task_of
from ranktune.studies.laboratory.simulating import Delivered, SimulationPlan, delivered, figures, simulated
from ranktune.studies.laboratory.simulation import (
    A_SUGGESTION,
    A_TRIAL,
    FACTOR,
    Simulated,
    Simulation,
    Suggestions,
    reached_by,
)
from ranktune.studies.laboratory.suggestions import DecisionRules, constants
from ranktune.studies.laboratory.thresholds import READ, halved_and_doubled, varied
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.storage.attributes import UNFINISHED
from ranktune.tuner.storage.record import seconds_of
from ranktune.tuner.study.declaration import Study

SOLVERS = ("RidgeRanker", "RankSVM", "GBDTRanker")
SPACE = Study(solvers=SOLVERS).union_space()
SECONDS = {"RidgeRanker": 0.01, "RankSVM": 0.02, "GBDTRanker": 1.0}


def row(task: str, name: str, solver: str, generator: np.random.Generator, lead: float = 0.0) -> ConfigurationRow:
    """A row whose mean on test queries is that on validation queries; boosting has two checkpoints on the way."""
    kind, _, seed = task.partition("-")
    vali = np.clip(generator.uniform(0.2, 0.6, len(sizes(kind, int(seed))[0][1])) + lead, 0.0, 1.0)
    mean, seconds = float(vali.mean()), SECONDS.get(solver, 0.02)
    shares = (0.25, 0.5, 1.0) if solver == "GBDTRanker" else (1.0,)
    points = [ModelCheckpoint(40.0 * share, seconds * share, mean * share, mean * share) for share in shares]
    return ConfigurationRow(task, name, 1.0, tuple(points), vali, np.array([mean]))


def rows_of(task: str, solvers: tuple[str, ...], draws: int, best: int = -1) -> list[ConfigurationRow]:
    generator = np.random.default_rng(5)
    every = configurations(solvers, draws)
    return [
        row(task, name_of(params), str(params[SOLVER]), generator, lead=0.35 * (place == best % len(every)))
        for place, params in enumerate(every)
    ]


def known(draws: int = 6, task: str = "drawn-3", best: int = -1) -> KnownTask:
    return known_task(by_task(rows_of(task, SOLVERS, draws, best)), task, SPACE)


def study(seconds: float, seed: int = 0, sampler: str = "thompson") -> Study:
    return Study(solvers=SOLVERS, metric=METRIC, seed=seed, timeout=seconds, sampler=sampler)


def ran(task: KnownTask, seconds: float, seed: int = 0, sampler: str = "thompson") -> Simulated:
    return Simulation(task, study(seconds, seed, sampler)).run()


def tried(result: Simulated) -> list[tuple[object, ...]]:
    return [(trial.params, trial.value, trial.duration) for trial in result.trials()]


@pytest.mark.parametrize("seconds", [1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("name", ["drawn-3", "drawn-19"])
def test_the_clock_exceeds_the_budget_by_no_more_than_what_precedes_a_trial(seconds: float, name: str) -> None:
    result = ran(known(task=name), seconds)
    moments = [at for trial in result.trials() for at in (trial.datetime_start, trial.datetime_complete) if at]
    assert moments == sorted(moments) and len(moments) == 2 * len(result.trials())
    assert moments[-1].timestamp() <= seconds + A_TRIAL + A_SUGGESTION


def test_more_time_is_more_trials_until_the_table_has_no_more() -> None:
    counts = [len(ran(known(), seconds).trials()) for seconds in (3.0, 30.0, 3000.0)]
    assert counts[0] < counts[1] <= counts[2] == len(known().rows)
    result = ran(known(), 3000.0)
    assert result.exhausted and not ran(known(), 3.0).exhausted
    assert len({values.tobytes() for values in result.values.values()}) == len(known().rows)


@pytest.mark.parametrize("sampler", ["thompson", "random"])
def test_a_seed_gives_one_study_and_what_is_known_changes_nothing(sampler: str) -> None:
    answers: Suggestions = {}
    first = Simulation(known(), study(60.0, 3, sampler), answers).run()
    assert tried(first) == tried(ran(known(), 60.0, 3, sampler))
    count = len(answers)
    assert tried(Simulation(known(), study(60.0, 3, sampler), answers).run()) == tried(first)
    assert len(answers) == count > 0
    assert tried(ran(known(), 60.0, 4, sampler)) != tried(first)


@pytest.mark.parametrize("best", [-1, -2, -4])
def test_a_configuration_that_dominates_is_found_and_chosen(best: int) -> None:
    result = ran(known(best=best), 600.0)
    chosen = delivered(result)
    assert chosen.regret == 0.0 and not chosen.is_first and chosen.gain > 0.1
    plain = delivered(result, DecisionRules.parse("choice.ahead=inf").policy)
    assert plain.regret > 0.1 and plain.is_first


def test_boosting_that_is_cut_counts_with_its_best_checkpoint_before() -> None:
    task = known()
    place = task.solvers.index("GBDTRanker")
    whole, boosted = task.rows[place], task_of(task.rows[place].configuration)
    assert whole.vali is not None
    for limit, share in ((0.3, 0.25), (0.5, 0.5), (0.99, 0.5), (1.0, 1.0), (5.0, 1.0)):
        reached = reached_by(whole, boosted, 1, FACTOR * limit)
        assert reached is not None
        assert reached.outcome.per_query[METRIC].mean() == pytest.approx(share * whole.vali.mean())
        assert reached.test == pytest.approx(share * whole.vali.mean())
        assert reached.seconds == pytest.approx(FACTOR * min(limit, 1.0))
    assert reached_by(whole, boosted, 1, FACTOR * 0.2) is None
    assert reached_by(whole, boosted, 5, FACTOR * 4.9) is None
    assert reached_by(whole, boosted, 5, FACTOR * 5.0) is not None
    linear = task.solvers.index("RankSVM")
    assert reached_by(task.rows[linear], task_of(task.rows[linear].configuration), 1, 0.001) is None


def test_boosting_that_continues_pays_what_it_has_not_paid() -> None:
    task = known()
    place = task.solvers.index("GBDTRanker")
    whole, boosted = task.rows[place], task_of(task.rows[place].configuration)
    begun = reached_by(whole, boosted, 1, FACTOR * 0.6)
    assert begun is not None and begun.outcome.unfinished and begun.seconds == pytest.approx(FACTOR * 0.6)
    ended = reached_by(whole, boosted, 1, FACTOR * 5.0, begun.seconds)
    assert ended is not None and not ended.outcome.unfinished and ended.seconds == pytest.approx(FACTOR * 0.4)
    assert ended.test == pytest.approx(2.0 * begun.test)
    assert reached_by(whole, boosted, 1, FACTOR * 0.3, begun.seconds) is not None


@pytest.mark.parametrize("seconds", [7.25, 8.25, 9.25])
def test_an_unfinished_model_continues_where_there_is_time(seconds: float) -> None:
    """The trials of a model together take no more than its whole fit, and its value does not fall."""
    task = known(draws=0, task="drawn-19")
    rows = [replace(each, checkpoints=slow(each.checkpoints)) for each in task.rows]
    result = ran(replace(task, rows=tuple(rows)), seconds)
    by_model: dict[str, list[FrozenTrial]] = {}
    for trial in result.trials():
        if trial.params[SOLVER] == "GBDTRanker":
            others = {name: value for name, value in trial.params.items() if name != "GBDTRanker.trees"}
            by_model.setdefault(name_of(others), []).append(trial)
    grown = [trials for trials in by_model.values() if len(trials) > 1]
    assert grown
    for trials in grown:
        assert all(UNFINISHED in trial.user_attrs for trial in trials[:-1])
        assert sum(seconds_of(trial) for trial in trials) <= FACTOR * 3.0 + 1e-6
        values = [trial.value or 0.0 for trial in trials]
        assert values == sorted(values)


def slow(points: tuple[ModelCheckpoint, ...]) -> tuple[ModelCheckpoint, ...]:
    return tuple(replace(each, seconds=3.0 * each.seconds) for each in points)


@pytest.mark.parametrize("seconds", [1.0, 2.0, 4.0, 40.0])
def test_regret_is_never_negative(seconds: float) -> None:
    """Not even where a model on the way tests better than every row."""
    task = known()
    lucky = tuple(
        replace(each, checkpoints=(replace(each.checkpoints[0], test=1.0), *each.checkpoints[1:])) for each in task.rows
    )
    result = delivered(ran(replace(task, rows=lucky), seconds))
    assert result.regret >= 0.0 and result.estimate.low <= result.estimate.mean <= result.estimate.high


def test_every_number_of_the_policy_can_be_varied() -> None:
    for name, usual in constants().items():
        value = attrgetter(name)(DecisionRules.parse(f"{name}=7").policy)
        assert value == 7 and type(value) is type(usual)
        assert DecisionRules.parse(f"{name}={usual}") == DecisionRules()
    assert {"choice.ahead", "search.startup_apart", "few_queries", "significant"} <= set(constants())


def test_half_and_twice_a_threshold_are_compared_with_it_in_pairs() -> None:
    tasks, plan = [known(), known(task="drawn-19")], SimulationPlan([3.0], range(1))
    nothing, _, half, _ = varied(tasks, plan, lambda line: None, ["blend.worse", "time.fixed"]).rows
    assert nothing["gain"] == "+0.00000"
    assert half["rule"] == "time.fixed=0.875" and str(half["trials"]) > "+0.0%"
    assert halved_and_doubled("one_pass.kept") == ["one_pass.kept=0.35", "one_pass.kept=1.0"]
    assert set(READ) <= set(constants())


def test_a_summary_has_tasks_as_units() -> None:
    (studies,) = simulated([known(), known(task="drawn-19")], SimulationPlan([3.0], range(2)), [DecisionRules()])

    def changed(each: Delivered, test: float) -> Delivered:
        return replace(each, test=test, default=0.5, regret=0.9 - test)

    many = [changed(each, 0.4 if each.task == "drawn-3" and each.seed == 0 else 0.6) for each in studies] + [
        changed(studies[1], 0.6)
    ]
    (gains,), (times,) = (table.rows for table in figures({("all", 3.0): many}, "learn"))
    assert (times["studies"], times["tasks"]) == (5, 2)
    assert gains["harmed"] == "25.0%" and gains["gain"] == f"{(0.0 + 0.1) / 2:+.4f}"
    assert gains["regret"] == f"{(0.4 + 0.3) / 2:.4f}" and gains["worst tenth"] == "0.4000"


def test_the_commands_print_tables_in_eighty_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for task in ("drawn-3", "drawn-40"):
        for each in rows_of(task, EVERY, 1):
            append_result(tmp_path / "rows", each.as_json())
    place = ["--keep", str(tmp_path / "rows"), "--seconds", "5", "--half", "learn"]
    result = CliRunner().invoke(app, ["simulate", *place, "--store", str(tmp_path / "figures.json")])
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "what simulated studies deliver, half 'learn'" in result.output
    stored = BenchmarkResult.read(tmp_path / "figures.json")
    assert [len(table.rows) for table in stored.tables] == [2, 2, 1]
    assert stored.command.startswith("python -m ranktune.studies.laboratory")
    result = CliRunner().invoke(app, ["compare", "choice.ahead=1", "choice.ahead=inf", *place])
    assert result.exit_code == 0, result.output
    assert "rules compared with choice.ahead=1" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--half", "lern"], "no half 'lern'.*learn"),
        (["--rules", "choice.ahed=1"], "no rule 'choice.ahed'.*choice.ahead"),
        (["--rules", "blend.equal=1"], "no rule 'blend.equal'"),
        (["--rules", "choice.ahead=much"], "choice.ahead=much: it must be a number, or inf"),
        (["--rules", "few_queries=1.5"], "few_queries=1.5: it must be a whole number"),
        (["--rules", "sampler=tpe"], "no sampler 'tpe'.*random"),
        (["--half", "confirm"], "no task of the half 'confirm'"),
    ],
)
def test_what_cannot_be_simulated_is_said(tmp_path: Path, words: list[str], message: str) -> None:
    for each in rows_of("drawn-3", EVERY, 0):
        append_result(tmp_path / "rows", each.as_json())
    command = ["simulate", "--keep", str(tmp_path / "rows"), "--half", "learn", "--seconds", "2", *words]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2 and re.search(message, result.stderr, re.DOTALL)
