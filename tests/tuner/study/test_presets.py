"""A preset sets what is not given, and the record says so."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.samplers.presets import PRESETS
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import Settings
from tests.support.commands import called, letor, study_file
from tests.support.commands import ranktune as run

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


def test_an_unknown_preset_names_the_nearest_and_all(tmp_path: Path) -> None:
    text = "there is no preset 'elasticrnk'. Did you mean 'elasticrank'? Known: elasticrank."
    with pytest.raises(ParameterError, match=re.escape(text)):
        Study(preset="elasticrnk")
    assert text in run("tune", study_file(tmp_path / "s.toml", preset="elasticrnk"), cwd=tmp_path, check=2).stderr


def test_a_preset_sets_only_settings_without_a_value() -> None:
    """Otherwise a value that is given could not be distinguished from the default."""
    defaults = {setting.name: setting.default for setting in declared(Settings)}
    assert all(not defaults[name] for preset in PRESETS.values() for name in preset.values)


def test_help_says_what_each_preset_sets() -> None:
    text = " ".join((ranktune.tune.__doc__ or "").split())
    assert f"elasticrank: {PRESETS.help('elasticrank')} ({LISTED})" in text


def test_the_command_line_shows_and_records_what_the_preset_sets(tmp_path: Path) -> None:
    data = letor(tmp_path / "train.txt", 20, 0)
    file = study_file(tmp_path / "s.toml", data=data.name, preset="elasticrank")
    done = called("tune", file, "--trials", "2", "--home", str(tmp_path), "--jobs", "1", "--json")
    assert done.exit_code == 0, done.stderr
    assert "preset elasticrank: solvers Ranker, acquisition thompson\n" in done.stderr
    declared_study = json.loads((tmp_path / "s" / "study.json").read_text())["study"]
    assert {name: declared_study[name] for name in ("preset", "solvers", "acquisition", "trials")} == {
        "preset": "elasticrank",
        "solvers": ["Ranker"],
        "acquisition": "thompson",
        "trials": 2,
    }
    same = ranktune.tune(data, solvers=["Ranker"], acquisition="thompson", trials=2, name="s", home=tmp_path, jobs=1)
    assert same.trials == 2
