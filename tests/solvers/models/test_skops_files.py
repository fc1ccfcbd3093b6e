"""Files of skops run no code: what they may name, and what of strangers is refused before anything is loaded."""

from __future__ import annotations

import importlib
import io
import json
import operator
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.utils._testing import check_output

from ranktune import register_solver
from ranktune.solvers import load_model
from ranktune.solvers.core.arrays import dense
from ranktune.solvers.core.errors import ModelFormatError, ParameterError
from ranktune.solvers.core.registrations import REGISTERED, described, restore
from ranktune.solvers.core.space import Choice
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.custom import CustomModel
from ranktune.solvers.registry import make as make_solver
from tests.support.commands import called, succeeded, write_letor


def io_of_skops() -> Any:
    """Return the module, which looks through all modules when it is loaded."""
    return importlib.import_module("skops.io")


def queries() -> Queries:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 4))
    X[:, 3] = np.arange(120) % 4
    return Queries.from_arrays(X, np.digitize(X[:, 0] - X[:, 2], [-0.5, 0.5]) + 1.0, group=[10] * 12)


def fitted_near() -> Any:
    data = queries()
    return KNeighborsRegressor().fit(data.features, data.grades)


def written(folder: Path, estimator: Any) -> Path:
    """The model of a stranger, who writes with skops whatever an estimator holds."""
    register_solver("Near", KNeighborsRegressor, [], save=io_of_skops().dump, load=io_of_skops().load)
    path = folder / "stranger.json"
    CustomModel(estimator, 4, "Near", solver="Near").save(path)
    register_solver("Near", KNeighborsRegressor, [], save="skops")
    return path


ESTIMATORS: dict[str, Any] = {
    "neighbours": KNeighborsRegressor(),
    "balls": KNeighborsRegressor(algorithm="ball_tree", metric="manhattan"),
    "forest": RandomForestRegressor(3, random_state=0),
    "histograms": HistGradientBoostingRegressor(max_iter=3),
    "absolute": HistGradientBoostingRegressor(max_iter=3, loss="absolute_error"),
    "network": make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=4, solver="lbfgs", max_iter=5000)),
    "vectors": SVR(),
    "scaled": make_pipeline(StandardScaler(), Ridge()),
    "boosted": GradientBoostingRegressor(n_estimators=3, loss="huber"),
    "process": GaussianProcessRegressor(RBF() + WhiteKernel()),
    "plain process": GaussianProcessRegressor(random_state=0),
    "columns": make_pipeline(
        ColumnTransformer(
            [("s", StandardScaler(), [0]), ("p", "passthrough", slice(1, 2)), ("o", OneHotEncoder(), [3])],
            remainder="passthrough",
        ),
        KNeighborsRegressor(),
    ),
    "target": TransformedTargetRegressor(KNeighborsRegressor(), transformer=StandardScaler()),
    "plain target": TransformedTargetRegressor(SVR()),
    "bagging": BaggingRegressor(n_estimators=3, random_state=0),
    "stack": StackingRegressor([("a", KNeighborsRegressor()), ("b", SVR())], final_estimator=SVR(), cv=KFold(3)),
    "selected": make_pipeline(SelectKBest(f_regression, k=2), SVR()),
    "searched": GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [2, 3]}),
}


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_registered_estimators_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    register_solver("Mine", ESTIMATORS[name], [], save="skops")
    data = queries()
    ranker: Any = make_solver("Mine", {}, 0).fit(data)
    model = CustomModel(ranker.estimator_, data.n_features, "Mine", solver="Mine")
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(data), model.predict(data))


def with_attribute(make: Callable[[list[str]], Any]) -> Callable[[list[str]], Any]:
    def made(command: list[str]) -> Any:
        estimator = fitted_near()
        estimator.__sklearn_is_fitted__ = make(command)  # predict calls it
        return estimator

    return made


ATTACKS: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "partial": (with_attribute(lambda command: partial(check_output, command)), "functools.partial"),
    "function": (with_attribute(lambda command: check_output), "check_output"),
    "built-in function": (with_attribute(lambda command: os.abort), "abort"),
    "bound method": (with_attribute(lambda command: fitted_near().predict), "KNeighborsRegressor"),
    "operator": (with_attribute(lambda command: operator.methodcaller("predict", 1)), "methodcaller"),
    "ufunc": (with_attribute(lambda command: np.exp), "exp"),
    "type": (with_attribute(lambda command: subprocess.Popen), "Popen"),
    "transformer of a function": (
        with_attribute(lambda command: FunctionTransformer(check_output, kw_args={"args": command})),
        "FunctionTransformer|check_output",
    ),
    "another estimator": (with_attribute(lambda command: Ridge()), "Ridge"),
    "another whole": (lambda command: make_pipeline(KNeighborsRegressor()).fit(np.eye(4), np.ones(4)), "Pipeline"),
    "a part as the whole": (lambda command: fitted_near()._tree, "does not hold"),
}


@pytest.mark.parametrize("name", list(ATTACKS))
def test_files_of_strangers_are_refused_and_run_nothing(name: str, tmp_path: Path) -> None:
    make, result = ATTACKS[name]
    trace = tmp_path / "trace"
    path = written(tmp_path, make(["touch", str(trace)]))
    with pytest.raises(ModelFormatError, match=result) as refused:
        load_model(path).predict(queries())
    assert not trace.exists()
    message = str(refused.value)
    assert message.startswith(f"{path}: the file of 'Near'") and ("rain" in message or "save= and load=" in message)


def io_schema(value: Any) -> Any:
    with zipfile.ZipFile(io.BytesIO(io_of_skops().dumps(value))) as archive:
        return json.loads(archive.read("schema.json"))


def rewritten(path: Path, change: Callable[[Any], None], compression: int = zipfile.ZIP_STORED) -> None:
    """Change the tree of nodes in the file of skops of the model at path, and its digest in the manifest."""
    manifest = json.loads(path.read_text())
    (beside,) = path.parent.glob("*.bin")
    with zipfile.ZipFile(beside) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    change(schema)
    members["schema.json"] = json.dumps(schema).encode()
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    REGISTERED.pop("Near")
    register_solver(
        "Near", KNeighborsRegressor, [], save=lambda estimator, file: Path(file).write_bytes(raw.getvalue()), load=str
    )
    beside.unlink()
    CustomModel(fitted_near(), 4, "Near", solver=manifest["solver"]).save(path)
    register_solver("Near", KNeighborsRegressor, [], save="skops")


def popen(loader: str, command: list[str]) -> Any:
    content = io_schema((command,))
    return {"__class__": "Popen", "__module__": "subprocess", "__loader__": loader, "content": content}


def nodes() -> list[Any]:
    """Return nodes that skops would not write; it is loaded here, and not when tests are collected."""
    disguised = io_schema(partial(check_output, ["touch", "trace"]))
    disguised["content"]["func"].update(__module__="sklearn.utils._testing")
    return [
        popen("ConstructorFromReduceNode", ["touch", "trace"]),
        popen("ListNode", ["touch", "trace"]) | {"content": [io_schema("touch"), io_schema("trace")]},
        {"__class__": "KNeighborsRegressor", "__module__": "sklearn.neighbors._regression", "__loader__": "ListNode"}
        | {"content": []},
        {"__class__": "mean", "__module__": "numpy", "__loader__": "FunctionNode"},
        {"__class__": "check_output", "__module__": "sklearn.utils._testing", "__loader__": "FunctionNode"},
        {"__class__": "dict", "__module__": "builtins", "__loader__": "CachedNode", "__id__": 1},
        {"__class__": "eval", "__module__": "builtins", "__loader__": "TypeNode"},
        {"__class__": "KNeighborsRegressor", "__module__": "sklearn.neighbors._regression"}  # a name of what is trusted
        | {"__loader__": "OperatorFuncNode", "attrs": io_schema((["touch", "trace"],))},
        {"__class__": "methodcaller", "__module__": "operator", "__loader__": "OperatorFuncNode"}
        | {"attrs": io_schema(("predict",))},
        {"__class__": "KNeighborsRegressor", "__module__": "sklearn.neighbors._regression", "__loader__": "MethodNode"}
        | {"content": {"func": "__init__", "obj": io_schema(KNeighborsRegressor())}},
        {"__class__": ["dict"], "__module__": None, "__loader__": ["DictNode"]},
        disguised | {"__class__": "KNeighborsRegressor", "__module__": "sklearn.neighbors._regression"},
    ]


@pytest.mark.parametrize("number", range(12))
def test_nodes_that_skops_would_not_write_are_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    node = nodes()[number]
    path = written(tmp_path, fitted_near())
    rewritten(path, lambda schema: schema["content"]["content"].update(n_jobs=node))
    with pytest.raises(ModelFormatError, match=r"stranger\.json: the file of 'Near' holds"):
        load_model(path)
    assert not (tmp_path / "trace").exists()


def test_a_file_that_could_grow_or_names_functions_elsewhere_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, fitted_near())
    rewritten(path, lambda schema: None)
    load_model(path)
    rewritten(path, lambda schema: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFormatError, match="is compressed"):
        load_model(path)
    rewritten(path, lambda schema: schema.update(protocol=0))
    with pytest.raises(ModelFormatError, match="first format of skops"):
        load_model(path)


class Bomb:
    """Makes a file if it is ever unpickled."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("trace"),))


def test_pickles_in_place_of_a_file_or_in_it_are_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Bomb())
    register_solver("Near", KNeighborsRegressor, [], save=lambda _, file: file.write_bytes(pickled), load=str)
    CustomModel(fitted_near(), 4, "Near", solver="Near").save(tmp_path / "pickled.json")
    register_solver("Near", KNeighborsRegressor, [], save="skops")
    with pytest.raises(ModelFormatError, match="load of 'Near' failed: BadZipFile"):
        load_model(tmp_path / "pickled.json")

    def save(estimator: Any, file: Path) -> None:
        io_of_skops().dump(estimator, file)
        raw = io.BytesIO()
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(raw, "w") as new:
            for name in old.namelist():
                array = io.BytesIO()
                np.save(array, np.array([Bomb()]), allow_pickle=True)
                new.writestr(name, array.getvalue() if name.endswith(".npy") else old.read(name))
        file.write_bytes(raw.getvalue())

    REGISTERED.pop("Near")
    register_solver("Near", KNeighborsRegressor, [], save=save, load=str)
    CustomModel(fitted_near(), 4, "Near", solver="Near").save(tmp_path / "arrays.json")
    register_solver("Near", KNeighborsRegressor, [], save="skops")
    with pytest.raises(ModelFormatError, match="load of 'Near' failed: ValueError: Object arrays cannot be loaded"):
        load_model(tmp_path / "arrays.json")
    assert not (tmp_path / "trace").exists()


class Own(KNeighborsRegressor):  # type: ignore[misc]
    """An estimator of the user's, derived from one of scikit-learn, with an attribute that is an object."""

    def fit(self, X: Any, y: Any) -> Own:
        super().fit(X, y)
        self.note_ = Note()
        return self


class Note:
    """What only a fitted estimator holds."""

    def __init__(self) -> None:
        self.text = "fitted"


def test_user_classes_are_loaded_where_they_are_registered(tmp_path: Path) -> None:
    data = queries()
    register_solver("Mine", Own(), [], save="skops")
    with pytest.raises(ModelFormatError, match=r"Note \(ObjectNode\).*trusted=\['.*test_skops_files.Note'\]"):
        make_solver("Mine", {}, 0).fit(data).as_model().save(tmp_path / "model.json")
    register_solver("Mine", Own(), [], save="skops", trusted=[f"{__name__}.Note"])
    model = make_solver("Mine", {}, 0).fit(data).as_model()
    model.save(tmp_path / "model.json")
    loaded: Any = load_model(tmp_path / "model.json")
    assert loaded.estimator.note_.text == "fitted"
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    register_solver("Mine", Own(), [], save="skops")  # on another machine
    with pytest.raises(ModelFormatError, match=r"as you load the model: trust=\['.*test_skops_files.Note'\]"):
        load_model(tmp_path / "model.json")
    model_again = load_model(tmp_path / "model.json", trust=[f"{__name__}.Note"])
    np.testing.assert_array_equal(model_again.predict(data), model.predict(data))
    write_letor(tmp_path / "data.txt", dense(data.features), data.grades, data.query_of_document)
    asked = ["predict", tmp_path / "model.json", tmp_path / "data.txt"]
    scores = list(map(float, succeeded(*asked, "--trust", f"{__name__}.Note").split()))
    np.testing.assert_allclose(scores, model.predict(data), rtol=1e-6)
    assert called(*asked).exit_code != 0
    with pytest.raises(ModelFormatError, match="holds"):  # the trust was for once
        load_model(tmp_path / "model.json")
    register_solver("Mine", Own(), [], save="skops", trusted=[f"{__name__}.Note"])
    before = REGISTERED.pop("Mine")
    description = described(before)
    assert description["trusted"] == [f"{__name__}.Note"]
    restore("Mine", description | {"make": f"{__name__}:Own"})
    load_model(tmp_path / "model.json")


def test_estimators_of_every_choice_are_loaded(tmp_path: Path) -> None:
    kinds = {"near": KNeighborsRegressor, "vectors": SVR}
    register_solver("Mine", lambda kind: kinds[kind](), [Choice("kind", ("near", "vectors"))], save="skops")
    data = queries()
    for kind in kinds:
        model = make_solver("Mine", {"kind": kind}, 0).fit(data).as_model()
        model.save(tmp_path / f"{kind}.json")
        assert np.array_equal(load_model(tmp_path / f"{kind}.json").predict(data), model.predict(data))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(FunctionTransformer(np.log1p), SVR()),
        KNeighborsRegressor(weights=lambda distances: distances),
        KNeighborsRegressor(weights=partial(np.power, 2.0)),
        KNeighborsRegressor(weights=io.StringIO("").read),
    ],
)
def test_an_estimator_that_holds_a_function_is_refused_at_once(estimator: Any) -> None:
    with pytest.raises(ParameterError, match=r"'Mine' holds .*a function is code.*Give save=.* and load="):
        register_solver("Mine", estimator, [], save="skops")
    assert "Mine" not in REGISTERED
    register_solver("Mine", estimator, [], save=io_of_skops().dump, load=io_of_skops().load)


def test_a_function_that_fitting_adds_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    register_solver("Mine", Odd(), [], save="skops")
    with pytest.raises(ModelFormatError, match=r"holds .*check_output \(FunctionNode\)"):
        make_solver("Mine", {}, 0).fit(queries()).as_model().save(tmp_path / "model.json")


class Odd(KNeighborsRegressor):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Odd:
        super().fit(X, y)
        self.weights = check_output
        return self


def test_trusted_names_are_those_of_classes() -> None:
    for name in (f"{__name__}.popen", "nothing.Here", "Note", "os.path"):
        with pytest.raises(ParameterError, match=r"is no class that can be imported: give full names"):
            register_solver("Mine", KNeighborsRegressor, [], save="skops", trusted=[name])
    with pytest.raises(ParameterError, match="for save='skops' alone"):
        register_solver("Mine", KNeighborsRegressor, [], save=print, load=str, trusted=[f"{__name__}.Note"])
    with pytest.raises(ParameterError, match="a sequence of names"):
        register_solver("Mine", KNeighborsRegressor, [], save="skops", trusted=f"{__name__}.Note")


@pytest.mark.parametrize(
    ("name", "trust"),
    [
        ("partial", ["functools.partial", "sklearn.utils._testing.check_output", "builtins.list", "builtins.str"]),
        ("function", ["sklearn.utils._testing.check_output", "subprocess.check_output"]),
        ("bound method", ["sklearn.neighbors._regression.KNeighborsRegressor"]),
        ("operator", ["operator.methodcaller"]),
        ("transformer of a function", ["sklearn.preprocessing._function_transformer.FunctionTransformer"]),
        ("another estimator", ["sklearn.linear_model", "sklearn.linear_model._ridge"]),
        ("another estimator", ["sklearn.linear_model._ridge.R"]),
    ],
)
def test_trust_is_of_classes_by_their_full_names_and_of_nothing_else(
    name: str, trust: list[str], tmp_path: Path
) -> None:
    path = written(tmp_path, ATTACKS[name][0](["touch", str(tmp_path / "trace")]))
    with pytest.raises(ModelFormatError):
        load_model(path, trust=trust).predict(queries())
    assert not (tmp_path / "trace").exists()
    with pytest.raises(ParameterError, match="a sequence of full names"):
        load_model(path, trust=trust[0])


def test_an_error_names_all_classes_that_could_be_confirmed(tmp_path: Path) -> None:
    path = written(tmp_path, with_attribute(lambda command: [Note(), SVR()])([]))
    with pytest.raises(ModelFormatError, match=r"SVR \(ObjectNode\) and .*Note \(ObjectNode\), and is") as refused:
        load_model(path)
    names = json.loads(str(refused.value).partition("trust=")[2].partition("]")[0].replace("'", '"') + "]")
    assert isinstance(load_model(path, trust=names), CustomModel)


def test_an_old_release_of_skops_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register_solver("Mine", KNeighborsRegressor, [], save="skops")
    model = make_solver("Mine", {}, 0).fit(queries()).as_model()
    monkeypatch.setattr("ranktune.solvers.models.skops.metadata.version", lambda name: "0.14.0")
    with pytest.raises(ParameterError, match=r"skops 0\.14\.0 .*skops>=0\.15"):
        model.save(tmp_path / "model.json")
