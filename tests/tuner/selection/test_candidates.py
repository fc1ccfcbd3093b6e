"""Choosing: noise is not mistaken for merit, ties go to the earlier trial, nothing looks at test to choose."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.reserve import finalists
from ranktune.tuner.selection.finals import Candidate, best_by_solver
from ranktune.tuner.selection.finished_trials import best_candidates, best_composition, set_aside
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study

GENERATOR = np.random.default_rng(0)
STUDY = Study(solvers=("RankSVM", "RidgeRanker"))


def candidate(solver: str, vali: Floats, rescored: Floats | None = None, number: int = -1) -> Candidate:
    return Candidate(solver, {}, mean_or_zero(vali), vali, 5, rescored, number)


def test_the_best_few_trials_of_each_solver_are_candidates(tmp_path: Path) -> None:
    record, space = Record(tmp_path, "s", STUDY.metric), STUDY.union_space()
    for number, value in enumerate([0.5, 0.9, 0.7, 0.9, 0.1, 0.8]):
        params = space.defaults()[0] | {"RankSVM.C": 0.01 * (number + 1)}
        record.append(number, params, space.distributions, TaskOutcome({STUDY.metric: np.full(4, value)}))
    record.append(6, space.defaults()[1], space.distributions, TaskOutcome({STUDY.metric: np.full(4, 0.85)}))
    record.append(7, space.defaults()[1], space.distributions, TaskOutcome(error="x"))
    result = best_candidates(record, space)
    record.close()
    assert [(c.solver, c.value) for c in result] == [
        ("RankSVM", 0.9), ("RankSVM", 0.9), ("RidgeRanker", 0.85), ("RankSVM", 0.8),
    ]  # fmt: skip
    assert [c.params["C"] for c in result[:2]] == [0.02, 0.04]
    assert [c.trials for c in result] == [6, 6, 1, 6]
    assert POLICY.choice.per_solver == 3


def test_the_best_composition_leads_the_default_by_its_paired_difference(tmp_path: Path) -> None:
    """It is among those within the limits; one that failed was not tried, others of the same parts are no more."""
    space, scores = Study(solvers=("Ranker",)).union_space(), np.random.default_rng(2).random((4, 30))
    scores[0] -= 0.2  # the default
    record, default = Record(tmp_path, "s", STUDY.metric), space.defaults()[0]
    svm: dict[str, Value] = {"Ranker.loss": "pairwise_hinge", "Ranker.pair_weight": "uniform"}
    for number, changed in enumerate([{}, svm, {**svm, "Ranker.l1": 0.03}]):
        outcome = TaskOutcome({STUDY.metric: scores[number]}, nonzeros=float(10 * number))
        record.append(number, default | changed, space.distributions, outcome)
    failed = default | {"Ranker.loss": "pairwise_squared_hinge"}
    record.append(3, failed, space.distributions, TaskOutcome(error="x"))
    every, within = best_composition(record, {}), best_composition(record, {"nonzeros": 10.0})
    alone, nothing = best_composition(record, {"nonzeros": 0.0}), best_composition(record, {"nonzeros": -1.0})
    record.close()
    best = max((1, 2), key=lambda number: scores[number].mean())
    for found, number in ((every, best), (within, 1)):
        assert found is not None and found.lead is not None
        difference = scores[number] - scores[0]
        assert found.parts == "pairwise_hinge + uniform + elastic_net + gradient_steps" and (
            found.tried,
            found.different,
        ) == (3, 2)
        assert found.lead.mean == pytest.approx(difference.mean())
        half = 1.96 * difference.std() / np.sqrt(30)
        assert found.lead.high - found.lead.mean == pytest.approx(half) == found.lead.mean - found.lead.low
    assert alone is not None and alone.lead is None and nothing is None


@pytest.mark.parametrize(("solver", "parameter"), [("GBDTRanker", "l2"), ("RankSVM", "C")])
def test_with_few_queries_what_beats_the_defaults_by_noise_does_not_replace_them(
    solver: str, parameter: str, tmp_path: Path
) -> None:
    defaults = np.linspace(0.2, 0.8, 60)
    noise = 0.1 * np.random.default_rng(1).normal(size=60)
    lucky, better = defaults + noise - noise.mean() + 0.005, defaults + noise - noise.mean() + 0.1
    space = Study(solvers=(solver,)).union_space()
    for beyond, values in (("noise", [defaults, lucky, lucky]), ("it", [defaults, lucky, better])):
        record = Record(tmp_path / beyond, "s", STUDY.metric)
        for number, own in enumerate(values):
            params = space.defaults()[0] | ({f"{solver}.{parameter}": 0.01 * number} if number else {})
            record.append(number, params, space.distributions, TaskOutcome({STUDY.metric: own}))
        result = sorted(best_candidates(record, space), key=lambda candidate: candidate.place)
        said = set_aside(record, space, {}, result[:1])
        fresh = set_aside(record, space, {}, [replace(result[0], number=-1, value=0.3, rescored=defaults)])
        record.close()
        assert said == "" if beyond == "it" else f"{solver} with 0.5050, was set aside for the {solver}" in said
        assert beyond == "it" or "scored 0.5000: it leads by less than its standard error" in said
        assert fresh.endswith("on fresh folds it is not better.")
        # Linear models that are close to the best are averaged with it, of equal ones the first.
        averaged = [1] if solver == "RankSVM" else []
        assert [c.number for c in result] == ([0, *averaged] if beyond == "noise" else [2, 0])
        assert [c.number for c in result if c.is_first] == [0]


def test_without_fresh_folds_a_solver_is_represented_by_its_first_candidate() -> None:
    """A first configuration that is not behind beyond noise stays, though another one scored higher."""
    first, lucky = Candidate("A", {}, 0.80, np.full(5, 0.80), 5), Candidate("A", {}, 0.81, np.full(5, 0.81), 5, place=1)
    other = candidate("B", np.full(5, 0.805))
    assert best_by_solver([lucky, other, first]) == [other, first]
    fresh = [replace(each, rescored=np.full(5, value)) for each, value in ((first, 0.7), (lucky, 0.75))]
    assert best_by_solver([*fresh, other])[0] is fresh[1]


def test_when_nothing_succeeded_the_cause_is_told(tmp_path: Path) -> None:
    record, space = Record(tmp_path, "s", STUDY.metric), STUDY.union_space()
    record.append(0, space.defaults()[0], space.distributions, TaskOutcome(error="ValueError: no"))
    with pytest.raises(StudyError, match="none of 1 trial succeeded: ValueError: no"):
        best_candidates(record, space)
    record.close()


def test_contenders_are_those_within_the_noise() -> None:
    best = GENERATOR.random(60)
    alike = best - 0.01 + 0.2 * GENERATOR.normal(size=60)
    worse = best - 0.3
    results = [candidate(solver, vali) for solver, vali in (("A", best), ("A", alike), ("A", worse), ("B", worse))]
    assert finalists(results, GENERATOR) == [0, 1]


def test_every_solvers_best_comes_before_anyones_second() -> None:
    vali = GENERATOR.random(20)
    results = [candidate(solver, vali) for solver in "AAABBBCCCDDDEEEFFF"]
    order = finalists(results, GENERATOR, policy=replace(POLICY, choice=replace(POLICY.choice, finalists=16)))
    assert order[:6] == [0, 3, 6, 9, 12, 15]
    assert len(order) == 16


def test_fresh_folds_overrule_a_lucky_trial() -> None:
    lucky = candidate("A", np.full(5, 0.9), np.full(20, 0.5))
    sound = candidate("B", np.full(5, 0.8), np.full(20, 0.6))
    out = candidate("C", np.full(5, 0.85))
    second = candidate("A", np.full(5, 0.8), np.full(20, 0.4))
    assert best_by_solver([lucky, second, out, sound]) == [sound, lucky, out]
