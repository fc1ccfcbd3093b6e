"""The public names of ranktune.solvers and the modules that define them. Importing this module imports none of them."""

from __future__ import annotations

from typing import NamedTuple


class Registration(NamedTuple):
    """Where a solver is defined; whether it competes unless others are named; the optional library it needs."""

    module: str
    standard: bool = False
    library: str | None = None


REGISTERED = {
    "BestFeature": Registration("linear.best_feature", standard=True),
    "RidgeRanker": Registration("linear.pointwise", standard=True),
    "LogisticRanker": Registration("linear.pointwise", standard=True),
    "SVRRanker": Registration("linear.pointwise", standard=True),
    "RankSVM": Registration("linear.rank_svm", standard=True),
    "ListNet": Registration("linear.list_net", standard=True),
    "ElasticRank": Registration("linear.elastic_rank", standard=True),
    "GBDTRanker": Registration("boosting.lightgbm_regression", standard=True, library="lightgbm"),
    "LambdaMART": Registration("boosting.lightgbm", standard=True, library="lightgbm"),
    "CatBoostRanker": Registration("boosting.catboost", standard=True, library="catboost"),
    "Ranker": Registration("linear.ranker", standard=True),
    "RandomForestRanker": Registration("boosting.lightgbm_regression", library="lightgbm"),
    "XGBoostRanker": Registration("boosting.xgboost", library="xgboost"),
    "AdaRank": Registration("boosting.adarank"),
    "RankBoost": Registration("boosting.rank_boost"),
    "DominationRank": Registration("linear.domination"),
    "LambdaRank": Registration("linear.lambda_rank"),
    "CommitteePerceptron": Registration("online.perceptrons"),
    "PairwisePerceptron": Registration("online.perceptrons"),
    "Prank": Registration("online.perceptrons"),
    "PAMIR": Registration("online.pamir"),
    "PairwisePegasos": Registration("online.pegasos"),
    "SOLAR1": Registration("online.solar"),
    "SOLAR2": Registration("online.solar"),
}
"""Every solver. The standard ones are tried in this order, so the fast ones come first, because time may be short.

They are of each family those that tend to win or to help in a blend, and a baseline.
"""

PARTS = {
    "PairwiseHinge": "losses.pairwise",
    "PairwiseLogistic": "losses.pairwise",
    "PairwiseSquaredHinge": "losses.pairwise",
    "SoftmaxCrossEntropy": "losses.listwise",
    "DominationLoss": "losses.domination",
    "DeltaNDCG": "losses.pair_weights",
    "DeltaRecall": "losses.pair_weights",
    "Uniform": "losses.pair_weights",
    "ElasticNet": "losses.penalties",
    "L1": "losses.penalties",
    "L2": "losses.penalties",
    "CoordinateDescent": "linear.second_order",
    "Newton": "linear.second_order",
    "FISTA": "optimizers.proximal",
    "LBFGS": "optimizers.batch",
    "OWLQN": "optimizers.batch",
    "FOBOS": "optimizers.one_pass",
    "PSGD": "optimizers.one_pass",
    "RDA": "optimizers.one_pass",
    "TGD": "optimizers.one_pass",
    "Choice": "core.space",
    "Float": "core.space",
    "Int": "core.space",
    "When": "core.space",
    "Queries": "data.queries",
    "Metric": "metrics.metrics",
    "parse_metric": "metrics.metrics",
    "LinearModel": "models.linear",
    "TreeModel": "models.tree_model",
    "load_model": "models.base",
    "SavedRanker": "base.saved",
    "distil": "distillation.distil",
    "fit_blocks": "base.blocks",
}
"""All other public names."""

MODULES = {name: solver.module for name, solver in REGISTERED.items()} | PARTS
"""The module of every public name, below ranktune.solvers."""
