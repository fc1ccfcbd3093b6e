"""The portfolios of the solvers: defaults with one choice changed, judged by what they add to a blend."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.names import STANDARD
from ranktune.studies.benchmarks.results import append_result
from ranktune.studies.benchmarks.tasks import task
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.configurations import Configuration, configurations, first_with_rows, name_of
from ranktune.studies.laboratory.portfolios import LEAST, added_on, additions, changed_choices, shown, taken
from ranktune.studies.laboratory.rows import best_of, task_of
from ranktune.tuner.policy.blends import Blends, scale
from ranktune.tuner.samplers.first import alike, portfolio
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.splits.plans import query_folds
from ranktune.tuner.study.declaration import Study


def test_candidates_are_the_defaults_with_one_choice_changed() -> None:
    """What depends on the choice may change with it; what is tried first anyway is no candidate."""
    space, first = Study(solvers=list(STANDARD)).union_space(), configurations(STANDARD, 0)
    defaults = {str(params[SOLVER]): params for params in space.defaults()}
    every = changed_choices(STANDARD)
    assert len({name_of(params) for params in every}) == len(every) > 40
    for params in every:
        own = defaults[str(params[SOLVER])]
        changed = [name for name in own if name in params and params[name] != own[name]]
        chosen = [name for name in changed if isinstance(own[name], str)]
        assert 1 <= len(chosen) and not any(alike(params, other) for other in first)
        again = space.configuration(str(params[SOLVER]), {chosen[0].partition(".")[2]: params[chosen[0]]})
        assert again == params
    assert {"loss": "smoothed"} in portfolio("SymmetricGBDT")


def test_what_a_candidate_adds_is_what_the_blend_scores_more_with_it() -> None:
    """Each blend is made again of its own models alone."""
    whole, solvers, metric = task("drawn", 1), ("GBDTRanker", "LogisticRanker"), parse_metric("ndcg@10")
    vali, test = whole.vali, whole.test
    assert vali is not None and test is not None
    split = Split(whole.name, whole.train.select(np.arange(20)), vali, test)
    folds, first = query_folds(vali, 5, 0), configurations(solvers, 0)

    def reached(chosen: list[Configuration]) -> float:
        models = [best_of(task_of(name_of(params)), split.train, vali, test, 99.0)[1] for params in chosen]
        scaled = [[part / scale(own[0], vali) for part in own] for own in models]
        groups = [(str("GBDT" in str(params[SOLVER])), str(params[SOLVER])) for params in chosen]
        alone = {k: metric.per_query(own[0], vali) for k, own in enumerate(scaled[: len(first)])}
        blends = Blends(np.stack([own[0] for own in scaled]), groups, vali, metric, folds, first=alone)
        shares = blends.of(range(len(chosen))).shares
        return metric.mean(sum(share * own[1] for share, own in zip(shares, scaled, strict=True)), test)

    before = reached(first)
    gains = added_on(split, solvers)["gains"]
    assert list(gains) == [shown(params) for params in changed_choices(solvers)]
    for params in (changed_choices(solvers)[0], changed_choices(solvers)[-1]):
        assert gains[shown(params)][0] == pytest.approx(reached([*first, params]) - before, abs=1e-9)


NOISE = np.random.default_rng(0).normal(size=40)


@pytest.mark.parametrize(
    ("learn", "confirm", "is_taken"),
    [(0.004, 0.004, True), (0.004, -0.004, False), (-0.004, 0.004, False), (0.5 * LEAST, 0.004, False)],
)
def test_a_candidate_is_taken_where_both_halves_gain(learn: float, confirm: float, is_taken: bool) -> None:
    known = {
        f"drawn-{k}": {"A x=1": (gain + 0.001 * NOISE[k], 1.0), "A x=2": (0.9 * gain, 2.0), "B y=1": (0.0, 1.0)}
        for k, gain in enumerate([learn] * 12 + [confirm] * 12)
    }
    tasks = list(known)
    result = taken(additions(known, tasks[:12], tasks[12:]))
    assert [each.name for each in result] == (["A x=1" if learn > 0.0 else "A x=2"] if is_taken else [])


def test_the_command_shows_the_candidates_and_repeats_nothing(tmp_path: Path) -> None:
    for seed in (0, 1, 36, 37):
        gain = 0.01 + 0.001 * seed / 37
        append_result(
            tmp_path / "gains", {"task": f"drawn-{seed}", "gains": {"SymmetricGBDT loss=smoothed": [gain, 2.0]}}
        )
    result = CliRunner().invoke(app, ["portfolio", "--keep", str(tmp_path / "gains"), "--seeds", "0:2"])
    assert result.exit_code == 0, result.output
    assert "SymmetricGBDT loss=smoothed" in result.output and "yes" in result.output


def test_the_portfolios_lie_in_the_spaces_of_their_solvers() -> None:
    known = json.loads(files("ranktune.tuner.samplers").joinpath("portfolio.json").read_text())["portfolios"]
    for solver, configured in known.items():
        space = Study(solvers=[solver]).union_space()
        assert len(configured) > 1 and all(space.configuration(solver, values) for values in configured)


def test_a_table_need_not_have_all_first_configurations() -> None:
    first = configurations(("SymmetricGBDT", "RankSVM"), 0)
    rows = {"drawn-0": [name_of(params) for params in first[:2]], "drawn-1": [name_of(first[0])]}
    assert first_with_rows(("SymmetricGBDT", "RankSVM"), rows) == first[:2]
