"""Single calls and searches of other libraries: each gets training and validation queries, and seconds."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import DataError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric

if TYPE_CHECKING:
    import optuna
    from lightgbm.callback import CallbackEnv

METRIC = "ndcg@10"
_PATIENCE = 50
"""Trees without improvement before LightGBM and XGBoost stop."""
_TREES, _DEFAULTS_TREES = 1000, 10_000
"""The number of trees at most: of a trial under Optuna, and of a single call."""


@dataclass(frozen=True)
class PeerBudget:
    """What a peer may use: seconds of wall time, a number of threads, and its seed."""

    seconds: float
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True)
class PeerResult:
    """The result of a peer.

    score     from queries to the scores of their documents, (n_documents,)
    estimate  of METRIC on new queries, by its own validation; interval: its limits, where it has any
    tried     number of configurations, where it reports one
    detail    what it did: of libraries the trees of their model
    """

    score: Callable[[Queries], ArrayLike]
    estimate: float
    interval: tuple[float, float] | None = None
    tried: int | None = None
    detail: Json = field(default_factory=dict)


def part_of(split: QuerySplit, part: str) -> Queries:
    """Return a split's "vali" or "test". Raises DataError where it has none."""
    queries: Queries | None = getattr(split, part)
    if queries is None:
        raise DataError(f"{split.name}: has no {part} queries, and whole tools need them. Add {part}.txt.")
    return queries


def _delivered(predict: Callable[..., ArrayLike], vali: Queries, **fields: Any) -> PeerResult:
    """Return a model of another library, given by its scores of features, with its METRIC on validation queries."""

    def score(queries: Queries) -> Floats:
        return np.asarray(predict(queries.features), dtype=np.float64)

    return PeerResult(score, parse_metric(METRIC).mean(score(vali), vali), **fields)


Fit: TypeAlias = Callable[[JsonView, Queries, Queries, float], PeerResult]
"""Fits parameters to training queries, stopped early by validation queries, or at the deadline."""


def lightgbm_optuna(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Tune LightGBM by Optuna; the search space is that of Optuna's own example, with the learning rate."""

    def suggested(trial: optuna.Trial) -> Json:
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 2, 256, log=True),
            "min_child_samples": trial.suggest_int("min_child_samples", 5, 100),
            "reg_alpha": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
            "reg_lambda": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
            "colsample_bytree": trial.suggest_float("feature_fraction", 0.4, 1.0),
            "subsample": trial.suggest_float("bagging_fraction", 0.4, 1.0),
            "subsample_freq": trial.suggest_int("bagging_freq", 1, 7),
        }

    return _optuna(suggested, _lightgbm, split, budget)


def xgboost_optuna(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Tune XGBoost by Optuna; the search space is that of Optuna's own example for trees, in usual limits."""

    def suggested(trial: optuna.Trial) -> Json:
        return {
            "learning_rate": trial.suggest_float("eta", 0.01, 0.3, log=True),
            "max_depth": trial.suggest_int("max_depth", 3, 9),
            "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 100.0, log=True),
            "gamma": trial.suggest_float("gamma", 1e-8, 1.0, log=True),
            "reg_alpha": trial.suggest_float("alpha", 1e-8, 10.0, log=True),
            "reg_lambda": trial.suggest_float("lambda", 1e-8, 10.0, log=True),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.4, 1.0),
            "subsample": trial.suggest_float("subsample", 0.4, 1.0),
        }

    return _optuna(suggested, _xgboost, split, budget)


def _optuna(suggested: Callable[[optuna.Trial], Json], fit: Fit, split: QuerySplit, budget: PeerBudget) -> PeerResult:
    """Tune by Optuna's TPE for the given seconds; the result is the best trial's model, by METRIC.

    Early stopping uses the library's NDCG@10, which orders models as METRIC does. A trial that the deadline cuts short
    counts with the trees that it has.
    """
    import optuna

    vali, until = part_of(split, "vali"), time.perf_counter() + budget.seconds
    fixed = {"n_estimators": _TREES, "n_jobs": budget.threads, "random_state": budget.seed}
    best, trees = list[PeerResult](), list[int]()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        model = fit(suggested(trial) | fixed, split.train, vali, until)
        trees.append(model.detail["trees"])
        best[:] = [max([*best, model], key=lambda delivered: delivered.estimate)]
        return model.estimate

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=budget.seed))
    study.optimize(objective, timeout=max(0.0, until - time.perf_counter()))
    if not best:
        raise StudyError(f"Optuna found no model in {budget.seconds:g} s. Give it more.")
    return replace(best[0], tried=len(trees), detail={"trees": best[0].detail["trees"], "trees_of_trials": trees})


def lightgbm_defaults(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit LightGBM once with its defaults, stopped early by validation NDCG@10, or at the deadline."""
    fixed = {"n_estimators": _DEFAULTS_TREES, "n_jobs": budget.threads, "random_state": budget.seed}
    return _lightgbm(fixed, split.train, part_of(split, "vali"), time.perf_counter() + budget.seconds)


def _lightgbm(parameters: JsonView, train: Queries, vali: Queries, until: float) -> PeerResult:
    import lightgbm

    def stop_in_time(env: CallbackEnv) -> None:
        if time.perf_counter() > until:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list or [])

    ranker = lightgbm.LGBMRanker(**{"objective": "lambdarank", "verbosity": -1, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(
            train.features, train.grades, group=train.lengths, eval_set=[(vali.features, vali.grades)],
            eval_group=[vali.lengths], eval_at=[10], eval_metric="ndcg",
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False), stop_in_time],
        )  # fmt: skip
    detail = {"trees": ranker.best_iteration_ or ranker.n_estimators_, "cut_by_deadline": time.perf_counter() > until}
    return _delivered(ranker.predict, vali, tried=1, detail=detail)


def xgboost_once(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit XGBoost once, stopped early by validation NDCG@10, or at the deadline."""
    fixed = {"learning_rate": 0.1, "n_estimators": _DEFAULTS_TREES}
    fixed |= {"n_jobs": budget.threads, "random_state": budget.seed}
    return _xgboost(fixed, split.train, part_of(split, "vali"), time.perf_counter() + budget.seconds)


def _xgboost(parameters: JsonView, train: Queries, vali: Queries, until: float) -> PeerResult:
    import xgboost

    class XGBoostDeadline(xgboost.callback.TrainingCallback):
        """Ends the fit at the deadline."""

        def after_iteration(self, model: object, epoch: int, evals_log: object) -> bool:
            return time.perf_counter() > until

    ranker = xgboost.XGBRanker(
        objective="rank:ndcg", eval_metric=METRIC, early_stopping_rounds=_PATIENCE, callbacks=[XGBoostDeadline()],
        **parameters,
    )  # fmt: skip
    ranker.fit(
        train.features, train.grades, qid=train.query_of_document, eval_set=[(vali.features, vali.grades)],
        eval_qid=[vali.query_of_document], verbose=False,
    )  # fmt: skip
    last = ranker.get_booster().num_boosted_rounds() - 1  # where the deadline came before a first value
    detail = {"trees": getattr(ranker, "best_iteration", last) + 1, "cut_by_deadline": time.perf_counter() > until}
    return _delivered(ranker.predict, vali, tried=1, detail=detail)


def catboost_once(split: QuerySplit, budget: PeerBudget, folder: Path, loss: str = "YetiRank") -> PeerResult:
    """Fit CatBoost with a loss once, stopped early by validation NDCG@10, or at the deadline."""
    import catboost

    until, vali = time.perf_counter() + budget.seconds, part_of(split, "vali")

    def pool(part: Queries) -> catboost.Pool:
        return catboost.Pool(part.features, label=part.grades, group_id=part.query_of_document)

    class CatBoostDeadline:
        """Ends the fit at the deadline."""

        def after_iteration(self, info: object) -> bool:
            return time.perf_counter() < until

    ranker = catboost.CatBoost({
        "loss_function": loss, "learning_rate": 0.1, "iterations": _DEFAULTS_TREES, "thread_count": budget.threads,
        "random_seed": budget.seed, "eval_metric": "NDCG:top=10;type=Exp", "early_stopping_rounds": 100,
        "allow_writing_files": False, "logging_level": "Silent",
    })  # fmt: skip
    ranker.fit(pool(split.train), eval_set=pool(vali), callbacks=[CatBoostDeadline()])
    detail = {"trees": ranker.tree_count_, "cut_by_deadline": time.perf_counter() > until}
    return _delivered(ranker.predict, vali, tried=1, detail=detail)


def flaml_automl(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Run FLAML's AutoML for the time, groups and validation queries given.

    Its NDCG has linear gains and counts queries without a relevant document as 0: the estimate is the model's
    METRIC on the validation queries.
    """
    train, vali = split.train, part_of(split, "vali")
    several = vali.select(np.flatnonzero(vali.lengths > 1))  # its NDCG refuses queries of one document
    automl = importlib.import_module("flaml").AutoML()
    automl.fit(
        X_train=train.features, y_train=train.grades.astype(int), groups=train.query_of_document,
        X_val=several.features, y_val=several.grades.astype(int), groups_val=several.query_of_document,
        task="rank", metric=METRIC, eval_method="holdout", time_budget=budget.seconds, n_jobs=budget.threads,
        seed=budget.seed, verbose=0,
    )  # fmt: skip
    if automl.best_estimator is None:
        raise StudyError(f"FLAML found no model in {budget.seconds:g} s. Give it more.")
    trees = automl.best_config.get("n_estimators")
    detail = {"learner": automl.best_estimator} | ({} if trees is None else {"trees": int(trees)})
    return _delivered(automl.predict, vali, detail=detail)


def ydf_once(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit YDF's gradient boosted trees once, LambdaMART, stopped early by its loss of the validation queries."""
    ydf, vali = importlib.import_module("ydf"), part_of(split, "vali")
    ydf.verbose(0)

    def columns(part: Queries) -> dict[str, Any]:
        query = part.query_of_document.astype(bytes)
        return {"features": part.features.astype(np.float32), "grade": part.grades.astype(np.float32), "query": query}

    model = ydf.GradientBoostedTreesLearner(
        label="grade", task=ydf.Task.RANKING, ranking_group="query", ndcg_truncation=10, num_trees=_DEFAULTS_TREES,
        maximum_training_duration_seconds=budget.seconds, num_threads=budget.threads, random_seed=budget.seed,
    ).train(columns(split.train), valid=columns(vali))  # fmt: skip

    def predict(features: Floats) -> ArrayLike:
        return np.asarray(model.predict({"features": features.astype(np.float32)}))

    return _delivered(predict, vali, tried=1, detail={"trees": model.num_trees()})


def perpetual_once(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit PerpetualBooster's ranker once to all queries, as it needs none to validate, with a budget of 1.

    Its estimate is therefore the METRIC of queries that it has learnt from.
    """
    vali = part_of(split, "vali")
    whole = concatenate([split.train, vali])
    ranker = importlib.import_module("perpetual").PerpetualRanker(
        budget=1.0, timeout=budget.seconds, num_threads=budget.threads, seed=budget.seed
    )
    ranker.fit(whole.features.astype(np.float64), whole.grades.astype(np.float64), group=whole.lengths)
    return _delivered(lambda features: ranker.predict(features.astype(np.float64)), vali, tried=1)
