"""Solvers of the user's: how they are made, fitted, saved and loaded."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktune import register_solver
from ranktune.solvers import LinearModel, load_model
from ranktune.solvers.core import table
from ranktune.solvers.core.errors import DataError, ModelFormatError, ParameterError, RankTuneWarning
from ranktune.solvers.core.registrations import GROUP, REGISTERED, described, restore
from ranktune.solvers.core.space import Choice, Float, Int
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.best_feature import BestFeature
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.custom import CustomModel
from ranktune.solvers.registry import SOLVERS, custom_names, make, solver_class
from tests.support.custom_solvers import MeanOfQuery, PowerRidge


def queries(seed: int = 0) -> Queries:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, 12, 30)
    X = generator.normal(size=(lengths.sum(), 4))
    y = np.digitize(X[:, 0] - X[:, 2] + generator.normal(size=len(X)), [0.0, 1.0])
    qid = generator.permutation(np.repeat(np.arange(30), lengths))
    return Queries.from_arrays(X, y, qid=qid)


def test_it_fits_and_scores_as_the_class_alone() -> None:
    register_solver("Mine", PowerRidge)
    data = queries()
    ranker = make("mine", {"alpha": 3.0, "power": 2}, seed=0).fit(data)
    alone = PowerRidge(3.0, 2).fit(data.features, data.grades)
    np.testing.assert_array_equal(ranker.predict(data), data.in_caller_order(alone.predict(data.features)))
    assert repr(ranker).startswith("Mine(") and "alpha=3.0" in repr(ranker)


def test_the_space_is_that_of_the_class_with_its_defaults() -> None:
    register_solver("Mine", PowerRidge)
    assert solver_class("Mine").space == (Float("alpha", 1e-3, 1e3, 1.0, log=True), Int("power", 1, 3, 1))


def test_a_default_outside_is_replaced_by_the_middle() -> None:
    register_solver("Near", KNeighborsRegressor(), [Int("n_neighbors", 10, 1000, log=True)], save="skops")
    assert solver_class("Near").space == (Int("n_neighbors", 10, 1000, 100, log=True),)


def test_the_space_may_be_one_of_optuna() -> None:
    space = {
        "alpha": FloatDistribution(0.1, 10.0, log=True),
        "power": IntDistribution(1, 3),
        "kind": CategoricalDistribution(("a", "b")),
    }

    def build(alpha: float, power: int, kind: str = "b") -> PowerRidge:
        return PowerRidge(alpha, power)

    register_solver("Mine", build, space, load=PowerRidge.load)
    assert solver_class("Mine").space == (
        Float("alpha", 0.1, 10.0, 1.0, log=True),
        Int("power", 1, 3, 2),
        Choice("kind", ("a", "b"), "b"),
    )
    with pytest.raises(ParameterError, match="steps of 2"):
        register_solver("Mine", build, {"power": IntDistribution(1, 3, step=2)}, load=PowerRidge.load)
    with pytest.raises(ParameterError, match="give a FloatDistribution"):
        register_solver("Mine", build, {"power": 3}, load=PowerRidge.load)


def test_predict_may_know_the_queries(tmp_path: Path) -> None:
    register_solver("Mine", MeanOfQuery)
    data = queries()
    ranker = make("Mine", {}, seed=0).fit(data)
    alone = MeanOfQuery().fit(data.features, data.grades, qid=data.query_of_document)
    expected = data.in_caller_order(alone.predict(data.features, qid=data.query_of_document))
    np.testing.assert_allclose(ranker.predict(data), expected)
    ranker.as_model().save(tmp_path / "model.json")
    np.testing.assert_allclose(load_model(tmp_path / "model.json").predict(data), expected)


@pytest.mark.parametrize("taken", ["qid", "group", "group_id", "nothing"])
def test_fit_gets_the_queries_under_the_name_that_it_has(taken: str) -> None:
    seen: dict[str, Any] = {}

    class Spy(PowerRidge):
        pass

    if taken == "qid":
        Spy.fit = lambda self, X, y, qid: seen.update(qid=qid) or PowerRidge.fit(self, X, y)  # type: ignore
    elif taken == "group":
        Spy.fit = lambda self, X, y, group: seen.update(group=group) or PowerRidge.fit(self, X, y)  # type: ignore
    elif taken == "group_id":
        Spy.fit = lambda self, X, y, group_id: seen.update(group_id=group_id) or PowerRidge.fit(self, X, y)  # type: ignore
    register_solver("Spy", Spy)
    data = queries()
    make("Spy", {}, seed=0).fit(data)
    if taken == "nothing":
        assert not seen
    else:
        expected = data.lengths if taken == "group" else data.query_of_document
        np.testing.assert_array_equal(seen[taken], expected)


def test_a_pipeline_is_copied_and_its_last_step_gets_the_queries() -> None:
    class Last(MeanOfQuery):
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"alpha": self.alpha, "power": self.power}

        def set_params(self, **given: Any) -> Last:
            vars(self).update(given)
            return self

        def predict(self, X: Any) -> Any:  # type: ignore[override]
            return PowerRidge.predict(self, X)

    pipe = make_pipeline(StandardScaler(), Last())
    register_solver("Pipe", pipe, [Float("last__alpha", 0.1, 10.0)], save=lambda model, path: None, load=lambda path: 0)
    data = queries()
    ranker: Any = make("Pipe", {"last__alpha": 2.0}, seed=0).fit(data)
    assert ranker.estimator_.named_steps["last"].alpha == 2.0
    assert pipe.named_steps["last"].alpha == 1.0 and not hasattr(pipe.named_steps["last"], "weights")


def test_a_seed_is_given_to_what_has_none() -> None:
    from sklearn.ensemble import RandomForestRegressor

    data = queries()
    register_solver("Forest", RandomForestRegressor, [Int("max_depth", 2, 5)])
    register_solver("Fixed", partial(RandomForestRegressor, random_state=7), [Int("max_depth", 2, 5)])
    a, b, c = (make("Forest", {}, seed=seed).fit(data).predict(data) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    fixed = [make("Fixed", {}, seed=seed).fit(data).predict(data) for seed in (1, 2)]
    np.testing.assert_array_equal(fixed[0], fixed[1])


def test_a_subclass_of_our_base_is_taken_as_it_is() -> None:
    class Ours(BestFeature):
        pass

    register_solver("Ours", Ours)
    assert solver_class("ours") is Ours
    register_solver("Other", Ours, space=())
    assert issubclass(solver_class("Other"), Ours) and solver_class("Other").space == ()
    assert isinstance(make("Other", {}, 0).fit(queries()).as_model(), LinearModel)


def test_its_models_are_saved_by_the_functions_of_the_class(tmp_path: Path) -> None:
    register_solver("Mine", PowerRidge)
    data = queries()
    model = make("Mine", {"alpha": 3.0}, seed=0).fit(data).as_model()
    assert isinstance(model, CustomModel) and model.bytes == len(model.saved)
    model = pickle.loads(pickle.dumps(model))  # as it passes between processes
    model.save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(read.predict(data), model.predict(data))
    assert read.parameters == {"alpha": 3.0, "random_state": 0} and read.solver == "Mine"
    (beside,) = set(tmp_path.iterdir()) - {tmp_path / "model.json"}
    assert beside.suffix == ".bin" and b"[3.0, 1, [" in beside.read_bytes()
    model.save(tmp_path / "model.json")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    register_solver("Mine", PowerRidge)
    make("Mine", {}, seed=0).fit(queries()).as_model().save(tmp_path / "model.json")
    (beside,) = tmp_path.glob("*.bin")
    raw = bytearray(beside.read_bytes())
    raw[-2] ^= 1
    beside.write_bytes(raw)
    with pytest.raises(ModelFormatError, match="not the file that"):
        load_model(tmp_path / "model.json")


def test_a_file_is_loaded_only_by_what_is_registered(tmp_path: Path) -> None:
    register_solver("Mine", PowerRidge)
    make("Mine", {}, seed=0).fit(queries()).as_model().save(tmp_path / "model.json")
    REGISTERED.clear()
    with pytest.raises(ModelFormatError, match=r"'Mine', which is not registered.*register_solver"):
        load_model(tmp_path / "model.json")


def test_blends_hold_it_beside_the_others(tmp_path: Path) -> None:
    register_solver("Mine", PowerRidge)
    register_solver("Other", MeanOfQuery)
    data = queries()
    names = ("Mine", "RidgeRanker", "Other", "RankBoost")
    members = [make(name, {}, seed=0).fit(data).as_model() for name in names]
    blend = blended(members, [0.5, 1.0, 2.0, 0.25], "Blend", {"Mine": 0.5})
    assert isinstance(blend, BlendModel)
    expected = sum(f * model.predict(data) for f, model in zip([0.5, 1.0, 2.0, 0.25], members, strict=True))
    np.testing.assert_allclose(blend.predict(data), expected)
    blend.save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(read.predict(data), blend.predict(data))
    nested = blended([read, members[0]], [2.0, 1.0], "Blend", {})
    np.testing.assert_allclose(nested.predict(data), 2.0 * expected + members[0].predict(data))


def test_what_it_cannot_be_used_for_is_said_at_once() -> None:
    with pytest.raises(ParameterError, match="is a solver of RankTune"):
        register_solver("RankSVM", PowerRidge)
    with pytest.raises(ParameterError, match="must be letters, digits"):
        register_solver("my solver", PowerRidge)
    with pytest.raises(ParameterError, match="none of solver, all"):
        register_solver("Blend", PowerRidge)
    with pytest.raises(ParameterError, match="declares no search space"):
        register_solver("Mine", Ridge)
    with pytest.raises(ParameterError, match="'Mine' makes a dict, which has no fit"):
        register_solver("Mine", dict, ())
    with pytest.raises(ParameterError, match="unexpected keyword argument 'tempo'"):
        register_solver("Mine", PowerRidge, [Float("tempo", 0.1, 1.0)])
    with pytest.raises(ParameterError, match=r"could not be delivered: a KNeighborsRegressor .* save='skops' does"):
        register_solver("Mine", KNeighborsRegressor, [Int("n_neighbors", 1, 5)])
    with pytest.raises(ParameterError, match="save='pickle' is unknown"):
        register_solver("Mine", PowerRidge, save="pickle")
    assert "Mine" not in REGISTERED
    with pytest.raises(ParameterError, match=r"no solver 'Mine'.*ranktune.register_solver adds your own"):
        solver_class("Mine")


@pytest.mark.parametrize("returned", [[[1.0, 2.0]], ["a"], [float("nan")]])
def test_scores_that_are_none_fail(returned: Any) -> None:
    class Odd(PowerRidge):
        def predict(self, X: Any) -> Any:
            return np.array(returned * len(X))

    register_solver("Odd", Odd)
    data = queries()
    ranker = make("Odd", {}, seed=0).fit(data)
    with pytest.raises(DataError, match="the predict of Odd returned"):
        ranker.predict(data)


def test_a_save_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    class Elsewhere(PowerRidge):
        def save(self, path: Path) -> None:
            np.savez(path, self.weights)

    register_solver("Mine", Elsewhere)
    with pytest.raises(ModelFormatError, match=r"wrote model\.npz: it must write one file of exactly that path"):
        make("Mine", {}, seed=0).fit(queries()).as_model().save(tmp_path / "model.json")


def test_sparse_features_reach_it_as_they_are() -> None:
    register_solver("Ridge_", Ridge, [Float("alpha", 0.1, 10.0)])
    data = queries()
    thin = replace(data, features=sparse.csr_array(data.features))
    dense, csr = (make("Ridge_", {}, seed=0).fit(layout).predict(layout) for layout in (data, thin))
    np.testing.assert_allclose(dense - dense.mean(), csr - csr.mean(), atol=1e-2)


def test_a_class_is_named_by_its_import_path() -> None:
    assert solver_class("tests.support.custom_solvers:PowerRidge").__name__ == "PowerRidge"
    assert solver_class("PowerRidge").space[0].name == "alpha"
    with pytest.raises(ParameterError, match=r"'tests.support.custom_solvers:Nothing' cannot be imported"):
        solver_class("tests.support.custom_solvers:Nothing")


def test_installed_packages_offer_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("Packaged", "tests.support.custom_solvers:PowerRidge", GROUP)
    broken = EntryPoint("Broken", "tests.support.custom_solvers:Nothing", GROUP)
    points = {point.name: point, broken.name: broken}
    monkeypatch.setattr(table, "offered", lambda group: points if group == GROUP else {})
    assert make("packaged", {"alpha": 2.0}, 0).fit(queries()).predict(queries()).std() > 0.0
    with pytest.raises(ParameterError, match="'Broken' cannot be imported from"):
        solver_class("Broken")
    assert "Packaged" not in SOLVERS
    with pytest.warns(RankTuneWarning, match=r"'Broken' cannot be imported .* It is left out"):
        assert custom_names() == ("Packaged",)


def test_a_described_solver_is_resolved() -> None:
    register_solver("Mine", PowerRidge, {"alpha": FloatDistribution(0.1, 2.0)})
    before = REGISTERED.pop("Mine")
    restore("Mine", described(before))
    assert REGISTERED["Mine"] == before


def test_one_without_a_path_says_what_to_do() -> None:
    register_solver("Mine", Ridge(), {"alpha": FloatDistribution(0.1, 2.0)})
    description = described(REGISTERED["Mine"])
    restore("Mine", description)  # it is known
    REGISTERED.clear()
    with pytest.raises(ParameterError, match=r"'Mine' is not registered here, and its make has no import path"):
        restore("Mine", description)
    description["make"] = "gone_away.rankers:Mine"
    with pytest.raises(ParameterError, match=r"'gone_away.rankers:Mine' cannot be imported"):
        restore("Mine", description)
