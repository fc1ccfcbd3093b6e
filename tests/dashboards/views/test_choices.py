"""The choices' view: effects, grids and combinations of categorical parameters, against what was simulated."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import optuna
import pytest

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.choices import choices_of, compositions, grid, levels, panels
from ranktune.dashboards.views.solver_trials import MIN_TRIALS_FOR_SURFACE, SolverTrials, solvers_of
from ranktune.solvers.core.space import Choice, When, conditions
from ranktune.solvers.registry import solver_class
from ranktune.tuner.samplers.space import UnionSpace
from tests.support.study_samples import named, number, numbers, study_data, study_of_splits, traces, trial, trials_of

SOLVER = "ElasticRank"
LOSS = {"pairwise_hinge": 0.03, "pairwise_logistic": 0.0, "pairwise_squared_hinge": -0.03}
WEIGHT = {"ndcg": 0.02, "uniform": 0.0, "recall": -0.02}


def simulated(count: int, seed: int = 0) -> list[Trial]:
    """Return trials whose metric depends on loss and weight alone, in a sum, with a little noise."""
    noise = np.random.default_rng(seed).normal(scale=0.003, size=count)
    return [
        replace(t, value=0.5 + LOSS[str(t.params["loss"])] + WEIGHT[str(t.params["pair_weight"])] + float(noise[k]))
        for k, t in enumerate(trials_of(count, [SOLVER], seed=seed))
    ]


def solver_of(trials: list[Trial]) -> SolverTrials:
    return solvers_of(study_data(trials, solvers=[SOLVER]), trials)[0]


def shown(trials: list[Trial], solver: str = SOLVER) -> list[Panel]:
    return panels(study_data(trials, solvers=[solver]))


def test_effects_are_those_that_were_simulated() -> None:
    solver = solver_of(simulated(80))
    for name, truth in (("loss", LOSS), ("pair_weight", WEIGHT)):
        results = {str(level.value): level for level in levels(solver, name)}
        assert set(results) == set(truth)
        for value, level in results.items():
            assert level.effect is not None and level.low is not None and level.high is not None
            assert level.effect == pytest.approx(truth[value], abs=0.006)
            assert level.low < level.effect < level.high
            values = [t.value for t in solver.valued if t.params[name] == value]
            assert level.trials == len(values) and level.mean == pytest.approx(
                np.mean([v for v in values if v is not None])
            )
        assert sum(level.effect or 0.0 for level in results.values()) == pytest.approx(0.0, abs=1e-12)
    verdicts = {(row[0], row[1]): row[7] for row in shown(simulated(80))[0].table.rows}
    assert verdicts["loss", "pairwise_hinge"] == verdicts["pair_weight", "ndcg"] == "better"
    assert verdicts["loss", "pairwise_squared_hinge"] == verdicts["pair_weight", "recall"] == "worse"
    assert {"not significant"} == {verdict for (name, _), verdict in verdicts.items() if name == "optimizer"}


def test_intervals_hold_what_was_simulated_and_effects_are_not_drawn_to_zero() -> None:
    held, ratios, false = [], [], []
    for seed in range(12):
        solver = solver_of(simulated(40, seed))
        for name, truth in (("loss", LOSS), ("pair_weight", WEIGHT), ("optimizer", {})):
            for level in levels(solver, name):
                assert level.effect is not None and level.low is not None and level.high is not None
                effect = truth.get(str(level.value), 0.0)
                held.append(level.low <= effect <= level.high)
                if effect:
                    ratios.append(level.effect / effect)
                if not truth:
                    false.append(level.low > 0.0 or level.high < 0.0)
    assert np.mean(held) >= 0.9 and np.mean(false) <= 0.1
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def test_a_grid_has_the_sum_of_both_effects_and_every_trial_once() -> None:
    solver = solver_of(simulated(80))
    result = grid(solver, "pair_weight", "loss")
    assert result.trials.sum() == 80
    values = {name: next(p for p in solver_class(SOLVER).space if p.name == name) for name in ("loss", "pair_weight")}
    down, across = values[result.down], values[result.across]
    assert isinstance(down, Choice) and isinstance(across, Choice)
    for i, a in enumerate(down.choices):
        for j, b in enumerate(across.choices):
            trials = [t for t in solver.valued if t.params[result.down] == a and t.params[result.across] == b]
            assert result.trials[i, j] == len(trials)
            effects = {**LOSS, **WEIGHT}
            assert result.expected[i, j] == pytest.approx(0.5 + effects[str(a)] + effects[str(b)], abs=0.02)
            assert 0.0 < result.sd[i, j] < 0.01


def test_combinations_that_the_space_does_not_have_are_empty() -> None:
    solver = solver_of(simulated(60))
    conditional = [p for p in solver_class(SOLVER).space if isinstance(p, Choice) and p.when is not None]
    assert conditional
    for parameter in conditional:
        (when,) = conditions(parameter)
        parent = next(p for p in solver_class(SOLVER).space if p.name == when.name)
        assert isinstance(parent, Choice)
        result = grid(solver, parameter.name, parent.name)
        expected = result.expected if result.down == parent.name else result.expected.T
        allowed = [value in when.values for value in parent.choices]
        assert np.isfinite(expected).all(axis=1).tolist() == np.isfinite(expected).any(axis=1).tolist() == allowed


def declared_twice(count: int) -> SolverTrials:
    """Return a solver whose loss has other choices under "second", where c is .05 better, than under "first"."""
    space = UnionSpace(
        {
            SOLVER: (
                Choice("optimizer", ("first", "second"), "first"),
                Choice("loss", ("a", "b"), "a", When("optimizer", ("first",))),
                Choice("loss[second]", ("b", "c"), "b", When("optimizer", ("second",))),
            )
        }
    )
    generator = np.random.default_rng(1)
    trials = []
    for k in range(count):
        optimizer, name = (("first", "loss"), ("second", "loss[second]"))[k % 2]
        loss = ("abbc")[int(generator.integers(2)) + 2 * (k % 2)]
        value = 0.5 + 0.05 * (loss == "c") + 0.001 * float(generator.normal())
        trials.append(trial(k, SOLVER, {"optimizer": optimizer, name: loss}, value))
    solver = solver_of(trials)
    solver.__dict__["space"] = space  # in place of the cached one
    return solver


def test_declarations_of_one_parameter_are_one_choice() -> None:
    solver = declared_twice(40)
    assert sorted(choices_of(solver)) == ["loss", "optimizer"]
    results = {str(level.value): level for level in levels(solver, "loss")}
    assert list(results) == ["a", "b", "c"]
    assert sum(level.trials for level in results.values()) == 40
    assert results["c"].effect == pytest.approx(0.05 * 2 / 3, abs=0.01)
    both = grid(solver, "loss", "optimizer")
    assert (both.down, both.across) == ("loss", "optimizer")
    assert np.isfinite(both.expected).tolist() == [[True, False], [True, True], [False, True]]
    assert (both.trials > 0).tolist() == [[True, False], [True, True], [False, True]]
    named = {composition.values for composition in compositions(solver, ("optimizer", "loss"))}
    assert named == {("first", "a"), ("first", "b"), ("second", "b"), ("second", "c")}


def test_the_parts_of_a_ranker_are_choices() -> None:
    data = study_of_splits([], solvers=["Ranker"])
    drawn = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trials = []
    for k in range(40):
        params = data.study.union_space().suggest(drawn.ask())
        by_name = {name.removeprefix("Ranker."): value for name, value in params.items() if name != "solver"}
        trials.append(trial(k, "Ranker", by_name, 0.5 + 0.02 * ("l2" in by_name.values()) + 0.001 * (k % 3)))
    solver = solvers_of(study_data(trials, solvers=["Ranker"]), trials)[0]
    assert {"loss", "pair_weight", "penalty", "optimizer"} <= set(choices_of(solver))
    result = grid(solver, "optimizer", "loss")
    assert result.trials.sum() == 40
    assert np.isfinite(result.expected[result.trials > 0]).all()
    assert np.isnan(result.expected).any()  # newton minimises no softmax loss


def test_there_is_a_grid_of_each_pair_with_its_numbers() -> None:
    trials = simulated(60)
    result = shown(trials)
    names = choices_of(solver_of(trials))
    assert names[:2] == ["loss", "pair_weight"]  # the most important first
    grids = named(result, "grid")
    assert [set(panel.table.columns[:2]) for panel in grids] == [set(pair) for pair in combinations(names, 2)]
    ends = numbers(value for panel in grids for row in panel.table.rows if (value := row[4]) is not None)
    for panel in grids:
        cells = traces(panel)[0]
        assert [cells["zmin"], cells["zmax"]] == pytest.approx([ends.min(), ends.max()], rel=1e-5)
        drawn = [text for row in cells["text"] for text in row]
        for (a, b, n, _, expected, _), text, name in zip(
            panel.table.rows, drawn, [x for row in cells["customdata"] for x in row], strict=True
        ):
            assert name == f"{a}, {b}"
            assert text == ("" if expected is None else f"{number(expected):.3f}<br>n={n}")


def test_combinations_are_listed_the_best_first() -> None:
    trials = simulated(50)
    (listed,) = named(shown(trials), "compositions")
    best = [number(row[0]) for row in listed.table.rows]
    assert best == sorted(best, reverse=True) and len(best) == 20
    top = max(trials, key=lambda t: t.value or 0.0)
    names = listed.table.columns[3:]
    assert list(listed.table.rows[0][3:]) == [top.params.get(name) for name in names]
    every = compositions(solver_of(trials), names)
    assert sum(combination.trials for combination in every) == 50 and f"{len(every)} combinations" in listed.note


def test_of_few_trials_there_are_means_without_intervals() -> None:
    result = shown(simulated(MIN_TRIALS_FOR_SURFACE - 1))
    effects = result[0]
    assert all("error_x" not in trace for trace in traces(effects))
    assert {row[7] for row in effects.table.rows} == {""}
    assert all("too few" in panel.note for panel in result if not panel.key.startswith("compositions"))
    for panel in result:
        if panel.key.startswith("grid"):
            assert [row[4] for row in panel.table.rows] == [None] * len(panel.table.rows)


def test_without_trials_or_choices_it_says_so() -> None:
    (only,) = shown([])
    assert only.figure is None and "No trial has finished yet." in only.note
    plain = next(
        name for name in ("BestFeature", "AdaRank", "SOLAR1")
        if sum(isinstance(p, Choice) and len(p.choices) > 1 for p in solver_class(name).space) < 2
    )  # fmt: skip
    (nothing,) = shown(list(trials_of(20, [plain])), plain)
    assert "No solver" in nothing.note
    (panel,) = shown(simulated(1))
    assert "No solver" in panel.note
