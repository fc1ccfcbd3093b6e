"""What is trained: queries, metrics, losses, penalties, optimizers and the solvers made of them.

Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktune.solvers.best_feature import BestFeature
    from ranktune.solvers.elastic_rank import ElasticRank
    from ranktune.solvers.metrics import Metric, parse_metric
    from ranktune.solvers.model import LinearModel, load_model
    from ranktune.solvers.pointwise import LogisticRanker, RidgeRanker, SVRRanker
    from ranktune.solvers.queries import Queries
    from ranktune.solvers.rank_svm import RankSVM

__all__ = [
    "BestFeature",
    "ElasticRank",
    "LinearModel",
    "LogisticRanker",
    "Metric",
    "Queries",
    "RankSVM",
    "RidgeRanker",
    "SVRRanker",
    "load_model",
    "parse_metric",
]

_MODULES = {
    "BestFeature": "best_feature",
    "ElasticRank": "elastic_rank",
    "LinearModel": "model",
    "LogisticRanker": "pointwise",
    "Metric": "metrics",
    "Queries": "queries",
    "RankSVM": "rank_svm",
    "RidgeRanker": "pointwise",
    "SVRRanker": "pointwise",
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
