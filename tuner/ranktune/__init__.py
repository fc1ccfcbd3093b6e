"""RankTune: tune, select and ship ranking models.

>>> import ranktune
>>> result = ranktune.tune("train.txt", test="test.txt", metric="ndcg@10", trials=30)  # doctest: +SKIP
>>> result.best_model.save("model.json")                                               # doctest: +SKIP

Names are loaded when first used, so that importing the package and --help are instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktune.api import resume, run, tune
    from ranktune.comparing import compare, evaluate
    from ranktune.converting import convert
    from ranktune.explaining import explain
    from ranktune.reading import predict
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.data.sources.catalogue import read
    from ranktune.solvers.linear.elastic_rank import ElasticRank
    from ranktune.solvers.linear.rank_svm import RankSVM
    from ranktune.solvers.metrics.metrics import parse_metric
    from ranktune.solvers.models.base import load_model
    from ranktune.streaming import one_pass
    from ranktune.tuner.samplers.thompson import ThompsonSampler
    from ranktune.tuner.study.custom import register_metric, register_solver
    from ranktune.tuner.study.declaration import Study

__version__ = "0.2.1"

__all__ = [
    "ElasticRank",
    "Queries",
    "RankSVM",
    "Study",
    "ThompsonSampler",
    "__version__",
    "compare",
    "convert",
    "evaluate",
    "explain",
    "load_model",
    "one_pass",
    "parse_metric",
    "predict",
    "read",
    "register_metric",
    "register_solver",
    "resume",
    "run",
    "tune",
]


_HOME = {
    "ElasticRank": "solvers.linear.elastic_rank",
    "Queries": "solvers.data.queries",
    "RankSVM": "solvers.linear.rank_svm",
    "Study": "tuner.study.declaration",
    "ThompsonSampler": "tuner.samplers.thompson",
    "compare": "comparing",
    "convert": "converting",
    "evaluate": "comparing",
    "explain": "explaining",
    "load_model": "solvers.models.base",
    "one_pass": "streaming",
    "parse_metric": "solvers.metrics.metrics",
    "predict": "reading",
    "read": "solvers.data.sources.catalogue",
    "register_metric": "tuner.study.custom",
    "register_solver": "tuner.study.custom",
    "resume": "api",
    "run": "api",
    "tune": "api",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'ranktune' has no attribute '{name}'")
    return getattr(import_module(f"ranktune.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
