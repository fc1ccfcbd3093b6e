"""The names that files of skops may hold, by the kind of their nodes: full names, and no rule that covers more.

Each is that of a class that does no harm whatever it is given, or of a function that computes numbers from arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Names: TypeAlias = Mapping[str, Sequence[str]]
"""What nodes may name, by their kind."""

_SCALARS = tuple(
    f"numpy.{kind}"
    for kind in (
        *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "str_", "bytes_"),
    )
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
"""Objects that have kinds of nodes of their own."""

_LOSSES: Names = {
    "ObjectNode": (
        *(f"sklearn._loss.link.{name}" for name in ("IdentityLink", "Interval", "LogLink", "LogitLink")),
        *("sklearn._loss.link.HalfLogitLink", "sklearn._loss.link.MultinomialLogit"),
        *(f"sklearn._loss.loss.{name}" for name in ("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss")),
        *(f"sklearn._loss.loss.{name}" for name in ("HalfGammaLoss", "HalfMultinomialLoss", "HalfPoissonLoss")),
        *(f"sklearn._loss.loss.{name}" for name in ("HalfSquaredError", "HalfTweedieLoss", "HuberLoss", "PinballLoss")),
        "sklearn._loss.loss.HalfTweedieLossIdentity",
    ),
    "LossNode": tuple(
        f"{module}.Cy{name}"
        for module in ("sklearn._loss._loss", "_loss")
        for name in (
            *("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss"),
            *("HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss"),
            "PinballLoss",
        )
    ),
}
_METRICS = tuple(
    f"sklearn.metrics._regression.{name}"
    for name in (
        *("max_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_gamma_deviance"),
        *("mean_poisson_deviance", "mean_squared_error", "mean_squared_log_error", "median_absolute_error"),
        *("explained_variance_score", "r2_score", "root_mean_squared_error", "root_mean_squared_log_error"),
    )
)
_SCORERS = ("sklearn.metrics._scorer._PassthroughScorer", "sklearn.metrics._scorer._Scorer")

HELPERS: Mapping[str, Sequence[Names]] = {
    "sklearn.calibration": (
        {
            "ObjectNode": (
                *("sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration"),
                *("sklearn.isotonic.IsotonicRegression", "sklearn.svm._classes.LinearSVC"),
            )
        },
    ),
    "sklearn.compose": (
        {
            "ObjectNode": (
                "sklearn.compose._column_transformer._RemainderColsList",
                "sklearn.linear_model._base.LinearRegression",
                "sklearn.preprocessing._function_transformer.FunctionTransformer",
            )
        },
    ),
    "sklearn.decomposition": ({"ObjectNode": ("sklearn.preprocessing._data.KernelCenterer",)},),
    "sklearn.ensemble": (
        _LOSSES,
        {
            "ObjectNode": (
                *("sklearn.tree._classes.DecisionTreeRegressor", "sklearn.tree._classes.DecisionTreeClassifier"),
                *("sklearn.tree._classes.ExtraTreeRegressor", "sklearn.tree._classes.ExtraTreeClassifier"),
                *("sklearn.dummy.DummyRegressor", "sklearn.dummy.DummyClassifier"),
                *("sklearn.linear_model._ridge.RidgeCV", "sklearn.linear_model._logistic.LogisticRegression"),
                "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
                "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
                "sklearn.preprocessing._encoders.OneHotEncoder",
                "sklearn.preprocessing._label.LabelEncoder",
            ),
            "TreeNode": ("sklearn.tree._tree.Tree",),
        },
    ),
    "sklearn.feature_selection": (
        {
            "FunctionNode": (
                *(f"sklearn.feature_selection._mutual_info.mutual_info_{name}" for name in ("classif", "regression")),
                *(f"sklearn.feature_selection._univariate_selection.f_{name}" for name in ("classif", "regression")),
                *(f"sklearn.feature_selection._univariate_selection.{name}" for name in ("chi2", "r_regression")),
            )
        },
    ),
    "sklearn.gaussian_process": (
        {
            "ObjectNode": (
                *(f"sklearn.gaussian_process.kernels.{name}" for name in ("ConstantKernel", "Product", "RBF")),
                "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
            )
        },
    ),
    "sklearn.impute": (
        {
            "ObjectNode": (
                *("sklearn.impute._base.MissingIndicator", "sklearn.impute._base.SimpleImputer"),
                "sklearn.linear_model._bayes.BayesianRidge",
            ),
            "TupleNode": ("sklearn.impute._iterative._ImputerTriplet",),
        },
    ),
    "sklearn.linear_model": (
        _LOSSES,
        {
            "ObjectNode": (
                *("sklearn.linear_model._base.LinearRegression", "sklearn.preprocessing._label.LabelBinarizer"),
            ),
            "LossNode": tuple(
                f"sklearn.linear_model._sgd_fast.{name}"
                for name in (
                    *("EpsilonInsensitive", "Hinge", "Huber", "Log", "ModifiedHuber", "SquaredEpsilonInsensitive"),
                    *("SquaredHinge", "SquaredLoss"),
                )
            ),
        },
    ),
    "sklearn.model_selection": (
        {
            "ObjectNode": (
                *("sklearn.model_selection._split.KFold", "sklearn.model_selection._split.StratifiedKFold"),
                "sklearn.utils._metadata_requests.MetadataRequest",
                "sklearn.utils._metadata_requests.MethodMetadataRequest",
                *_SCORERS,
            ),
            "FunctionNode": _METRICS,
        },
    ),
    "sklearn.multiclass": (
        {
            "ObjectNode": (
                *("sklearn.multiclass._ConstantPredictor", "sklearn.preprocessing._label.LabelBinarizer"),
                "sklearn.preprocessing._label.LabelEncoder",
            )
        },
    ),
    "sklearn.neighbors": (
        {
            "ObjectNode": (
                *("sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree"),
                *(
                    f"sklearn.metrics._dist_metrics.{name}Distance64"
                    for name in (
                        *("BrayCurtis", "Canberra", "Chebyshev", "Dice", "Euclidean", "Hamming", "Haversine"),
                        *("Jaccard", "Mahalanobis", "Manhattan", "Minkowski", "RogersTanimoto", "RussellRao"),
                        *("SEuclidean", "SokalSneath"),
                    )
                ),
            )
        },
    ),
    "sklearn.neural_network": (
        {
            "ObjectNode": (
                *(f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD")),
                "sklearn.preprocessing._label.LabelBinarizer",
            )
        },
    ),
    "sklearn.preprocessing": (
        {
            "ObjectNode": (
                *("sklearn.preprocessing._data.StandardScaler", "sklearn.preprocessing._encoders.OneHotEncoder"),
            )
        },
    ),
    "sklearn.tree": ({"TreeNode": ("sklearn.tree._tree.Tree",)},),
}
"""What fitting adds to estimators, by the package of their classes: no parameter of theirs names it."""
