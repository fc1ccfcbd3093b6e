"""Estimators in files of skops, which may name no code but the classes that the registered estimator has.

A file of skops is a tree of nodes. Each names a class or function, which loading imports, and which most kinds of nodes
call. So before skops reads a file, every node is compared with what its kind may name, exactly and by full names: PLAIN
for numbers, arrays and containers, the classes of the estimator that is registered here, those that the user trusts,
and of the packages of these classes what fitting adds (HELPERS). Nothing in the file adds to that. A named class does
no harm whatever it is given. Methods, partials, operators and calls of constructors are refused whatever they name, and
so are functions but a few of HELPERS, which compute numbers from arrays.
"""

from __future__ import annotations

import json
import operator
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.errors import ModelFormatError, ParameterError, listed
from ranktune.solvers.core.registrations import Registration, made_of_each_kind

OLDEST = (0, 15)
"""The release of skops that reads generators of random numbers without calling what a file names."""


MOST_NAMED = 20
"""Classes that an error names."""


class Held(NamedTuple):
    """What an estimator has in its parameters and attributes: classes, and functions by their full names."""

    classes: Sequence[type]
    functions: Sequence[str]


def names_in(estimator: Any) -> Held:
    """Return the classes of an estimator and of all objects in it, and the functions."""
    classes: dict[type, None] = {}
    functions: dict[str, None] = {}
    seen: dict[int, object] = {}  # values too, so that no id is used twice
    left = [estimator]
    while left:
        value = left.pop()
        if isinstance(value, bool | int | float | complex | str | bytes | slice | np.generic | type | None):
            continue
        if id(value) in seen or _class_name(type(value)) in NO_CLASSES:
            continue
        seen[id(value)] = value
        if isinstance(value, Mapping):
            left.extend(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            left.extend(value)
        elif isinstance(value, np.ndarray):
            left.extend(value.ravel().tolist() if value.dtype == object else ())
        elif _is_function(value):
            functions[_function_name(value)] = None
        else:
            classes[type(value)] = None
            left.extend(getattr(value, "__dict__", {}).values())
    return Held(tuple(classes), tuple(functions))


def _is_function(value: Any) -> bool:
    wrapped = isinstance(value, partial | operator.attrgetter | operator.itemgetter | operator.methodcaller)
    return wrapped or (callable(value) and hasattr(value, "__name__"))


def _function_name(value: Any) -> str:
    kind = type(value)
    module = getattr(value, "__module__", None) or kind.__module__
    return f"{module}.{getattr(value, '__name__', kind.__name__)}"


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


class AllowedNames(NamedTuple):
    """What files of a registered solver may hold: the classes of the whole estimator, and names by kind of node."""

    owner: str
    wholes: frozenset[str]
    names: Mapping[str, frozenset[str]]


def rule_of(registration: Registration) -> AllowedNames:
    """Return what files of a solver may hold, as its registration in this process says.

    Raises ParameterError where its estimator holds a function, or a trusted name is not that of a class.
    """
    estimators = made_of_each_kind(registration)
    kinds_held = names_in(estimators)
    names = {kind: set(plain) for kind, plain in PLAIN.items()}
    trusted = (_trusted_class(registration, name) for name in registration.trusted)
    names["ObjectNode"] = {_class_name(kind) for kind in (*kinds_held.classes, *trusted)}
    packages = {".".join(base.__module__.split(".")[:2]) for owner in kinds_held.classes for base in owner.__mro__}
    for package in packages & HELPERS.keys():  # what fitting adds to objects of classes derived from those of a package
        for kind, added in HELPERS[package].items():
            names.setdefault(kind, set()).update(added)
    _check_functions(registration.name, kinds_held.functions, names.get("FunctionNode", set()))
    wholes = frozenset(_class_name(type(estimator)) for estimator in estimators)
    return AllowedNames(registration.name, wholes, {kind: frozenset(types) for kind, types in names.items()})


def _check_functions(owner: str, functions: Sequence[str], allowed: set[str]) -> None:
    unknown = [name for name in functions if name not in allowed]
    if unknown:
        raise ParameterError(
            f"the estimator of '{owner}' holds {listed(unknown)}: a function is code, and files of skops are loaded "
            "only if they name none. Give save=, a function(estimator, path), and load=, a function(path), in place "
            "of save='skops'."
        )


def _trusted_class(registration: Registration, name: str) -> type:
    module, _, last = str(name).rpartition(".")
    try:
        kind = getattr(import_module(module), last)
    except (ImportError, AttributeError, ValueError):
        kind = None
    if not isinstance(kind, type):
        raise ParameterError(
            f"trusted={name!r} of '{registration.name}' is no class that can be imported: give full names of classes, "
            "module.Class, as the error names what a file holds."
        )
    return kind


def save(registration: Registration, estimator: Any, path: Path) -> None:
    """Write an estimator as a file of skops. Raises ModelFormatError where it could not be loaded."""
    rule = rule_of(registration)
    _skops().dump(estimator, path)
    _check(path, rule)


def load(registration: Registration, path: Path) -> Any:
    """Return the estimator in a file of skops.

    Raises ModelFormatError where it holds anything but what the registration says.
    """
    rule = rule_of(registration)
    _check(path, rule)
    return _skops().load(path, trusted=sorted(frozenset().union(*rule.names.values())))


def _skops() -> Any:
    try:
        release = metadata.version("skops")
        if tuple(int(part) for part in release.split(".")[:2]) < OLDEST:
            raise ParameterError(f"skops {release} is installed, and files are safe from {_OLDEST} on: {_REMEDY}")
        return import_module("skops.io")
    except ImportError:
        raise ParameterError(f'the format "skops" needs another package: {_REMEDY}') from None


_OLDEST = ".".join(map(str, OLDEST))
_REMEDY = f'pip install "skops>={_OLDEST}".'


def _check(path: Path, rule: AllowedNames) -> None:
    """Raise ModelFormatError where a node of the file names what its kind may not name."""
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ModelFormatError(
                f"the file of '{rule.owner}' is compressed, and RankTune writes it as it is, since a small file could "
                "fill the memory. Train the model again."
            )
        whole = json.loads(archive.read("schema.json"))
    if whole["protocol"] == 0:
        raise ModelFormatError(
            f"the file of '{rule.owner}' has the first format of skops, in which functions are named elsewhere, and no "
            "release of RankTune wrote it. Train the model again."
        )
    nodes = list(_nodes(whole))
    refused = [(kind, name) for kind, name in nodes if name not in rule.names.get(kind, ())]
    if refused:
        raise ModelFormatError(_refusal(rule.owner, refused))
    if not nodes or nodes[0][0] != "ObjectNode" or nodes[0][1] not in rule.wholes:
        raise ModelFormatError(
            f"the file of '{rule.owner}' does not hold {listed(sorted(rule.wholes))}, the estimator that is registered "
            "here. Register the solver as where the model was trained, or train it again."
        )


def _refusal(owner: str, refused: Sequence[tuple[str, str]]) -> str:
    """Return why a file is refused: for what nobody can allow, else for all the classes that its reader can."""
    others = [f"{name} ({kind})" for kind, name in refused if kind != "ObjectNode"]
    classes = sorted({name for _, name in refused})[:MOST_NAMED]
    remedy = (
        "Load no file of strangers; register save= and load= for an estimator that needs more."
        if others
        else f"If your estimator needs that, and it does no harm whatever its attributes are, register the solver with "
        f"trusted={classes}, or confirm it as you load the model: trust={classes}. Else "
        "train the model again, and load no file of strangers."
    )
    named = others[0] if others else listed(f"{name} (ObjectNode)" for name in classes)
    return (
        f"the file of '{owner}' holds {named}, and is not loaded: it may hold numbers, arrays and the "
        f"classes of the registered estimator, by their exact names, but no other class, function, method or partial. "
        f"{remedy}"
    )


def _nodes(whole: object) -> Iterator[tuple[str, str]]:
    """Yield the kind of each node of a file, and the class or function that it names, the whole first."""
    left = [whole]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(value)
        elif isinstance(value, dict):
            if "__loader__" in value and not isinstance(value["__loader__"], dict):
                yield str(value["__loader__"]), f"{value.get('__module__')}.{value.get('__class__')}"
            left.extend(value.values())


Names: TypeAlias = Mapping[str, Sequence[str]]
"""What nodes may name, by their kind."""


def _of(module: str, *names: str) -> tuple[str, ...]:
    """Return the full names of what a module has."""
    return tuple(f"{module}.{name}" for name in names)


_SCALARS = (
    *_of("numpy", "bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *_of("numpy", "float16", "float32", "float64", "str_", "bytes_"),
)
_SPARSE = tuple(
    f"scipy.sparse._{form}.{form}_{kind}"
    for form in ("bsr", "coo", "csc", "csr", "dia")
    for kind in ("matrix", "array")
)

PLAIN: Names = {
    "JsonNode": ("builtins.str",),
    "DictNode": ("builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "SetNode": ("builtins.set",),
    "BytesNode": ("builtins.bytes",),
    "BytearrayNode": ("builtins.bytearray",),
    "SliceNode": ("builtins.slice",),
    "TypeNode": ("builtins.str", "builtins.int", "builtins.float", "builtins.bool", *_SCALARS),
    "NdArrayNode": ("numpy.ndarray", *_SCALARS),
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),
    "DTypeNode": ("numpy.dtype",),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "SparseMatrixNode": _SPARSE,
}
"""What every file may hold: numbers, text, arrays and containers of them."""

NO_CLASSES = frozenset(
    (*PLAIN["RandomStateNode"], *PLAIN["RandomGeneratorNode"], *PLAIN["DTypeNode"], *PLAIN["SparseMatrixNode"])
)
"""Objects that have special kinds of nodes."""

_LOSSES = (
    *(
        "AbsoluteError",
        "ExponentialLoss",
        "HalfBinomialLoss",
        "HalfGammaLoss",
        "HalfMultinomialLoss",
        "HalfPoissonLoss",
    ),
    *("HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss", "PinballLoss"),
)
_LOSS_OBJECTS = (
    *_of("sklearn._loss.loss", *_LOSSES),
    *_of("sklearn._loss.link", "IdentityLink", "Interval", "LogLink", "LogitLink", "HalfLogitLink", "MultinomialLogit"),
)
_LOSS_NODES = tuple(f"{module}.Cy{name}" for module in ("sklearn._loss._loss", "_loss") for name in _LOSSES)
_LABELS = "sklearn.preprocessing._label"

HELPERS: Mapping[str, Names] = {
    "sklearn.calibration": {
        "ObjectNode": (
            *_of("sklearn.calibration", "_CalibratedClassifier", "_SigmoidCalibration"),
            *("sklearn.isotonic.IsotonicRegression", "sklearn.svm._classes.LinearSVC"),
        )
    },
    "sklearn.compose": {
        "ObjectNode": (
            "sklearn.compose._column_transformer._RemainderColsList",
            "sklearn.linear_model._base.LinearRegression",
            "sklearn.preprocessing._function_transformer.FunctionTransformer",
        )
    },
    "sklearn.decomposition": {"ObjectNode": ("sklearn.preprocessing._data.KernelCenterer",)},
    "sklearn.ensemble": {
        "ObjectNode": (
            *_LOSS_OBJECTS,
            *_of("sklearn.tree._classes", "DecisionTreeRegressor", "DecisionTreeClassifier"),
            *_of("sklearn.tree._classes", "ExtraTreeRegressor", "ExtraTreeClassifier"),
            *_of("sklearn.dummy", "DummyRegressor", "DummyClassifier"),
            *("sklearn.linear_model._ridge.RidgeCV", "sklearn.linear_model._logistic.LogisticRegression"),
            *_of("sklearn.ensemble._hist_gradient_boosting", "binning._BinMapper", "predictor.TreePredictor"),
            *_of("sklearn.preprocessing", "_encoders.OneHotEncoder", "_label.LabelEncoder"),
        ),
        "LossNode": _LOSS_NODES,
        "TreeNode": ("sklearn.tree._tree.Tree",),
    },
    "sklearn.feature_selection": {
        "FunctionNode": (
            *_of("sklearn.feature_selection._mutual_info", "mutual_info_classif", "mutual_info_regression"),
            *_of(
                "sklearn.feature_selection._univariate_selection", "f_classif", "f_regression", "chi2", "r_regression"
            ),
        )
    },
    "sklearn.gaussian_process": {
        "ObjectNode": (
            *_of("sklearn.gaussian_process.kernels", "ConstantKernel", "Product", "RBF"),
            "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        )
    },
    "sklearn.impute": {
        "ObjectNode": (
            *_of("sklearn.impute._base", "MissingIndicator", "SimpleImputer"),
            "sklearn.linear_model._bayes.BayesianRidge",
        ),
        "TupleNode": ("sklearn.impute._iterative._ImputerTriplet",),
    },
    "sklearn.linear_model": {
        "ObjectNode": (*_LOSS_OBJECTS, "sklearn.linear_model._base.LinearRegression", f"{_LABELS}.LabelBinarizer"),
        "LossNode": (
            *_LOSS_NODES,
            *_of("sklearn.linear_model._sgd_fast", "EpsilonInsensitive", "Hinge", "Huber", "Log", "ModifiedHuber"),
            *_of("sklearn.linear_model._sgd_fast", "SquaredEpsilonInsensitive", "SquaredHinge", "SquaredLoss"),
        ),
    },
    "sklearn.model_selection": {
        "ObjectNode": (
            *_of("sklearn.model_selection._split", "KFold", "StratifiedKFold"),
            *_of("sklearn.utils._metadata_requests", "MetadataRequest", "MethodMetadataRequest"),
            *_of("sklearn.metrics._scorer", "_PassthroughScorer", "_Scorer"),
        ),
        "FunctionNode": _of(
            "sklearn.metrics._regression",
            *("max_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_gamma_deviance"),
            *("mean_poisson_deviance", "mean_squared_error", "mean_squared_log_error", "median_absolute_error"),
            *("explained_variance_score", "r2_score", "root_mean_squared_error", "root_mean_squared_log_error"),
        ),
    },
    "sklearn.multiclass": {
        "ObjectNode": ("sklearn.multiclass._ConstantPredictor", *_of(_LABELS, "LabelBinarizer", "LabelEncoder"))
    },
    "sklearn.neighbors": {
        "ObjectNode": (
            *_of("sklearn.neighbors", "_ball_tree.BallTree", "_kd_tree.KDTree"),
            *(
                f"sklearn.metrics._dist_metrics.{name}Distance64"
                for name in (
                    *("BrayCurtis", "Canberra", "Chebyshev", "Dice", "Euclidean", "Hamming", "Haversine", "Jaccard"),
                    *("Mahalanobis", "Manhattan", "Minkowski", "RogersTanimoto", "RussellRao", "SEuclidean"),
                    *("SokalSneath",),
                )
            ),
        )
    },
    "sklearn.neural_network": {
        "ObjectNode": (
            *_of("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer", "SGDOptimizer"),
            f"{_LABELS}.LabelBinarizer",
        )
    },
    "sklearn.preprocessing": {
        "ObjectNode": _of("sklearn.preprocessing", "_data.StandardScaler", "_encoders.OneHotEncoder")
    },
    "sklearn.tree": {"TreeNode": ("sklearn.tree._tree.Tree",)},
}
"""What fitting adds to estimators, by the package of their classes: none of their parameters names it."""
