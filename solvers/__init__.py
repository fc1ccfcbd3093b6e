"""Queries, metrics, the solvers, and the losses, pair weights, penalties and optimizers that they are made of.

A name is imported when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktune.solvers.names import PARTS, SOLVERS

if TYPE_CHECKING:  # types for editors and type checkers, one line a public name
    from ranktune.solvers.base.blocks import fit_blocks as fit_blocks
    from ranktune.solvers.base.saved import SavedRanker as SavedRanker
    from ranktune.solvers.boosting.adarank import AdaRank as AdaRank
    from ranktune.solvers.boosting.catboost import CatBoostRanker as CatBoostRanker
    from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART as LambdaMART
    from ranktune.solvers.boosting.lightgbm.regression import GBDTRanker as GBDTRanker
    from ranktune.solvers.boosting.lightgbm.regression import RandomForestRanker as RandomForestRanker
    from ranktune.solvers.boosting.rank_boost import RankBoost as RankBoost
    from ranktune.solvers.boosting.symmetric import SymmetricGBDT as SymmetricGBDT
    from ranktune.solvers.boosting.xgboost import XGBoostRanker as XGBoostRanker
    from ranktune.solvers.core.space import Choice as Choice
    from ranktune.solvers.core.space import Float as Float
    from ranktune.solvers.core.space import Int as Int
    from ranktune.solvers.core.space import When as When
    from ranktune.solvers.data.queries import Queries as Queries
    from ranktune.solvers.distillation import distil as distil
    from ranktune.solvers.linear.best_feature import BestFeature as BestFeature
    from ranktune.solvers.linear.domination import DominationRank as DominationRank
    from ranktune.solvers.linear.pointwise import LogisticRanker as LogisticRanker
    from ranktune.solvers.linear.pointwise import RidgeRanker as RidgeRanker
    from ranktune.solvers.linear.pointwise import SVRRanker as SVRRanker
    from ranktune.solvers.linear.presets import ElasticRank as ElasticRank
    from ranktune.solvers.linear.presets import LambdaRank as LambdaRank
    from ranktune.solvers.linear.presets import ListNet as ListNet
    from ranktune.solvers.linear.rank_svm import RankSVM as RankSVM
    from ranktune.solvers.linear.ranker import Ranker as Ranker
    from ranktune.solvers.losses.domination import DominationLoss as DominationLoss
    from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy as SoftmaxCrossEntropy
    from ranktune.solvers.losses.pair_weights import DeltaNDCG as DeltaNDCG
    from ranktune.solvers.losses.pair_weights import DeltaRecall as DeltaRecall
    from ranktune.solvers.losses.pair_weights import NoisyNDCG as NoisyNDCG
    from ranktune.solvers.losses.pair_weights import NoisyNeighbours as NoisyNeighbours
    from ranktune.solvers.losses.pair_weights import Uniform as Uniform
    from ranktune.solvers.losses.pairwise import PairwiseHinge as PairwiseHinge
    from ranktune.solvers.losses.pairwise import PairwiseLogistic as PairwiseLogistic
    from ranktune.solvers.losses.pairwise import PairwiseSquaredHinge as PairwiseSquaredHinge
    from ranktune.solvers.losses.penalties import L1 as L1
    from ranktune.solvers.losses.penalties import L2 as L2
    from ranktune.solvers.losses.penalties import ElasticNet as ElasticNet
    from ranktune.solvers.metrics.metrics import Metric as Metric
    from ranktune.solvers.metrics.metrics import parse_metric as parse_metric
    from ranktune.solvers.models.base import load_model as load_model
    from ranktune.solvers.models.linear import LinearModel as LinearModel
    from ranktune.solvers.models.tree_model import TreeModel as TreeModel
    from ranktune.solvers.online.perceptrons import CommitteePerceptron as CommitteePerceptron
    from ranktune.solvers.online.perceptrons import PairwisePerceptron as PairwisePerceptron
    from ranktune.solvers.online.perceptrons import Prank as Prank
    from ranktune.solvers.online.sampled_pairs import PAMIR as PAMIR
    from ranktune.solvers.online.sampled_pairs import PairwisePegasos as PairwisePegasos
    from ranktune.solvers.online.solar import SOLAR1 as SOLAR1
    from ranktune.solvers.online.solar import SOLAR2 as SOLAR2
    from ranktune.solvers.optimizers.batch import LBFGS as LBFGS
    from ranktune.solvers.optimizers.batch import OWLQN as OWLQN
    from ranktune.solvers.optimizers.one_pass import FOBOS as FOBOS
    from ranktune.solvers.optimizers.one_pass import PSGD as PSGD
    from ranktune.solvers.optimizers.one_pass import RDA as RDA
    from ranktune.solvers.optimizers.one_pass import TGD as TGD
    from ranktune.solvers.optimizers.proximal import FISTA as FISTA
    from ranktune.solvers.optimizers.second_order import CoordinateDescent as CoordinateDescent
    from ranktune.solvers.optimizers.second_order import Newton as Newton

__all__ = sorted((*SOLVERS.names, *PARTS.names))


def __getattr__(name: str) -> object:
    """Import the module of a public name and keep the name here (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = (SOLVERS if name in SOLVERS.names else PARTS).imported(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
