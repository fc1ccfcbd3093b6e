"""What the setting `serve` leaves in a study's search space, and what it refuses."""

from pathlib import Path

import pytest

from ranktune.solvers.abilities import CUSTOM, LINEAR, LIST, TREES, WITHIN
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.registrations import Registration
from ranktune.solvers.core.space import Choice
from ranktune.solvers.custom import CustomRanker
from ranktune.solvers.formats import FORMATS
from ranktune.solvers.registry import SOLVERS, make
from ranktune.tuner.study.abilities import able_space, can_load
from ranktune.tuner.study.compatibility import setting_differences
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import toml_fields


def test_the_table_of_formats_says_what_is_loaded() -> None:
    assert can_load(["solr"], {LINEAR}) and can_load(["solr"], {TREES}) and not can_load(["solr"], {LINEAR, TREES})
    assert can_load(["onnx", "vespa"], {LINEAR, TREES}) and not can_load(["onnx", "solr"], {LINEAR, TREES})
    assert not can_load(["lightgbm"], {LINEAR}) and not can_load(["liblinear"], {TREES})
    assert can_load([], {CUSTOM}) and not any(can_load([name], {part}) for name in FORMATS for part in (LIST, CUSTOM))
    assert [name for name in FORMATS if can_load([name], {LINEAR, WITHIN})] == ["onnx", "python"]


def test_every_solver_says_what_its_models_consist_of() -> None:
    for name in SOLVERS:
        assert SOLVERS[name].model_parts({}) in ({LINEAR}, {TREES}), name
    assert SOLVERS["ElasticRank"].model_parts({"scaling": "list"}) == {LIST}
    assert SOLVERS["LambdaMART"].model_parts({"start": "linear"}) == {LINEAR, TREES}
    assert SOLVERS["LambdaMART"].model_parts({"start": "linear", "within_query": "ranks"}) == {LINEAR, WITHIN}


def test_choices_that_cannot_be_loaded_are_not_suggested() -> None:
    for name in SOLVERS:
        before, after = SOLVERS[name].space, able_space(frozenset(), ["solr"], name)
        assert [choice.name for choice in before] == [choice.name for choice in after]
        for a, b in zip(before, after, strict=True):
            if isinstance(a, Choice) and isinstance(b, Choice):
                lost = set(a.choices) - set(b.choices)
                assert lost <= {"scaling": {"list"}, "start": {"linear"}, "within_query": {"ranks"}}.get(a.name, set())
                assert b.default in b.choices
    study = Study(serve=["solr"])
    space = study.union_space()
    assert "list" not in space.distributions["ElasticRank.scaling"].choices  # type: ignore[attr-defined]
    assert space.distributions["LambdaMART.start"].choices == ("none",)  # type: ignore[attr-defined]
    space = Study(serve=["onnx"]).union_space()
    assert space.distributions["LambdaMART.start"].choices == ("none", "linear")  # type: ignore[attr-defined]
    assert "ranks" in space.distributions["LambdaMART.within_query"].choices  # type: ignore[attr-defined]


def test_solvers_that_cannot_be_loaded_are_left_out_or_refused() -> None:
    assert set(Study(serve=["lightgbm"]).solvers) == {"LambdaMART", "GBDTRanker", "SymmetricGBDT"}
    assert "RandomForestRanker" in Study(serve=["lightgbm"], solvers=["all"]).solvers
    assert not {"LambdaMART", "RankBoost"} & set(Study(serve=["liblinear"], solvers=["all"]).solvers)
    assert Study(serve=["onnx"]).solvers == Study().solvers
    with pytest.raises(ParameterError, match="models of RankSVM consist of weights, and lightgbm loads trees only"):
        Study(serve=["solr", "lightgbm"], solvers=["RankSVM"])
    with pytest.raises(ParameterError, match="models of LambdaMART consist of trees, and liblinear loads weights only"):
        Study(serve=["liblinear"], solvers=["LambdaMART"])
    with pytest.raises(ParameterError, match=r"'ElasticRank\.scaling' cannot be 'list'"):
        Study(serve=["solr"], space={"ElasticRank.scaling": "list"})


def test_systems_are_checked_and_kept(tmp_path: Path) -> None:
    assert Study(serve=["solr", "onnx", "solr"]).serve == ("solr", "onnx")
    with pytest.raises(ParameterError, match=r"serve='solar' is not a system.*Did you mean 'solr'"):
        Study(serve=["solar"])
    (tmp_path / "mine.toml").write_text('data = "api-search"\nserve = ["solr"]\n')
    assert Study.from_dict(toml_fields(tmp_path / "mine.toml")).serve == ("solr",)
    study = Study(serve=["solr"])
    assert Study.from_dict(study.as_dict()) == study


def test_a_study_for_other_systems_is_another_study() -> None:
    old = {name: value for name, value in Study().as_dict().items() if name != "serve"}  # before there was the setting
    assert setting_differences(old, Study().as_dict()) == []
    (result,) = setting_differences(old, Study(serve=["onnx"]).as_dict())
    assert result.text == "serve is [] there, ['onnx'] here" and not result.keeps_trials


def test_a_solver_of_all_kinds_can_be_made_in_the_served_space() -> None:
    served = set()
    for name in SOLVERS:
        for system in ("solr", "lightgbm", "liblinear"):
            if not can_load([system], SOLVERS[name].model_parts({})):
                continue
            defaults = {p.name: p.default for p in able_space(frozenset(), [system], name) if p.when is None}
            make(name, defaults).check_parameters()
            served.add(system)
    assert served == {"solr", "lightgbm", "liblinear"}


def test_estimators_of_the_user_that_become_our_models_are_served() -> None:
    sklearn = pytest.importorskip("sklearn.linear_model")
    ensemble = pytest.importorskip("sklearn.ensemble")
    neighbors = pytest.importorskip("sklearn.neighbors")
    parts = {}
    for kind in (sklearn.Ridge, ensemble.RandomForestRegressor, neighbors.KNeighborsRegressor):
        parts[kind.__name__] = CustomRanker.of(Registration(kind.__name__, kind, (), save="skops")).model_parts({})
    assert parts == {"Ridge": {LINEAR}, "RandomForestRegressor": {TREES}, "KNeighborsRegressor": {CUSTOM}}
