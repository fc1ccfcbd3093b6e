"""Configurations that a study tries first: those that it is given, and the best of an earlier study."""

from pathlib import Path

import pytest
from lightgbm import LGBMRanker
from optuna.trial import FrozenTrial
from sklearn.linear_model import Ridge

import ranktune
from ranktune import Study
from ranktune.earlier import record
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.samplers.first import first_configurations
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.home import StudyFolder
from tests.support.engine_samples import graded

SOLVERS = ("RidgeRanker", "RankSVM")


def test_given_configurations_come_before_the_portfolio() -> None:
    study = Study(solvers=SOLVERS, first={"ranksvm": {"C": 2.0}, "RidgeRanker": [{"alpha": 7.0}, {"alpha": 7.0}, {}]})
    first = first_configurations(study.union_space())
    assert [params[SOLVER] for params in first[:2]] == list(SOLVERS)
    assert first[0]["RidgeRanker.alpha"] == 7.0 and first[1]["RankSVM.C"] == 2.0
    assert len({str(params) for params in first}) == len(first), "none twice"
    before = first_configurations(Study(solvers=SOLVERS).union_space())
    assert all(params in first for params in before), "the portfolio follows"
    assert Study.from_dict(study.as_dict()) == study


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ({"RankSVM": {"C": -1.0}}, "search space of RankSVM"),
        ({"RankSVM": {"unknown": 1.0}}, "search space of RankSVM"),
        ({"RankSVM": 3}, "must be a table"),
        ({"RankSVN": {}}, "RankSVM"),
        ({"ListNet": {}}, "ListNet"),
        ([], "a table of configurations"),
    ],
)
def test_what_is_no_configuration_is_refused(first: object, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Study(solvers=SOLVERS, first=first)  # type: ignore[arg-type]


def test_a_study_begins_with_the_best_of_an_earlier_one(tmp_path: Path) -> None:
    train, test = graded(60, 1), graded(40, 2)
    ranktune.tune(train, test=test, name="old", solvers=SOLVERS, trials=6, home=tmp_path)
    result = ranktune.tune(
        train, test=test, name="new", like="old", solvers=["RankSVM", "ListNet"], trials=4, home=tmp_path
    )
    old = [t for t in _trials(tmp_path, "old") if t.params[SOLVER] == "RankSVM" and t.value is not None]
    best = max(old, key=lambda trial: trial.value or 0.0)
    tried = [t for t in _trials(tmp_path, "new") if t.params[SOLVER] == "RankSVM"]
    known = {name: value for name, value in best.params.items() if not name.startswith("RankSVM.C")}
    assert known.items() <= tried[0].params.items(), "the path chooses C"
    assert len(_trials(tmp_path, "new")) == 4 and result.study == "new"
    ranktune.tune(train, test=test, name="new", solvers=["RankSVM", "ListNet"], trials=5, home=tmp_path)
    assert len(_trials(tmp_path, "new")) == 5, "it is continued without naming the earlier one"


def test_a_study_begins_with_the_parameters_of_fitted_models_of_other_libraries(tmp_path: Path) -> None:
    train = graded(60, 1)
    trees = LGBMRanker(num_leaves=7, n_estimators=20, learning_rate=0.15, verbose=-1)
    trees.fit(train.features, train.grades.astype(int), group=train.lengths)
    ridge = Ridge(alpha=123.0).fit(train.features, train.grades)
    ranktune.tune(train, test=graded(40, 2), name="new", solvers=["LambdaMART", "RidgeRanker"], trials=2, full=True,
                  first={"LambdaMART": trees, "RidgeRanker": ridge}, home=tmp_path)  # fmt: skip
    tried = {trial.params[SOLVER]: trial.params for trial in _trials(tmp_path, "new")}
    assert tried["RidgeRanker"]["RidgeRanker.alpha"] == 123.0
    assert (tried["LambdaMART"]["LambdaMART.leaves"], tried["LambdaMART"]["LambdaMART.learning_rate"]) == (7, 0.15)


def test_an_earlier_study_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="nowhere"):
        ranktune.tune(graded(20, 1), like="nowhere", trials=2, home=tmp_path)
    assert not list(tmp_path.iterdir())


def _trials(home: Path, name: str) -> list[FrozenTrial]:
    folder = StudyFolder(home / name)
    return record(folder, folder.split_names()[0]).trials
