"""The declaration: fields checked, names normalised, TOML and Python the same. A preset sets what is not given, and
the record says so."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.registry import SOLVERS, STANDARD
from ranktune.tuner.gp.proposal import ACQUISITIONS
from ranktune.tuner.samplers.presets import PRESETS
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import Settings, toml_fields
from tests.support.commands import output_of
from tests.support.paths import ROOT

TOML = """
data = "train.txt"
metric = "NDCG@5"
solvers = ["ranksvm", "elasticrank"]
trials = 7

[space]
"RankSVM.C" = { low = 0.5, high = 2.0 }
"""


def test_toml_and_python_agree(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("")
    (tmp_path / "mine.toml").write_text(TOML)
    declared = Study.from_dict(toml_fields(tmp_path / "mine.toml"))
    space = {"RankSVM.C": {"low": 0.5, "high": 2.0}}
    assert declared == Study(
        name="mine",
        data=str(tmp_path / "train.txt"),
        metric="ndcg@5",
        solvers=("RankSVM", "ElasticRank"),
        trials=7,
        space=space,
    )


def test_a_dictionary_round_trips() -> None:
    study = Study(name="x", also=("map", "mrr"), folds=3, reading={"missing": "zero"})
    assert Study.from_dict(study.as_dict()) == study


def test_the_standard_solvers_compete_unless_others_are_named() -> None:
    assert Study().solvers == STANDARD
    assert Study(solvers=("all",)).solvers == tuple(SOLVERS)
    assert Study(solvers=("ranksvm", "all")).solvers[0] == "RankSVM"
    assert Study(solvers=("standard", "catboostranker")).solvers == (*STANDARD, "CatBoostRanker")


def test_a_progressive_plan_is_for_solvers_that_go_from_query_to_query() -> None:
    study = Study(plan="progressive")
    assert "ElasticRank" in study.solvers and "RankSVM" not in study.solvers
    with pytest.raises(ParameterError, match=r"RankSVM does not learn from query to query.*ElasticRank"):
        Study(plan="progressive", solvers=("RankSVM",))


def test_the_metric_of_the_study_is_not_reported_twice() -> None:
    assert Study(metric="map", also=("map", "mrr", "mrr")).metrics == ("map", "mrr")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"plan": "progresive"}, "progressive"),
        ({"permutations": 0}, "at least 1"),
        ({"sampler": "tompson"}, "Did you mean 'thompson'"),
        ({"acquisition": "tompson"}, "Did you mean 'thompson'"),
        ({"acquisition": "ei", "sampler": "tpe"}, "needs sampler='thompson'"),
        ({"seed": -1}, "at least 0"),
        ({"space": {"RankSVM.c": 1.0}}, "RankSVM.C"),
        ({"space": {"RankSVM.C": [1.0, -1.0]}}, "RankSVM.C.*cannot be -1.0"),
        ({"space": {"RankSVM.C": {"low": -1.0, "log": False}}}, "RankSVM.C.*cannot be -1.0"),
        ({"space": 3}, "a table of parameters"),
        ({"reading": "x"}, "a table of options"),
        ({"also": "map"}, "a list of texts"),
        ({"solvers": (1,)}, "a list of texts"),
        ({"sampler": 3}, "sampler=3: it must be text"),
        ({"refit": "no"}, "true or false"),
        ({"data": 5}, "data=5: it must be text"),
        ({"name": 3}, "name=3: it must be text"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Study(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["data = ", "\udcff"])
def test_what_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ParameterError, match="is not TOML"):
        Study.from_dict(toml_fields(tmp_path / "s.toml"))


SHIPPED = sorted((ROOT / "studies").glob("*.toml"))


@pytest.mark.parametrize(
    "file", [file for file in SHIPPED if not file.name.startswith("reproduce-")], ids=lambda f: f.stem
)
def test_every_shipped_study_is_declared_soundly(file: Path) -> None:
    study = Study.from_dict(toml_fields(file))
    assert study.name == file.stem
    assert Study.from_dict(study.as_dict()) == study


def test_columns_are_options_of_readers() -> None:
    study = Study(qid="session", drop=["a", "b*"], reading={"missing": "zero"})
    assert study.read_options == {"qid": "session", "drop": ("a", "b*"), "missing": "zero"}
    assert Study().read_options == {} and Study.from_dict(study.as_dict()) == study


def test_a_plan_by_time_keeps_to_one_split() -> None:
    assert Study(group_by_time="day").strict and Study(group_by_time="day").one_split and not Study().one_split
    for other in ({"folds": 3}, {"repeats": 2}, {"plan": "nested"}, {"plan": "progressive"}):
        with pytest.raises(ParameterError, match="group_by_time='day' scores trials on the latest queries alone"):
            Study(group_by_time="day", **other)


def test_the_acquisition_functions_are_those_of_the_optimiser() -> None:
    (acquisition,) = [setting for setting in declared(Settings) if setting.name == "acquisition"]
    assert acquisition.setting.choices == ACQUISITIONS


def test_a_declaration_is_imported_without_what_only_trials_need() -> None:
    """No optimiser, no solver, no exporter, no library that is slow to load."""
    program = "import sys, ranktune.tuner.study.declaration; print(*sys.modules)"
    loaded = set(output_of(program).split())
    slow = {"numba", "sklearn", "lightgbm", "pyarrow", "polars", "sqlalchemy", "mlflow"}
    ours = (
        "ranktune.tuner.gp.",
        "ranktune.solvers.linear.",
        "ranktune.solvers.boosting.",
        "ranktune.solvers.export.onnx",
    )
    assert not loaded & slow
    assert not [name for name in loaded if name.startswith(ours)]


LISTED = "solvers Ranker, acquisition thompson, trials 30"


def test_the_study_of_the_paper_is_one_word() -> None:
    study = Study(preset="ElasticRank")
    assert (study.preset, study.solvers, study.sampler) == ("elasticrank", ("Ranker",), "thompson")
    assert (study.acquisition, study.trials, study.n_trials) == ("thompson", 30, 30)
    assert PRESETS["elasticrank"].unchanged(vars(study)) == str(PRESETS["elasticrank"]) == LISTED
    assert Study(preset="elasticrank", timeout=60).trials == 30


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"trials": 5}, "solvers Ranker, acquisition thompson"),
        ({"acquisition": "mixed"}, "solvers Ranker, trials 30"),
        ({"solvers": ["RankSVM", "Ranker"]}, "acquisition thompson, trials 30"),
        ({"sampler": "tpe"}, "solvers Ranker, trials 30"),
    ],
)
def test_what_is_given_takes_precedence(given: dict[str, Any], kept: str) -> None:
    study = Study(preset="elasticrank", **given)
    assert PRESETS["elasticrank"].unchanged(vars(study)) == kept
    assert Study.from_dict(study.as_dict()) == study  # a declaration that is read stays as it is
    assert replace(study, trials=50).trials == 50
