"""Models that score all documents of a query alike: studies end with them, and all that is done with models works."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import ranktune
from ranktune.command_line.study_commands import _show
from ranktune.dashboards.web.page import write_report
from ranktune.solvers.abilities import LIST
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.check import agreement
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from ranktune.tuner.evaluation.evaluate import EvaluationRun
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.selection.results import load_result
from tests.support.reports import unpacked_page

NAMES, BOTH = ("a", "b", "c"), ("RidgeRanker", "GBDTRanker")
ZERO = LinearModel(np.zeros(3), "RidgeRanker", feature_names=NAMES, metric="ndcg@10")
LEAF = TreeModel(joined([one_tree([], [], [], [], [0.5])]), 3, "GBDTRanker", feature_names=NAMES, metric="ndcg@10")
DEGENERATE: dict[str, Model] = {
    "zero weights": ZERO,
    "zero weights of scaled features": replace(ZERO, list_scaling=True),
    "zero weights of missing values": replace(ZERO, missing=np.zeros(3)),
    "a tree without a split": LEAF,
    "trees without a value": replace(LEAF, trees=joined([one_tree([], [], [], [], [0.0])] * 3)),
    "a split into equal leaves": replace(LEAF, trees=joined([one_tree([1], [0.0], [-1], [-2], [0.5, 0.5])])),
    "a blend of nothing": BlendModel((ZERO, LEAF), "Blend", feature_names=NAMES, metric="ndcg@10"),
}


class Constant:
    """A solver whose models score all documents alike."""

    def fit(self, X: Any, y: Floats) -> Self:
        return self

    def predict(self, X: Any) -> Floats:
        return np.zeros(len(X))

    def save(self, path: Path) -> None:
        path.write_text("nothing")

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path, np.random.default_rng(0).normal(size=(200, 3)))


def written(folder: Path, X: Floats) -> Path:
    """A file of queries with random grades."""
    grades = np.random.default_rng(1).integers(0, 3, size=len(X))
    rows = [f"q{k // 8},{grade},{','.join(map(str, x))}" for k, (grade, x) in enumerate(zip(grades, X, strict=True))]
    (folder / "data.csv").write_text("\n".join(["qid,grade,a,b,c", *rows]))
    return folder / "data.csv"


def check_study(data: Path, *, alike: bool = True, **options: Any) -> None:
    """Check that a study has all that studies have, and nothing left out: a warning is an error here."""
    result = ranktune.tune(data, jobs=1, sampler="random", home=data.parent, **options)
    folder = Path(result.folder)
    for end in (result, ranktune.resume(result.study, home=data.parent, jobs=1)):
        assert end.left_out == ()
        _show(load_result(folder / "result.json"), as_json=False)
        assert "Left out" not in unpacked_page(write_report(folder, folder / "out.html").read_text())
        scores = end.best_model.predict(ranktune.read(data)).reshape(25, 8)
        assert not alike or np.ptp(scores, axis=1).max() <= 1e-12


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_study_that_ends_with_one_is_complete(name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(self: Final, run: EvaluationRun) -> Model:
        return DEGENERATE[name].replaced(solver=run.task.solver)

    monkeypatch.setattr(Final, "_fitted", fitted)
    for serve in [[]] if LIST in needs_of(DEGENERATE[name]) else [[], ["vespa"]]:
        check_study(data, name=f"s{len(serve)}", solvers=BOTH, trials=2, baseline="column:a", serve=serve)


@pytest.mark.parametrize("timeout", [None, 6.0], ids=["trials", "rescored"])
def test_a_study_all_of_whose_trials_score_documents_alike_is_complete(timeout: float | None, tmp_path: Path) -> None:
    ranktune.register_solver("Constant", Constant, space=(), save=Constant.save, load=Constant.load)
    solvers = [*BOTH, "BestFeature", "ElasticRank", "LambdaMART", "SymmetricGBDT", "Constant"]
    of_queries = np.repeat(np.random.default_rng(0).normal(size=(25, 3)), 8, axis=0)
    with pytest.warns(RankTuneWarning, match="distinguishes none"):
        check_study(written(tmp_path, of_queries), name="s", solvers=solvers, trials=7, timeout=timeout)


def test_a_study_whose_metric_is_defined_on_no_test_query_is_complete(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data.parent / "test.csv").write_text("qid,grade,a,b,c\n1,0,1,2,3\n1,0,4,5,6")
    check_study(data, name="s", solvers=BOTH, trials=2, test=data.parent / "test.csv", baseline="column:a", alike=False)
    assert "defined on no test" in capsys.readouterr().out


@pytest.mark.parametrize("name", DEGENERATE)
def test_it_is_explained_compared_saved_and_exported(name: str, data: Path) -> None:
    model, queries = DEGENERATE[name], ranktune.read(data)
    model.save(data.parent / "model.json")
    loaded = ranktune.load_model(data.parent / "model.json")
    assert loaded.predict(queries).tolist() == model.predict(queries).tolist()
    assert all(abs(entry["loss"]) < 1e-12 for entry in ranktune.explain(model, data)["features"])
    explained = ranktune.explain(model, data, query="q3")
    assert explained["difference"] == 0.0 and not any(part["contribution"] for part in explained["contributions"])
    assert not any(entry["effect"] for entry in ranktune.explain(model, data, effect_of="b")["effects"])
    assert ranktune.compare(model, ZERO, queries).difference == 0.0
    for format in FORMATS:
        if not FORMATS.find(format).holds(needs_of(model)):
            with pytest.raises(ParameterError):
                export(model, format)
        elif format in ("onnx", "lightgbm", "python"):
            agreed = agreement(model, format, export(model, format), queries)
            assert agreed.same == agreed.queries and agreed.difference == 0.0
        else:
            assert export(model, format)
