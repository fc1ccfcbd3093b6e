"""The public names of ranktune.solvers and where they are. Importing this module imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ranktune.solvers.core.declared import Former
from ranktune.solvers.core.table import Entry, Table

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker
    from ranktune.solvers.core.arrays import Json, JsonView
    from ranktune.solvers.custom.ranker import CustomRanker

SOLVER = "solver"
"""Name of the parameter that chooses among solvers."""

SOLVERS: Table[type[BaseRanker]] = Table(
    "solver",
    {
        "AdaRank": Entry("boosting.adarank"),
        "BestFeature": Entry("linear.best_feature"),
        "CatBoostRanker": Entry("boosting.catboost", library="catboost"),
        "CommitteePerceptron": Entry("online.perceptrons"),
        "DominationRank": Entry("linear.domination"),
        "ElasticRank": Entry("linear.presets"),
        "GBDTRanker": Entry("boosting.lightgbm.regression", library="lightgbm"),
        "LambdaMART": Entry("boosting.lightgbm.lambda_mart", library="lightgbm"),
        "LambdaRank": Entry("linear.presets"),
        "ListNet": Entry("linear.presets"),
        "LogisticRanker": Entry("linear.pointwise"),
        "PAMIR": Entry("online.sampled_pairs"),
        "PairwisePegasos": Entry("online.sampled_pairs"),
        "PairwisePerceptron": Entry("online.perceptrons"),
        "Prank": Entry("online.perceptrons"),
        "RandomForestRanker": Entry("boosting.lightgbm.regression", library="lightgbm"),
        "RankBoost": Entry("boosting.rank_boost"),
        "RankSVM": Entry("linear.rank_svm"),
        "Ranker": Entry("linear.ranker"),
        "RidgeRanker": Entry("linear.pointwise"),
        "SOLAR1": Entry("online.solar"),
        "SOLAR2": Entry("online.solar"),
        "SVRRanker": Entry("linear.pointwise"),
        "SymmetricGBDT": Entry("boosting.symmetric.ranker"),
        "XGBoostRanker": Entry("boosting.xgboost", library="xgboost"),
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

CUSTOM: Table[type[CustomRanker]] = Table("base", {"CustomRanker": Entry("custom.ranker")}, package="ranktune.solvers")
"""The base of the solvers that users register."""

PARTS: Table[object] = Table(
    "name",
    {
        "PairwiseHinge": Entry("losses.pairwise"),
        "PairwiseLogistic": Entry("losses.pairwise"),
        "PairwiseSquaredHinge": Entry("losses.pairwise"),
        "SoftmaxCrossEntropy": Entry("losses.listwise"),
        "DominationLoss": Entry("losses.domination"),
        "DeltaNDCG": Entry("losses.pair_weights"),
        "DeltaRecall": Entry("losses.pair_weights"),
        "NoisyNDCG": Entry("losses.pair_weights"),
        "NoisyNeighbours": Entry("losses.pair_weights"),
        "Uniform": Entry("losses.pair_weights"),
        "ElasticNet": Entry("losses.penalties"),
        "L1": Entry("losses.penalties"),
        "L2": Entry("losses.penalties"),
        "CoordinateDescent": Entry("optimizers.second_order"),
        "Newton": Entry("optimizers.second_order"),
        "FISTA": Entry("optimizers.proximal"),
        "LBFGS": Entry("optimizers.batch"),
        "OWLQN": Entry("optimizers.batch"),
        "FOBOS": Entry("optimizers.one_pass"),
        "PSGD": Entry("optimizers.one_pass"),
        "RDA": Entry("optimizers.one_pass"),
        "TGD": Entry("optimizers.one_pass"),
        "Choice": Entry("core.space"),
        "Float": Entry("core.space"),
        "Int": Entry("core.space"),
        "When": Entry("core.space"),
        "Queries": Entry("data.queries"),
        "Metric": Entry("metrics.metrics"),
        "parse_metric": Entry("metrics.metrics"),
        "LinearModel": Entry("models.linear"),
        "TreeModel": Entry("models.tree_model"),
        "load_model": Entry("models.base"),
        "SavedRanker": Entry("base.saved"),
        "distil": Entry("distillation.distil"),
        "fit_blocks": Entry("base.blocks"),
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
