"""The names that files of skops may hold, by the kind of their nodes: full names, and no rule that covers more.

Each is that of a class that does no harm whatever it is given, or of a function that computes numbers from arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

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
