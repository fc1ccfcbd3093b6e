"""What is trained: queries, metrics, the solvers, and the losses, weights, penalties and optimizers they are made of.

Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktune.solvers.adarank import AdaRank
    from ranktune.solvers.batch import LBFGS, OWLQN
    from ranktune.solvers.best_feature import BestFeature
    from ranktune.solvers.composition import Ranker
    from ranktune.solvers.domination import DominationRank
    from ranktune.solvers.domination_loss import DominationLoss
    from ranktune.solvers.elastic_rank import ElasticRank
    from ranktune.solvers.lambda_rank import LambdaRank
    from ranktune.solvers.lightgbm_rankers import GBDTRanker, LambdaMART, RandomForestRanker
    from ranktune.solvers.linear_model import LinearModel
    from ranktune.solvers.list_net import ListNet
    from ranktune.solvers.losses import PairwiseHinge, PairwiseLogistic, PairwiseSquaredHinge
    from ranktune.solvers.metrics import Metric, parse_metric
    from ranktune.solvers.model import load_model
    from ranktune.solvers.one_pass import FOBOS, PSGD, RDA, TGD
    from ranktune.solvers.pamir import PAMIR
    from ranktune.solvers.pegasos import PairwisePegasos
    from ranktune.solvers.penalties import L1, L2, ElasticNet
    from ranktune.solvers.perceptrons import CommitteePerceptron, PairwisePerceptron, Prank
    from ranktune.solvers.pointwise import LogisticRanker, RidgeRanker, SVRRanker
    from ranktune.solvers.queries import Queries
    from ranktune.solvers.rank_boost import RankBoost
    from ranktune.solvers.rank_svm import RankSVM
    from ranktune.solvers.softmax import SoftmaxCrossEntropy
    from ranktune.solvers.solar import SOLAR1, SOLAR2
    from ranktune.solvers.tree_model import TreeModel
    from ranktune.solvers.weights import DeltaNDCG, DeltaRecall, Uniform
    from ranktune.solvers.xgboost_ranker import XGBoostRanker

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
    "AdaRank": "adarank",
    "BestFeature": "best_feature",
    "CommitteePerceptron": "perceptrons",
    "DeltaNDCG": "weights",
    "DeltaRecall": "weights",
    "DominationLoss": "domination_loss",
    "DominationRank": "domination",
    "ElasticNet": "penalties",
    "ElasticRank": "elastic_rank",
    "FOBOS": "one_pass",
    "GBDTRanker": "lightgbm_rankers",
    "L1": "penalties",
    "L2": "penalties",
    "LBFGS": "batch",
    "LambdaMART": "lightgbm_rankers",
    "LambdaRank": "lambda_rank",
    "LinearModel": "linear_model",
    "ListNet": "list_net",
    "LogisticRanker": "pointwise",
    "Metric": "metrics",
    "OWLQN": "batch",
    "PAMIR": "pamir",
    "PSGD": "one_pass",
    "PairwiseHinge": "losses",
    "PairwiseLogistic": "losses",
    "PairwisePegasos": "pegasos",
    "PairwisePerceptron": "perceptrons",
    "PairwiseSquaredHinge": "losses",
    "Prank": "perceptrons",
    "Queries": "queries",
    "RDA": "one_pass",
    "RandomForestRanker": "lightgbm_rankers",
    "RankBoost": "rank_boost",
    "RankSVM": "rank_svm",
    "Ranker": "composition",
    "RidgeRanker": "pointwise",
    "SOLAR1": "solar",
    "SOLAR2": "solar",
    "SVRRanker": "pointwise",
    "SoftmaxCrossEntropy": "softmax",
    "TGD": "one_pass",
    "TreeModel": "tree_model",
    "Uniform": "weights",
    "XGBoostRanker": "xgboost_ranker",
    "load_model": "model",
    "parse_metric": "metrics",
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
