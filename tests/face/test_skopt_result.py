"""The trials of a study as scikit-optimize draws them."""

import pytest
from skopt.space import Categorical, Real

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError
from tests.support.engine_samples import graded

SPACE = {
    "RankSVM.C": Real(1e-2, 1e2, "log-uniform"),
    "RankSVM.loss": Categorical(["l2"]),
    "RidgeRanker.alpha": {"low": 0.1, "high": 10.0},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Of a study by scikit-optimize, which has made several suggestions."""
    solvers, home = ("RankSVM", "RidgeRanker"), tmp_path_factory.mktemp("home")
    return ranktune.tune(graded(24, 0), solvers=solvers, trials=11, sampler="skopt", space=SPACE, name="s", home=home)


def test_trials_are_points_of_the_space_with_negative_values(result: StudyResult) -> None:
    found = result.skopt_result()
    trials = result.optuna_study.trials
    assert len(found.x_iters) == len(found.func_vals) == len(trials) == 11
    assert found.fun == min(found.func_vals) == -result.optuna_study.best_value
    names = [dimension.name for dimension in found.space]
    assert names == list(ranktune.Study(solvers=["RankSVM", "RidgeRanker"], space=SPACE).union_space().distributions)
    best = dict(zip(names, found.x, strict=True))
    assert best.items() >= result.optuna_study.best_params.items()
    assert found.space["RankSVM.C"][1].prior == "log-uniform" and found.space["RankSVM.loss"][1].is_constant
    assert found.specs["args"]["metric"] == "ndcg@10" and len(found.models) == 1


def test_inactive_parameters_are_at_the_centre(result: StudyResult) -> None:
    found = result.skopt_result()
    points = [dict(zip([d.name for d in found.space], x, strict=True)) for x in found.x_iters]
    centres = {"RankSVM.C": "RidgeRanker", "RidgeRanker.alpha": "RankSVM"}
    for name, other in centres.items():
        values = [point[name] for point in points if point["solver"] == other]
        assert values == pytest.approx([1.0] * len(values)) and values, name


def test_the_plots_of_scikit_optimize_draw_it(result: StudyResult) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from skopt.plots import plot_convergence, plot_evaluations, plot_objective

    found = result.skopt_result()
    (line,) = [line for line in plot_convergence(found).lines if len(line.get_ydata()) == 11]
    assert line.get_ydata()[-1] == -result.optuna_study.best_value
    free = [dimension.name for dimension in found.space if not dimension.is_constant]
    for axes in (
        plot_evaluations(found, plot_dims=free[:3]),
        plot_objective(found, plot_dims=free[:3], n_points=5, n_samples=20),
    ):
        assert len([each for each in axes.figure.axes if each.collections or each.lines or each.patches]) >= 6
    pyplot.close("all")


def test_without_scikit_optimize_the_remedy_is_named(result: StudyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "is_installed", lambda library: library != "skopt")
    with pytest.raises(ParameterError, match="scikit-optimize is not installed: pip install scikit-optimize"):
        result.skopt_result()
