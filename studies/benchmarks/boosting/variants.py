"""Configurations of boosted rankers, and bags of them.

A configuration is a mapping: solver, the name of a solver of ours, and its parameters; library, parameters that are
passed to its library unchanged. The solvers "lightgbm" and "catboost" are one call of the library, with its defaults.
A bag is {"bag": {name: number of seeds, ...}} of configurations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.training_queries import TrainingQueries
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.registry import solver_class
from ranktune.studies.benchmarks.turnkey.peers import fitted_catboost, fitted_lightgbm

MOST_ROUNDS = 2000
"""Rounds at most where validation queries end boosting."""

VARIANTS: Mapping[str, JsonView] = {
    "lambdamart": {"solver": "LambdaMART"},
    "lambdamart-8": {"solver": "LambdaMART", "leaves": 8},
    "xendcg": {"solver": "LambdaMART", "loss": "xendcg"},
    "smoothed": {"solver": "LambdaMART", "loss": "smoothed"},
    "smoothed-8": {"solver": "LambdaMART", "loss": "smoothed", "leaves": 8},
    "yetirank": {"solver": "LambdaMART", "loss": "yetirank"},
    "yetirank-8": {"solver": "LambdaMART", "loss": "yetirank", "leaves": 8},
    "yetirank-8-l2": {"solver": "LambdaMART", "loss": "yetirank", "leaves": 8, "l2": 0.01},
    "gbdt": {"solver": "GBDTRanker"},
    "gbdt-31": {"solver": "GBDTRanker", "leaves": 31},
    "gbdt-linear": {"solver": "GBDTRanker", "start": "linear"},
    "lambdamart-linear": {"solver": "LambdaMART", "start": "linear"},
    "lambdamart-ranks": {"solver": "LambdaMART", "within_query": "ranks"},
    "yetirank-8-ranks": {"solver": "LambdaMART", "loss": "yetirank", "leaves": 8, "within_query": "ranks"},
    "gbdt-ranks": {"solver": "GBDTRanker", "within_query": "ranks"},
    "symmetric": {"solver": "SymmetricGBDT"},
    "xgboost": {"solver": "XGBoostRanker"},
    "catboost": {"solver": "CatBoostRanker"},
    "catboost-yetirank": {"solver": "CatBoostRanker", "loss": "YetiRank"},
    "catboost-yetirank-l2": {"solver": "CatBoostRanker", "loss": "YetiRank", "l2": 0.0},
    "their-lightgbm": {"solver": "lightgbm"},
    "their-yetirank": {"solver": "catboost"},
    "their-queryrmse": {"solver": "catboost", "loss_function": "QueryRMSE"},
    "lambdamart-x4": {"bag": {"lambdamart": 4}},
    "gbdt-x4": {"bag": {"gbdt": 4}},
    "both-x4": {"bag": {"lambdamart": 2, "gbdt": 2}},
    "both-x8": {"bag": {"lambdamart": 4, "gbdt": 4}},
    "yetirank-x4": {"bag": {"yetirank": 4}},
    "smoothed-x4": {"bag": {"smoothed": 4}},
    "catboost-x4": {"bag": {"catboost": 4}},
    "all-x4": {"bag": {"lambdamart": 1, "gbdt": 1, "smoothed": 1, "yetirank": 1}},
    "all-x5": {"bag": {"lambdamart": 1, "gbdt": 1, "smoothed": 1, "yetirank": 1, "catboost": 1}},
}

Score: TypeAlias = Callable[[Queries], ArrayLike]


def chosen(given: Sequence[str]) -> dict[str, Json]:
    """Return the variants of the names given, of all for none, and those that bags among them consist of.

    NAME=JSON declares one. Raises ParameterError for an unknown name and for an invalid variant.
    """
    known, names = {name: dict(variant) for name, variant in VARIANTS.items()}, []
    for text in given:
        name, declared, value = text.partition("=")
        names.append(name)
        if declared:
            try:
                known[name] = json.loads(value)
            except ValueError:
                raise ParameterError(f"'{value}' is no JSON: give NAME={{\"solver\": ...}}.") from None
    for name in list(names or known):
        members = known.get(name, {}).get("bag", {})
        for wanted in (name, *members):
            variant = known.get(wanted)
            if variant is None:
                raise ParameterError(f"there is no variant '{wanted}'. {nearest(wanted, known)}")
            if not {"solver", "bag"} & set(variant) or (wanted in members and "bag" in variant):
                raise ParameterError(
                    f"the variant '{wanted}' has no solver: give one, or a bag of those that have one."
                )
        names += [member for member in members if member not in names]
    return {name: known[name] for name in names or known}


def fitted(variant: JsonView, train: Queries, vali: Queries | None, rounds: int, seed: int) -> tuple[Score, int]:
    """Fit one configuration; return its scoring function and the number of trees.

    rounds is the number of rounds, or the most of them where vali, by which boosting is stopped, is given.
    """
    parameters = {name: value for name, value in variant.items() if name not in ("solver", "library")}
    if variant["solver"] == "lightgbm":
        fixed = {"n_estimators": rounds, "n_jobs": 1, "random_state": seed}
        booster = fitted_lightgbm(fixed | parameters, train, vali)
        return lambda queries: booster.predict(queries.features), booster.best_iteration_ or booster.n_estimators_
    if variant["solver"] == "catboost":
        model = fitted_catboost(
            {"iterations": rounds, "thread_count": 1, "random_seed": seed} | parameters, train, vali
        )
        return lambda queries: model.predict(queries.features), model.tree_count_
    solver: Any = solver_class(variant["solver"])
    if "library" in variant:
        solver = type(solver.__name__, (_Extended, solver), {"extra": variant["library"]})
    ranker = solver(**{"trees": rounds, "random_state": seed} | parameters).fit(train, vali=vali)
    return ranker.predict, sum(ranker.rounds_)


class _Extended:
    """A boosted ranker whose library gets the parameters extra, too."""

    extra: JsonView

    def _source(self, training: TrainingQueries) -> TrainingData:
        source = super()._source(training)  # type: ignore[misc]
        data: TrainingData = replace(source, parameters={**source.parameters, **self.extra})
        return data


def averaged(members: Sequence[Floats], queries: Queries) -> Floats:
    """Return the mean of scores, each divided by its standard deviation within queries."""
    spreads = [float(np.sqrt(np.mean(without_level(scores, queries) ** 2))) for scores in members]
    scaled = [scores / (spread or 1.0) for scores, spread in zip(members, spreads, strict=True)]
    return np.asarray(np.mean(scaled, axis=0))
