"""What is trained: queries, metrics, the solvers, and the losses, weights, penalties and optimizers they are made of.

Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktune.solvers.boosting.adarank import AdaRank
    from ranktune.solvers.boosting.lightgbm import GBDTRanker, LambdaMART, RandomForestRanker
    from ranktune.solvers.boosting.rank_boost import RankBoost
    from ranktune.solvers.boosting.xgboost import XGBoostRanker
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.linear.best_feature import BestFeature
    from ranktune.solvers.linear.composition import Ranker
    from ranktune.solvers.linear.domination import DominationRank
    from ranktune.solvers.linear.elastic_rank import ElasticRank
    from ranktune.solvers.linear.lambda_rank import LambdaRank
    from ranktune.solvers.linear.list_net import ListNet
    from ranktune.solvers.linear.pointwise import LogisticRanker, RidgeRanker, SVRRanker
    from ranktune.solvers.linear.rank_svm import RankSVM
    from ranktune.solvers.losses.domination import DominationLoss
    from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
    from ranktune.solvers.losses.pair_weights import DeltaNDCG, DeltaRecall, Uniform
    from ranktune.solvers.losses.pairwise import PairwiseHinge, PairwiseLogistic, PairwiseSquaredHinge
    from ranktune.solvers.losses.penalties import L1, L2, ElasticNet
    from ranktune.solvers.metrics.metrics import Metric, parse_metric
    from ranktune.solvers.models.base import load_model
    from ranktune.solvers.models.linear import LinearModel
    from ranktune.solvers.models.tree_model import TreeModel
    from ranktune.solvers.online.pamir import PAMIR
    from ranktune.solvers.online.pegasos import PairwisePegasos
    from ranktune.solvers.online.perceptrons import CommitteePerceptron, PairwisePerceptron, Prank
    from ranktune.solvers.online.solar import SOLAR1, SOLAR2
    from ranktune.solvers.optimizers.batch import LBFGS, OWLQN
    from ranktune.solvers.optimizers.one_pass import FOBOS, PSGD, RDA, TGD

__all__ = [
    "FOBOS",
    "L1",
    "L2",
    "LBFGS",
    "OWLQN",
    "PAMIR",
    "PSGD",
    "RDA",
    "SOLAR1",
    "SOLAR2",
    "TGD",
    "AdaRank",
    "BestFeature",
    "CommitteePerceptron",
    "DeltaNDCG",
    "DeltaRecall",
    "DominationLoss",
    "DominationRank",
    "ElasticNet",
    "ElasticRank",
    "GBDTRanker",
    "LambdaMART",
    "LambdaRank",
    "LinearModel",
    "ListNet",
    "LogisticRanker",
    "Metric",
    "PairwiseHinge",
    "PairwiseLogistic",
    "PairwisePegasos",
    "PairwisePerceptron",
    "PairwiseSquaredHinge",
    "Prank",
    "Queries",
    "RandomForestRanker",
    "RankBoost",
    "RankSVM",
    "Ranker",
    "RidgeRanker",
    "SVRRanker",
    "SoftmaxCrossEntropy",
    "TreeModel",
    "Uniform",
    "XGBoostRanker",
    "load_model",
    "parse_metric",
]

_MODULES = {
    "AdaRank": "boosting.adarank",
    "BestFeature": "linear.best_feature",
    "CommitteePerceptron": "online.perceptrons",
    "DeltaNDCG": "losses.pair_weights",
    "DeltaRecall": "losses.pair_weights",
    "DominationLoss": "losses.domination",
    "DominationRank": "linear.domination",
    "ElasticNet": "losses.penalties",
    "ElasticRank": "linear.elastic_rank",
    "FOBOS": "optimizers.one_pass",
    "GBDTRanker": "boosting.lightgbm",
    "L1": "losses.penalties",
    "L2": "losses.penalties",
    "LBFGS": "optimizers.batch",
    "LambdaMART": "boosting.lightgbm",
    "LambdaRank": "linear.lambda_rank",
    "LinearModel": "models.linear",
    "ListNet": "linear.list_net",
    "LogisticRanker": "linear.pointwise",
    "Metric": "metrics.metrics",
    "OWLQN": "optimizers.batch",
    "PAMIR": "online.pamir",
    "PSGD": "optimizers.one_pass",
    "PairwiseHinge": "losses.pairwise",
    "PairwiseLogistic": "losses.pairwise",
    "PairwisePegasos": "online.pegasos",
    "PairwisePerceptron": "online.perceptrons",
    "PairwiseSquaredHinge": "losses.pairwise",
    "Prank": "online.perceptrons",
    "Queries": "data.queries",
    "RDA": "optimizers.one_pass",
    "RandomForestRanker": "boosting.lightgbm",
    "RankBoost": "boosting.rank_boost",
    "RankSVM": "linear.rank_svm",
    "Ranker": "linear.composition",
    "RidgeRanker": "linear.pointwise",
    "SOLAR1": "online.solar",
    "SOLAR2": "online.solar",
    "SVRRanker": "linear.pointwise",
    "SoftmaxCrossEntropy": "losses.listwise",
    "TGD": "optimizers.one_pass",
    "TreeModel": "models.tree_model",
    "Uniform": "losses.pair_weights",
    "XGBoostRanker": "boosting.xgboost",
    "load_model": "models.base",
    "parse_metric": "metrics.metrics",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name and keep the name here (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
