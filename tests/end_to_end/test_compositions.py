"""A study of compositions: what won is named and recorded, and what is delivered can be exported."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import EVALUATORS, agreement
from ranktune.solvers.models.base import load_model
from ranktune.tuner.selection.results import load_result
from tests.support.engine_samples import graded

PARTS = ("loss", "penalty", "optimizer")


def tuned(home: Path, **settings: Any) -> Any:
    return ranktune.tune(graded(30, 0), test=graded(30, 1), home=home, name="s", jobs=1, seed=0, **settings)


def test_a_study_says_what_ranker_was_composed_of(tmp_path: Path) -> None:
    result = tuned(tmp_path, solvers=["Ranker", "RankSVM"], trials=14)
    (row,) = (row for row in result.leaderboard if row.solver == "Ranker")
    assert row.params is not None and set(PARTS) <= set(row.params)
    kept = load_result(Path(result.folder) / "result.json")
    (saved,) = (row for row in kept.leaderboard if row.solver == "Ranker")
    assert saved.params is not None
    assert {part: saved.params[part] for part in PARTS} == {part: row.params[part] for part in PARTS}
    assert f"Ranker does best composed of {row.params['loss']} + " in " ".join(kept.conclusion.details)
    assert len({failure.error for failure in result.failures}) == 0


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_a_tuned_elastic_rank_exports_to_every_format(scaling: str, tmp_path: Path) -> None:
    result = tuned(tmp_path, solvers=["ElasticRank"], trials=4, space={"ElasticRank.scaling": scaling})
    model, data = load_model(result.model), graded(30, 1)
    for format in (name for name, declared in FORMATS.items() if declared.linear):
        content = export(model, format)
        if format in EVALUATORS and (format != "onnx" or find_spec("onnxruntime")):
            actual = agreement(model, format, content, data)
            assert actual.same == actual.queries
            assert actual.difference < 1e-5


def test_a_scaling_that_there_is_not_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"'ElasticRank\.scaling' cannot be 'lists'\. Did you mean 'list'"):
        tuned(tmp_path, solvers=["ElasticRank"], trials=2, space={"ElasticRank.scaling": "lists"})
    with pytest.raises(ParameterError, match=r"cannot be 'l3'.*Known: elastic_net, l1, l2, none"):
        tuned(tmp_path, solvers=["Ranker"], trials=2, space={"Ranker.penalty": ["l3"]})
