"""Whole tools that RankTune is compared with: each gets a split without test queries, and seconds, and returns a model.

Every peer runs in a new process, with the number of threads given: RankTune as workers of one thread each. The clock
starts when the data are mapped into memory and the libraries are imported. The test documents are scored after the
clock has stopped, and their grades never enter the process.

ranktune            `ranktune.tune` with its defaults: the model that it chose, single or a blend
ranktune-catboost   the same, with CatBoost among its solvers
lightgbm            LightGBM's LGBMRanker under Optuna's TPE, early stopping and choice by validation NDCG@10
lightgbm-defaults   LightGBM's LGBMRanker with its defaults, early stopping by validation NDCG@10
xgboost             XGBoost's XGBRanker once, rank:ndcg at rate .1, early stopping by validation NDCG@10
catboost            CatBoost once, YetiRank at rate .1, early stopping of 100 trees by its own validation NDCG@10
catboost-queryrmse  the same with QueryRMSE
flaml               FLAML's AutoML, task "rank", metric "ndcg@10", holdout on the validation queries

Where there are no validation queries, a quarter of the training queries becomes validation queries for the peers that
need them: all but RankTune, which cross-validates.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import ranktune
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import STANDARD_NAME
from ranktune.tuner.workers.fork_server import ONE_THREAD

if TYPE_CHECKING:
    import optuna
    from catboost import CatBoost
    from lightgbm import LGBMRanker
    from lightgbm.callback import CallbackEnv

METRIC = "ndcg@10"
OURS, CATBOOST_TOO = "ranktune", "ranktune-catboost"
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


@dataclass(frozen=True)
class Peer:
    """A tool: what runs it, and the packages that it imports, of which the version of the first is recorded.

    run     takes a split without test queries, a budget and an empty folder
    single  whether it is one call of a library, without a search
    """

    run: Callable[[QuerySplit, PeerBudget, Path], PeerResult]
    needs: tuple[str, ...]
    single: bool = False


def _delivered(predict: Callable[..., ArrayLike], vali: Queries, **fields: Any) -> PeerResult:
    """Return a model of another library, given by its scores of features, with its METRIC on validation queries."""

    def score(queries: Queries) -> Floats:
        return np.asarray(predict(queries.features), dtype=np.float64)

    return PeerResult(score, parse_metric(METRIC).mean(score(vali), vali), **fields)


def rank_tune(split: QuerySplit, budget: PeerBudget, folder: Path, solvers: Sequence[str] = ()) -> PeerResult:
    """Tune with RankTune's defaults, but for the solvers, without holding out test queries."""
    result = ranktune.tune(
        split.train, vali=split.vali, test="none", metric=METRIC, timeout=budget.seconds, jobs=budget.threads,
        seed=budget.seed, home=folder, solvers=solvers,
    )  # fmt: skip
    estimate = result.estimate
    limits = estimate.low, estimate.high
    return PeerResult(result.best_model.predict, estimate.mean, limits, tried=result.trials)


def lightgbm_optuna(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Tune LightGBM by Optuna for the given seconds; the result is the best trial's model.

    The search space is that of Optuna's own LightGBM example, with the learning rate. Early stopping uses
    LightGBM's NDCG@10, which counts queries without a relevant document as 1: it orders models as METRIC does. A trial
    that the deadline cuts short counts with the trees that it has.
    """
    import optuna

    train, vali = split.train, part_of(split, "vali")
    until = time.perf_counter() + budget.seconds
    fixed = {"n_estimators": _TREES, "n_jobs": budget.threads, "random_state": budget.seed}
    best, trees = list[PeerResult](), list[int]()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        model = _lightgbm(_tree_parameters(trial) | fixed, train, vali, until)
        trees.append(model.detail["trees"])
        best[:] = [max([*best, model], key=lambda delivered: delivered.estimate)]
        return model.estimate

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=budget.seed))
    study.optimize(objective, timeout=max(0.0, until - time.perf_counter()))
    if not best:
        raise StudyError(f"LightGBM and Optuna found no model in {budget.seconds:g} s. Give them more.")
    return replace(best[0], tried=len(trees), detail={"trees": best[0].detail["trees"], "trees_of_trials": trees})


def lightgbm_defaults(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit LightGBM once with its defaults, stopped early by validation NDCG@10, or at the deadline."""
    fixed = {"n_estimators": _DEFAULTS_TREES, "n_jobs": budget.threads, "random_state": budget.seed}
    return _lightgbm(fixed, split.train, part_of(split, "vali"), time.perf_counter() + budget.seconds)


def _lightgbm(parameters: JsonView, train: Queries, vali: Queries, until: float) -> PeerResult:
    ranker = fitted_lightgbm(parameters, train, vali, until)
    detail = {"trees": ranker.best_iteration_ or ranker.n_estimators_, "cut_by_deadline": time.perf_counter() > until}
    return _delivered(ranker.predict, vali, tried=1, detail=detail)


def _tree_parameters(trial: optuna.Trial) -> Json:
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


def fitted_lightgbm(
    parameters: JsonView, train: Queries, vali: Queries | None, until: float = float("inf")
) -> LGBMRanker:
    """Return LGBMRanker fitted on train, stopped early by vali, if given, and at the latest at the time until."""
    import lightgbm

    def stop_in_time(env: CallbackEnv) -> None:
        if time.perf_counter() > until:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list or [])

    ranker = lightgbm.LGBMRanker(**{"objective": "lambdarank", "verbosity": -1, **parameters})
    watched: Json = {}
    if vali is not None:
        watched = {
            "eval_set": [(vali.features, vali.grades)], "eval_group": [vali.lengths], "eval_at": [10],
            "eval_metric": "ndcg",
            "callbacks": [lightgbm.early_stopping(_PATIENCE, verbose=False), stop_in_time],
        }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(train.features, train.grades, group=train.lengths, **watched)
    return ranker


def xgboost_once(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Fit XGBoost once, stopped early by validation NDCG@10, or at the deadline."""
    import xgboost

    train, vali, until = split.train, part_of(split, "vali"), time.perf_counter() + budget.seconds

    class XGBoostDeadline(xgboost.callback.TrainingCallback):
        """Ends the fit at the deadline."""

        def after_iteration(self, model: object, epoch: int, evals_log: object) -> bool:
            return time.perf_counter() > until

    ranker = xgboost.XGBRanker(
        objective="rank:ndcg", learning_rate=0.1, n_estimators=_DEFAULTS_TREES, eval_metric=METRIC,
        early_stopping_rounds=_PATIENCE, n_jobs=budget.threads, random_state=budget.seed, callbacks=[XGBoostDeadline()],
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
    until, vali = time.perf_counter() + budget.seconds, part_of(split, "vali")
    fixed = {"iterations": _DEFAULTS_TREES, "thread_count": budget.threads, "random_seed": budget.seed}
    ranker = fitted_catboost(fixed | {"loss_function": loss}, split.train, vali, until)
    detail = {"trees": ranker.tree_count_, "cut_by_deadline": time.perf_counter() > until}
    return _delivered(ranker.predict, vali, tried=1, detail=detail)


def fitted_catboost(
    parameters: JsonView, train: Queries, vali: Queries | None, until: float = float("inf")
) -> CatBoost:
    """Return CatBoost fitted on train, stopped early by vali, if given, and at the latest at the time until."""
    import catboost

    def pool(part: Queries) -> catboost.Pool:
        return catboost.Pool(part.features, label=part.grades, group_id=part.query_of_document)

    class CatBoostDeadline:
        """Ends the fit at the deadline."""

        def after_iteration(self, info: object) -> bool:
            return time.perf_counter() < until

    quiet = {"allow_writing_files": False, "logging_level": "Silent"}
    ranker = catboost.CatBoost({"loss_function": "YetiRank", "learning_rate": 0.1, **quiet, **parameters})
    if vali is None:
        ranker.fit(pool(train), callbacks=[CatBoostDeadline()])
    else:
        ranker.set_params(eval_metric="NDCG:top=10;type=Exp", early_stopping_rounds=100)
        ranker.fit(pool(train), eval_set=pool(vali), callbacks=[CatBoostDeadline()])
    return ranker


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


def part_of(split: QuerySplit, part: str) -> Queries:
    """Return a split's "vali" or "test". Raises DataError where it has none."""
    queries: Queries | None = getattr(split, part)
    if queries is None:
        raise DataError(f"{split.name}: has no {part} queries, and whole tools need them. Add {part}.txt.")
    return queries


def with_validation(split: QuerySplit) -> QuerySplit:
    """Return a split with validation queries: its own, or a quarter of its training queries, the same at each call."""
    if split.vali is not None:
        return split
    count = split.train.n_queries
    if count < 2:
        raise DataError(f"{split.name}: {count} training query leaves none to validate. Add queries, or vali queries.")
    order = np.random.default_rng(0).permutation(count)
    aside, rest = np.sort(order[: max(count // 4, 1)]), np.sort(order[max(count // 4, 1) :])
    return replace(split, train=split.train.select(rest), vali=split.train.select(aside))


PEERS: Mapping[str, Peer] = {
    OURS: Peer(rank_tune, ("ranktune",)),
    CATBOOST_TOO: Peer(partial(rank_tune, solvers=(STANDARD_NAME, "CatBoostRanker")), ("ranktune", "catboost")),
    "lightgbm": Peer(lightgbm_optuna, ("lightgbm", "optuna")),
    "lightgbm-defaults": Peer(lightgbm_defaults, ("lightgbm",), single=True),
    "xgboost": Peer(xgboost_once, ("xgboost",), single=True),
    "catboost": Peer(catboost_once, ("catboost",), single=True),
    "catboost-queryrmse": Peer(partial(catboost_once, loss="QueryRMSE"), ("catboost",), single=True),
    "flaml": Peer(flaml_automl, ("flaml", "pandas", "xgboost", "lightgbm")),
}
SINGLE_CALLS = [name for name, peer in PEERS.items() if peer.single]


def check_installed(rival: str) -> None:
    """Raise ParameterError, with what to install, where a package of a peer is missing."""
    missing = [package for package in PEERS[rival].needs if find_spec(package) is None]
    if missing:
        raise ParameterError(f"{rival} needs {', '.join(missing)}, not installed here: pip install --group bench.")


def is_ours(rival: str) -> bool:
    """Return whether a peer is RankTune, with its standard solvers or with more."""
    return rival in (OURS, CATBOOST_TOO)


def version_of(rival: str) -> str:
    """Return the version of the peer's own package."""
    if is_ours(rival):
        return ranktune.__version__
    (distribution, *_) = importlib.metadata.packages_distributions()[PEERS[rival].needs[0]]
    return importlib.metadata.version(distribution)


def compete(rival: str, split: QuerySplit, budget: PeerBudget) -> tuple[Floats, Json]:
    """Return the scores of split's test documents by a peer in a separate process, and its report.

    The report has seconds, and PeerResult's fields without score. Raises StudyError where the process failed, or scores
    or estimate are not finite.
    """
    test = part_of(split, "test")
    split = split if is_ours(rival) else with_validation(split)
    with tempfile.TemporaryDirectory(prefix="ranktune-turnkey-") as name:
        folder = Path(name)
        write_queries(split.train, folder / "train")
        if split.vali is not None:
            write_queries(split.vali, folder / "vali")
        write_queries(replace(test, grades=np.zeros(test.n_documents)), folder / "test")
        _run_apart(rival, split.name, folder, budget)
        scores = np.load(folder / "scores.npy", allow_pickle=False)
        report: Json = json.loads((folder / "report.json").read_text())
    if scores.shape != (test.n_documents,) or not np.isfinite(scores).all():
        raise StudyError(f"{rival} on {split.name} gave no finite score for each document of the test queries.")
    if not np.isfinite(report["estimate"]):
        raise StudyError(f"{rival} on {split.name} gave no finite estimate.")
    return scores, report


def environment_of(rival: str, threads: int) -> dict[str, str]:
    """Return the environment of a peer's process: RankTune's workers have one thread each, others all threads."""
    return os.environ | {name: "1" if is_ours(rival) else str(threads) for name in ONE_THREAD}


def _run_apart(rival: str, fold: str, folder: Path, budget: PeerBudget) -> None:
    """Run `run_here` in a new process. Raises StudyError where it failed or did not end."""
    arguments = [rival, str(folder), str(budget.seconds), str(budget.threads), str(budget.seed)]
    limit = 600.0 + 10.0 * budget.seconds
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, *arguments],
            capture_output=True, text=True, env=environment_of(rival, budget.threads), timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise StudyError(f"{rival} on {fold} did not end within {limit:.0f} s of {budget.seconds:g} s.") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise StudyError(f"{rival} on {fold} failed: {reason}")


def run_here(rival: str, folder: Path, budget: PeerBudget) -> None:
    """Run a peer on the queries in folder, and write the test documents' scores and its report there."""
    for package in PEERS[rival].needs:
        importlib.import_module(package)
    vali = read_queries(folder / "vali") if (folder / "vali").is_dir() else None
    split = QuerySplit("", read_queries(folder / "train"), vali)
    (folder / "files").mkdir()
    begun = time.perf_counter()
    delivered = PEERS[rival].run(split, budget, folder / "files")
    used = time.perf_counter() - begun
    scores = np.asarray(delivered.score(read_queries(folder / "test")), dtype=np.float64)
    np.save(folder / "scores.npy", scores)
    report = {name: value for name, value in vars(delivered).items() if name != "score"} | {"seconds": used}
    (folder / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    run_here(sys.argv[1], Path(sys.argv[2]), PeerBudget(float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
