"""Whole tools that RankTune is compared with: each gets a split without test queries, and seconds, and returns a model.

Every peer runs in a new process of one thread. The clock starts when the data are in memory and the libraries are
imported. The test documents are scored after the clock has stopped, and their grades never enter the process.

ranktune   `ranktune.tune` with its defaults: the model that it chose, single or a blend
lightgbm   LightGBM's LGBMRanker under Optuna's TPE, early stopping and choice by validation NDCG@10
flaml      FLAML's AutoML, task "rank", metric "ndcg@10", holdout on the validation queries
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

import ranktune
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.split import Split
from ranktune.tuner.evaluation.store import read_queries, write_queries
from ranktune.tuner.workers.worker_process import ONE_THREAD

if TYPE_CHECKING:
    import optuna
    from lightgbm import LGBMRanker
    from lightgbm.callback import CallbackEnv

METRIC = "ndcg@10"
_TREES, _PATIENCE = 1000, 50
"""LightGBM's number of trees at most, and its patience: trees without improvement before it stops."""


@dataclass(frozen=True)
class Delivered:
    """The result of a peer.

    score     from queries to the scores of their documents, (n_documents,)
    estimate  of METRIC on new queries, by its own validation; interval: its limits, where it has any
    reported  its own figure, where that follows another convention
    tried     number of configurations, where it reports one
    """

    score: Callable[[Queries], ArrayLike]
    estimate: float
    interval: tuple[float, float] | None = None
    reported: float | None = None
    tried: int | None = None


Peer = Callable[[Split, float, int, Path], Delivered]
"""Takes a split without test queries, seconds, a seed and an empty folder."""


def rank_tune(split: Split, seconds: float, seed: int, folder: Path) -> Delivered:
    """Tune with RankTune's defaults, without holding out test queries."""
    result = ranktune.tune(
        split.train, vali=split.vali, test="none", metric=METRIC, timeout=seconds, jobs=1, seed=seed, home=folder
    )
    estimate = result.estimate
    return Delivered(result.best_model.predict, estimate.mean, (estimate.low, estimate.high), tried=result.trials)


def lightgbm_optuna(split: Split, seconds: float, seed: int, folder: Path) -> Delivered:
    """Tune LightGBM by Optuna for the given seconds; the result is the best trial's model.

    The search space is that of Optuna's own LightGBM example, with the learning rate. Early stopping uses
    LightGBM's NDCG@10, which counts queries without a relevant document as 1: it orders models as METRIC does.
    """
    import optuna

    train, vali = split.train, given(split, "vali")
    until, best = time.perf_counter() + seconds, _Best()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        ranker = _fitted_trees(_tree_parameters(trial) | {"random_state": seed}, train, vali, until)
        return best.offer(ranker, parse_metric(METRIC).mean(np.asarray(ranker.predict(vali.features)), vali))

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, timeout=max(0.0, until - time.perf_counter()))
    if best.model is None:
        raise StudyError(f"LightGBM and Optuna found no model in {seconds:g} s. Give them more.")
    model = best.model
    return Delivered(lambda queries: model.predict(queries.features), best.value, tried=len(study.trials))


@dataclass
class _Best:
    """The model of the highest value so far."""

    model: LGBMRanker | None = None
    value: float = -np.inf

    def offer(self, model: LGBMRanker, value: float) -> float:
        if value > self.value:
            self.model, self.value = model, value
        return value


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


def _fitted_trees(parameters: JsonView, train: Queries, vali: Queries, until: float) -> LGBMRanker:
    """Return LGBMRanker fitted on train, stopped early by vali, and at the latest at the time until."""
    import lightgbm

    def stop_in_time(env: CallbackEnv) -> None:
        if time.perf_counter() > until:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list or [])

    ranker = lightgbm.LGBMRanker(objective="lambdarank", n_estimators=_TREES, n_jobs=1, verbosity=-1, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(
            train.features, train.grades, group=train.lengths, eval_set=[(vali.features, vali.grades)],
            eval_group=[vali.lengths], eval_at=[10], eval_metric="ndcg",
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False), stop_in_time],
        )  # fmt: skip
    return ranker


def flaml_automl(split: Split, seconds: float, seed: int, folder: Path) -> Delivered:
    """Run FLAML's AutoML for the time, groups and validation queries given.

    Its NDCG has linear gains and counts queries without a relevant document as 0: the estimate is the model's
    METRIC on the validation queries, and reported is FLAML's own figure.
    """
    train, vali = split.train, given(split, "vali")
    several = vali.select(np.flatnonzero(vali.lengths > 1))  # its NDCG refuses queries of one document
    automl = importlib.import_module("flaml").AutoML()
    automl.fit(
        X_train=train.features, y_train=train.grades.astype(int), groups=train.query_of_document,
        X_val=several.features, y_val=several.grades.astype(int), groups_val=several.query_of_document,
        task="rank", metric=METRIC, eval_method="holdout", time_budget=seconds, n_jobs=1, seed=seed, verbose=0,
    )  # fmt: skip
    if automl.best_estimator is None:
        raise StudyError(f"FLAML found no model in {seconds:g} s. Give it more.")

    def score(queries: Queries) -> Floats:
        return np.asarray(automl.predict(queries.features), dtype=np.float64)

    return Delivered(score, parse_metric(METRIC).mean(score(vali), vali), reported=1.0 - automl.best_loss)


def given(split: Split, part: str) -> Queries:
    """Return a split's "vali" or "test". Raises DataError where it has none."""
    queries: Queries | None = getattr(split, part)
    if queries is None:
        raise DataError(f"{split.name}: has no {part} queries, and whole tools need them. Add {part}.txt.")
    return queries


PEERS: Mapping[str, Peer] = {"ranktune": rank_tune, "lightgbm": lightgbm_optuna, "flaml": flaml_automl}

NEEDS: Mapping[str, tuple[str, ...]] = {
    "ranktune": ("ranktune",),
    "lightgbm": ("lightgbm", "optuna"),
    "flaml": ("flaml", "pandas", "xgboost", "lightgbm"),
}
"""The packages that each peer imports; the version of the first is recorded."""


def check_installed(rival: str) -> None:
    """Raise ParameterError, with what to install, where a package of a peer is missing."""
    missing = [package for package in NEEDS[rival] if find_spec(package) is None]
    if missing:
        raise ParameterError(f'{rival} needs {", ".join(missing)}, not installed here: pip install "ranktune[bench]".')


def version_of(rival: str) -> str:
    """Return the version of the peer's own package."""
    package = NEEDS[rival][0]
    return ranktune.__version__ if package == "ranktune" else importlib.metadata.version(package)


def compete(rival: str, split: Split, seconds: float, seed: int) -> tuple[Floats, Json]:
    """Return the scores of split's test documents by a peer in a process of its own, and its report.

    The report has seconds, and Delivered's fields without score. Raises StudyError where the process failed, or scores
    or estimate are not finite.
    """
    test = given(split, "test")
    with tempfile.TemporaryDirectory(prefix="ranktune-turnkey-") as name:
        folder = Path(name)
        write_queries(split.train, folder / "train")
        write_queries(given(split, "vali"), folder / "vali")
        write_queries(replace(test, grades=np.zeros(test.n_documents)), folder / "test")
        command = [sys.executable, "-m", __name__, rival, str(folder), str(seconds), str(seed)]
        limit = 600.0 + 10.0 * seconds
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD, timeout=limit)
        except subprocess.TimeoutExpired:
            raise StudyError(f"{rival} on {split.name} did not end within {limit:.0f} s of {seconds:g} s.") from None
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise StudyError(f"{rival} on {split.name} failed: {reason}")
        scores = np.load(folder / "scores.npy", allow_pickle=False)
        report: Json = json.loads((folder / "report.json").read_text())
    if scores.shape != (test.n_documents,) or not np.isfinite(scores).all():
        raise StudyError(f"{rival} on {split.name} gave no finite score for each document of the test queries.")
    if not np.isfinite(report["estimate"]):
        raise StudyError(f"{rival} on {split.name} gave no finite estimate.")
    return scores, report


def run_here(rival: str, folder: Path, seconds: float, seed: int) -> None:
    """Run a peer on the queries in folder, and write the test documents' scores and its report there."""
    for package in NEEDS[rival]:
        importlib.import_module(package)
    split = Split("", read_queries(folder / "train"), read_queries(folder / "vali"))
    (folder / "own").mkdir()
    begun = time.perf_counter()
    delivered = PEERS[rival](split, seconds, seed, folder / "own")
    used = time.perf_counter() - begun
    scores = np.asarray(delivered.score(read_queries(folder / "test")), dtype=np.float64)
    np.save(folder / "scores.npy", scores)
    report = {name: value for name, value in vars(delivered).items() if name != "score"} | {"seconds": used}
    (folder / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    run_here(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
