"""RankTune: tune, select and ship ranking models.

>>> import ranktune
>>> result = ranktune.tune("train.txt", test="test.txt", metric="ndcg@10", trials=30)  # doctest: +SKIP
>>> result.best_model.save("model.json")                                               # doctest: +SKIP

Names are loaded when first used, so that importing the package and --help are instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.table import NamedTable, TableEntry

if TYPE_CHECKING:
    from ranktune.api import resume as resume
    from ranktune.api import run as run
    from ranktune.api import tune as tune
    from ranktune.comparing import compare as compare
    from ranktune.comparing import evaluate as evaluate
    from ranktune.explaining import explain as explain
    from ranktune.judging import clicks as clicks
    from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART as LambdaMART
    from ranktune.solvers.boosting.lightgbm.regression import GBDTRanker as GBDTRanker
    from ranktune.solvers.data.queries import Queries as Queries
    from ranktune.solvers.data.sources.catalogue import read as read
    from ranktune.solvers.data.sources.scoring import predict as predict
    from ranktune.solvers.linear.presets import ElasticRank as ElasticRank
    from ranktune.solvers.linear.rank_svm import RankSVM as RankSVM
    from ranktune.solvers.linear.ranker import Ranker as Ranker
    from ranktune.solvers.metrics.metrics import parse_metric as parse_metric
    from ranktune.solvers.models.base import load_model as load_model
    from ranktune.streaming import convert as convert
    from ranktune.streaming import one_pass as one_pass
    from ranktune.tuner.samplers.thompson import ThompsonSampler as ThompsonSampler
    from ranktune.tuner.study.custom import register_metric as register_metric
    from ranktune.tuner.study.custom import register_solver as register_solver
    from ranktune.tuner.study.declaration import Study as Study

__version__ = "0.3.0"

_PUBLIC: NamedTable[Any] = NamedTable(
    "name",
    {
        "ElasticRank": TableEntry("solvers.linear.presets"),
        "GBDTRanker": TableEntry("solvers.boosting.lightgbm.regression"),
        "LambdaMART": TableEntry("solvers.boosting.lightgbm.lambda_mart"),
        "Queries": TableEntry("solvers.data.queries"),
        "RankSVM": TableEntry("solvers.linear.rank_svm"),
        "Ranker": TableEntry("solvers.linear.ranker"),
        "Study": TableEntry("tuner.study.declaration"),
        "ThompsonSampler": TableEntry("tuner.samplers.thompson"),
        "clicks": TableEntry("judging"),
        "compare": TableEntry("comparing"),
        "convert": TableEntry("streaming"),
        "evaluate": TableEntry("comparing"),
        "explain": TableEntry("explaining"),
        "load_model": TableEntry("solvers.models.base"),
        "one_pass": TableEntry("streaming"),
        "parse_metric": TableEntry("solvers.metrics.metrics"),
        "predict": TableEntry("solvers.data.sources.scoring"),
        "read": TableEntry("solvers.data.sources.catalogue"),
        "register_metric": TableEntry("tuner.study.custom"),
        "register_solver": TableEntry("tuner.study.custom"),
        "resume": TableEntry("api"),
        "run": TableEntry("api"),
        "tune": TableEntry("api"),
    },
    package="ranktune",
)

__all__ = sorted((*_PUBLIC.names, "__version__"))


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in __all__:
        raise AttributeError(f"module 'ranktune' has no attribute '{name}'")
    return _PUBLIC.imported(name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
