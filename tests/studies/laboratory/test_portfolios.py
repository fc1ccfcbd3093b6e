"""The portfolios of the solvers: defaults with one choice changed, judged by what they add to a blend."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.names import STANDARD
from ranktune.studies.benchmarks.tasks import task
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.portfolios import PRICE, ScoredTask, candidates, portfolio_of, scored_on
from ranktune.studies.laboratory.rows import Configuration, best_of, configurations, name_of, task_of
from ranktune.tuner.policy.blends import Blends, scale
from ranktune.tuner.samplers.first import alike
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.splits.plans import query_folds
from ranktune.tuner.study.declaration import Study


def test_candidates_have_every_choice_at_every_size_of_trees() -> None:
    first, every = configurations(STANDARD, 0), candidates(STANDARD)
    assert every[: len(first)] == first and len({name_of(params) for params in every}) == len(every) > 80
    assert not any(alike(a, b) for place, a in enumerate(every) for b in every[:place])
    forms = {
        (params["LambdaMART.loss"], params["LambdaMART.leaves"]) for params in every if "LambdaMART.loss" in params
    }
    assert {(loss, leaves) for loss in ("lambdarank", "smoothed", "xendcg") for leaves in (8, 31, 64)} <= forms


def test_what_a_part_adds_is_what_the_blend_scores_more_with_it(tmp_path: Path) -> None:
    """Each blend is made again of its own models alone; of what was written nothing is fitted again."""
    whole, solvers, metric = task("drawn", 1), ("GBDTRanker", "LogisticRanker"), parse_metric("ndcg@10")
    vali, test = whole.vali, whole.test
    assert vali is not None and test is not None
    split = QuerySplit(whole.name, whole.train.select(np.arange(20)), vali, test)
    scored = scored_on(split, solvers, tmp_path / "scores.npz")
    folds = query_folds(vali, 5, 0)

    def reached(chosen: list[Configuration]) -> float:
        models = [best_of(task_of(name_of(params)), split.train, vali, test, 99.0)[1] for params in chosen]
        scaled = [[part / scale(own[0], vali) for part in own] for own in models]
        groups = [(str("GBDT" in str(params[SOLVER])), str(params[SOLVER])) for params in chosen]
        alone = {k: metric.per_query(own[0], vali) for k, own in enumerate(scaled)}
        blends = Blends(np.stack([own[0] for own in scaled]), groups, vali, metric, folds, first=alone)
        shares = blends.of(range(len(chosen))).shares
        return metric.mean(sum(share * own[1] for share, own in zip(shares, scaled, strict=True)), test)

    chosen = [params for params in scored.configurations if params[SOLVER] == "LogisticRanker"]
    chosen += [params for params in scored.configurations if params[SOLVER] == "GBDTRanker"][:2]
    assert scored.reached([name_of(params) for params in chosen]) == pytest.approx(reached(chosen), abs=2e-3)
    empty = QuerySplit(whole.name, split.train.select(np.arange(1)), vali, test)
    assert np.array_equal(scored_on(empty, solvers, tmp_path / "scores.npz").test, scored.test)


def made(gains: dict[str, float]) -> ScoredTask:
    """Return a task where each named configuration adds so much, whatever the others; the others add nothing."""

    class Made(ScoredTask):
        def reached(self, names: Sequence[str]) -> float:
            return 0.5 + sum(gains.get(name, 0.0) for name in names)

    known = candidates(("SymmetricGBDT", "RankSVM"))
    return Made(BLANK, BLANK, known, np.arange(1.0, len(known) + 1), np.empty(0), np.empty(0))


BLANK = Queries.from_arrays([[1.0]], [0], group=[1])


@pytest.mark.parametrize(("gain", "is_taken"), [(2.0 * PRICE, True), (0.5 * PRICE, False)])
def test_what_adds_more_than_the_price_of_its_time_is_taken(gain: float, is_taken: bool) -> None:
    trees = [params for params in candidates(("SymmetricGBDT", "RankSVM")) if params[SOLVER] == "SymmetricGBDT"]
    early, late = name_of(trees[0]), name_of(trees[-1])
    task = made({early: 9.0 * gain, late: gain * len(candidates(("SymmetricGBDT", "RankSVM")))})
    parts = portfolio_of([task, task], [task])
    assert [part.name for part in parts] == ([early, late] if is_taken else [early])
    assert all(part.confirm == pytest.approx(part.learn[0]) for part in parts)


def test_the_portfolios_lie_in_the_spaces_of_their_solvers() -> None:
    known = json.loads(files("ranktune.tuner.samplers").joinpath("portfolio.json").read_text())["portfolios"]
    for solver, configured in known.items():
        space = Study(solvers=[solver]).union_space()
        assert len(configured) > 1 and all(space.configuration(solver, values) for values in configured)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["portfolio", "--seeds", "0:0", "--keep", str(tmp_path / "rows")])
    assert result.exit_code == 2 and "0 tasks to learn from and 0 that confirm" in result.stderr
    result = CliRunner().invoke(app, ["table", "--keep", str(tmp_path / "rows"), "--seeds", "7:"])
    assert result.exit_code == 2 and "'7:' are no seeds" in result.stderr
