"""The public names of ranktune.solvers and where they are. Importing this module imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ranktune.solvers.core.declared import Former
from ranktune.solvers.core.table import NamedTable, TableEntry

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker
    from ranktune.solvers.core.arrays import Json, JsonView
    from ranktune.solvers.custom import CustomRanker

SOLVER = "solver"
"""Name of the parameter that chooses among solvers."""

SOLVERS: NamedTable[type[BaseRanker]] = NamedTable(
    "solver",
    {
        "AdaRank": TableEntry("boosting.adarank"),
        "BestFeature": TableEntry("linear.best_feature"),
        "CatBoostRanker": TableEntry("boosting.catboost", library="catboost"),
        "CommitteePerceptron": TableEntry("online.perceptrons"),
        "DominationRank": TableEntry("linear.domination"),
        "ElasticRank": TableEntry("linear.presets"),
        "GBDTRanker": TableEntry("boosting.lightgbm.regression", library="lightgbm"),
        "LambdaMART": TableEntry("boosting.lightgbm.lambda_mart", library="lightgbm"),
        "LambdaRank": TableEntry("linear.presets"),
        "ListNet": TableEntry("linear.presets"),
        "LogisticRanker": TableEntry("linear.pointwise"),
        "PAMIR": TableEntry("online.sampled_pairs"),
        "PairwisePegasos": TableEntry("online.sampled_pairs"),
        "PairwisePerceptron": TableEntry("online.perceptrons"),
        "Prank": TableEntry("online.perceptrons"),
        "RandomForestRanker": TableEntry("boosting.lightgbm.regression", library="lightgbm"),
        "RankBoost": TableEntry("boosting.rank_boost"),
        "RankSVM": TableEntry("linear.rank_svm"),
        "Ranker": TableEntry("linear.ranker"),
        "RidgeRanker": TableEntry("linear.pointwise"),
        "SOLAR1": TableEntry("online.solar"),
        "SOLAR2": TableEntry("online.solar"),
        "SVRRanker": TableEntry("linear.pointwise"),
        "SymmetricGBDT": TableEntry("boosting.symmetric"),
        "XGBoostRanker": TableEntry("boosting.xgboost", library="xgboost"),
    },
    package="ranktune.solvers",
    remedy="ranktune.register_solver adds your own.",
)
"""Every solver in alphabetical order."""

STANDARD = (
    "BestFeature",
    "RidgeRanker",
    "LogisticRanker",
    "SVRRanker",
    "RankSVM",
    "ListNet",
    "ElasticRank",
    "SymmetricGBDT",
    "GBDTRanker",
    "LambdaMART",
    "Ranker",
)
"""The solvers that compete unless others are named, in the order in which their defaults are tried: the fast ones come
first, because time may be short.

They are of each family those that tend to win or to help in a blend, and a baseline. A solver whose library is not
installed with RankTune competes when it is named.
"""

ONE_COLUMN = "BestFeature"
"""The solver of one column, which is the floor that models are compared with and no part of a blend."""

COMPOSED = "Ranker"
"""The solver that is composed of a loss, a pair weight, a penalty and an optimizer."""

CUSTOM: NamedTable[type[CustomRanker]] = NamedTable(
    "base", {"CustomRanker": TableEntry("custom")}, package="ranktune.solvers"
)
"""The base of the solvers that users register."""

PARTS: NamedTable[object] = NamedTable(
    "name",
    {
        "PairwiseHinge": TableEntry("losses.pairwise"),
        "PairwiseLogistic": TableEntry("losses.pairwise"),
        "PairwiseSquaredHinge": TableEntry("losses.pairwise"),
        "SoftmaxCrossEntropy": TableEntry("losses.listwise"),
        "DominationLoss": TableEntry("losses.domination"),
        "DeltaNDCG": TableEntry("losses.pair_weights"),
        "DeltaRecall": TableEntry("losses.pair_weights"),
        "NoisyNDCG": TableEntry("losses.pair_weights"),
        "NoisyNeighbours": TableEntry("losses.pair_weights"),
        "Uniform": TableEntry("losses.pair_weights"),
        "ElasticNet": TableEntry("losses.penalties"),
        "L1": TableEntry("losses.penalties"),
        "L2": TableEntry("losses.penalties"),
        "CoordinateDescent": TableEntry("optimizers.second_order"),
        "Newton": TableEntry("optimizers.second_order"),
        "FISTA": TableEntry("optimizers.proximal"),
        "LBFGS": TableEntry("optimizers.batch"),
        "OWLQN": TableEntry("optimizers.batch"),
        "FOBOS": TableEntry("optimizers.one_pass"),
        "PSGD": TableEntry("optimizers.one_pass"),
        "RDA": TableEntry("optimizers.one_pass"),
        "TGD": TableEntry("optimizers.one_pass"),
        "Choice": TableEntry("core.space"),
        "Float": TableEntry("core.space"),
        "Int": TableEntry("core.space"),
        "When": TableEntry("core.space"),
        "Queries": TableEntry("data.queries"),
        "Metric": TableEntry("metrics.metrics"),
        "parse_metric": TableEntry("metrics.metrics"),
        "LinearModel": TableEntry("models.linear"),
        "TreeModel": TableEntry("models.tree_model"),
        "load_model": TableEntry("models.base"),
        "SavedRanker": TableEntry("base.saved"),
        "distil": TableEntry("distillation"),
        "fit_blocks": TableEntry("base.blocks"),
    },
    package="ranktune.solvers",
)
"""All other public names."""

FORMER: Mapping[str, Former] = {
    "ElasticRank": Former(
        {"weight": "pair_weight"},
        {"loss": {loss: f"pairwise_{loss}" for loss in ("hinge", "squared_hinge", "logistic")}},
    )
}
"""What solvers called their parameters in earlier versions: studies and model files of those have these names."""


SAME_AS = {
    "trees": ("n_estimators", "num_iterations", "num_boost_round", "iterations", "num_trees"),
    "rounds": ("n_estimators", "num_iterations", "num_boost_round", "iterations"),
    "learning_rate": ("eta", "shrinkage_rate"),
    "leaves": ("num_leaves", "max_leaves", "max_leaf_nodes"),
    "depth": ("max_depth",),
    "min_documents": ("min_child_samples", "min_data_in_leaf", "min_samples_leaf"),
    "min_weight": ("min_child_weight", "min_sum_hessian_in_leaf"),
    "l2": ("reg_lambda", "lambda_l2", "l2_leaf_reg"),
    "feature_share": ("colsample_bytree", "feature_fraction", "rsm"),
    "row_share": ("subsample", "bagging_fraction"),
    "query_share": ("subsample", "bagging_fraction"),
    "bins": ("max_bin", "max_bins", "border_count"),
    "loss": ("objective",),
    "truncation": ("lambdarank_truncation_level",),
    "patience": ("early_stopping_rounds", "early_stopping_round"),
    "metric": ("eval_metric",),
    "threads": ("n_jobs", "num_threads", "nthread", "thread_count"),
    "random_state": ("seed", "random_seed"),
}
"""Parameters, and what LightGBM, XGBoost, CatBoost and scikit-learn call them."""


def current_names(flat: JsonView) -> Json:
    """Return what is known of parameters by flat name, Solver.parameter, with the names and values of today."""
    return _renamed(flat, FORMER)


def former_names(flat: JsonView) -> Json:
    """Return what is known of parameters by flat name, with the names and values of earlier versions."""
    return _renamed(flat, {solver: former.inverse for solver, former in FORMER.items()})


def _renamed(flat: JsonView, renaming: Mapping[str, Former]) -> Json:
    current: Json = {}
    for name, value in flat.items():
        solver, dot, parameter = name.partition(".")
        renamed = renaming.get(solver, Former()).current({parameter: value})
        current |= {f"{solver}{dot}{other}": other_value for other, other_value in renamed.items()}
    return current
