"""Solvers as their papers define them: features as they are, sums over all pairs, one pass, weak penalties or none.

Their own defaults are the configuration that tuning tries first. Tests of formulas state what the formula leaves out.
"""

from functools import partial
from typing import Any

from ranktune.solvers.boosting.adarank import AdaRank
from ranktune.solvers.boosting.rank_boost import RankBoost
from ranktune.solvers.linear.domination import DominationRank
from ranktune.solvers.linear.pointwise import LogisticRanker, RidgeRanker, SVRRanker
from ranktune.solvers.linear.presets import ElasticRank, LambdaRank, ListNet
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.linear.ranker import Ranker
from ranktune.solvers.losses.pairwise import PairwiseHinge
from ranktune.solvers.online.perceptrons import CommitteePerceptron, PairwisePerceptron, Prank
from ranktune.solvers.online.sampled_pairs import PAMIR, PairwisePegasos
from ranktune.solvers.online.solar import SOLAR1, SOLAR2
from ranktune.solvers.optimizers.one_pass import FOBOS

ada_rank = partial(AdaRank, reweigh="model", scaling="none")
committee_perceptron = partial(CommitteePerceptron, scaling="none", pairs_per_query=None)
domination_rank = partial(DominationRank, l1=1.0, l2=1.0, scaling="none", average="none")
elastic_rank = partial(
    ElasticRank, loss="pairwise_hinge", pair_weight="uniform", l1=0.0, l2=0.0, passes=1, scaling="none"
)
lambda_rank = partial(LambdaRank, l1=0.0, l2=1e-3, scaling="none")
list_net = partial(ListNet, temperature=1.0, l1=0.0, l2=1e-3, scaling="none")
logistic_ranker = partial(LogisticRanker, C=1.0)
pairwise_pegasos = partial(PairwisePegasos, sampling="documents", scaling="none")
pairwise_perceptron = partial(PairwisePerceptron, scaling="none", pairs_per_query=None)
pamir = partial(PAMIR, sampling="documents", scaling="none")
prank_ranker = partial(Prank, scaling="none")
rank_boost = partial(RankBoost, thresholds=256)
rank_svm = partial(RankSVM, C=1.0, scaling="none", average="none")
ridge_ranker = partial(RidgeRanker, alpha=1.0)
solar1 = partial(SOLAR1, scaling="none", pairs_per_query=None)
solar2 = partial(SOLAR2, covariance="full", scaling="none", pairs_per_query=None)
svr_ranker = partial(SVRRanker, C=1.0, epsilon=0.1)


def composed(
    loss: Any = None, pair_weight: Any = None, penalty: Any = None, optimizer: Any = None, **parameters: Any
) -> Ranker:
    """A Ranker of objects alone: by default the hinge, no penalty, and one pass of FOBOS over the raw features."""
    loss, optimizer = PairwiseHinge() if loss is None else loss, FOBOS() if optimizer is None else optimizer
    return Ranker(loss, pair_weight, penalty, optimizer, **{"passes": 1, "scaling": "none", **parameters})
