"""Whole tools that RankTune is compared with: each gets a split without test queries, and seconds, and returns a model.

Every peer runs in a new process, with the number of threads given: RankTune as workers of one thread each. The clock
starts when the data are mapped into memory and the libraries are imported. The test documents are scored after the
clock has stopped, and their grades never enter the process.

ranktune            `ranktune.tune` with its defaults: the model that it chose, single or a blend
lightgbm-optuna     LightGBM's LGBMRanker under Optuna's TPE, early stopping and choice by validation NDCG@10
xgboost-optuna      XGBoost's XGBRanker, rank:ndcg, in the same way
lightgbm-defaults   LightGBM's LGBMRanker with its defaults, early stopping by validation NDCG@10
xgboost             XGBoost's XGBRanker once, rank:ndcg at rate .1, early stopping by validation NDCG@10
catboost            CatBoost once, YetiRank at rate .1, early stopping of 100 trees by its own validation NDCG@10
catboost-queryrmse  the same with QueryRMSE
ydf                 YDF's gradient boosted trees once, task RANKING, early stopping by its loss on validation queries
perpetual           PerpetualBooster's ranker once, with a budget of 1, on training and validation queries
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import ranktune
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.studies.benchmarks.turnkey import libraries
from ranktune.studies.benchmarks.turnkey.libraries import METRIC, PeerBudget, PeerResult, part_of
from ranktune.tuner.workers.fork_server import ONE_THREAD

OURS = "ranktune"


@dataclass(frozen=True)
class Peer:
    """A tool: what runs it, and the packages that it imports, of which the version of the first is recorded.

    run     takes a split without test queries, a budget and an empty folder
    single  whether it is one call of a library, without a search
    """

    run: Callable[[QuerySplit, PeerBudget, Path], PeerResult]
    needs: tuple[str, ...]
    single: bool = False


def rank_tune(split: QuerySplit, budget: PeerBudget, folder: Path) -> PeerResult:
    """Tune with RankTune's defaults, without holding out test queries."""
    result = ranktune.tune(
        split.train, vali=split.vali, test="none", metric=METRIC, timeout=budget.seconds, jobs=budget.threads,
        seed=budget.seed, home=folder,
    )  # fmt: skip
    estimate = result.estimate
    limits = estimate.low, estimate.high
    return PeerResult(result.best_model.predict, estimate.mean, limits, tried=result.trials)


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
    "lightgbm-optuna": Peer(libraries.lightgbm_optuna, ("lightgbm", "optuna")),
    "xgboost-optuna": Peer(libraries.xgboost_optuna, ("xgboost", "optuna")),
    "lightgbm-defaults": Peer(libraries.lightgbm_defaults, ("lightgbm",), single=True),
    "xgboost": Peer(libraries.xgboost_once, ("xgboost",), single=True),
    "catboost": Peer(libraries.catboost_once, ("catboost",), single=True),
    "catboost-queryrmse": Peer(partial(libraries.catboost_once, loss="QueryRMSE"), ("catboost",), single=True),
    "ydf": Peer(libraries.ydf_once, ("ydf",), single=True),
    "perpetual": Peer(libraries.perpetual_once, ("perpetual",), single=True),
    "flaml": Peer(libraries.flaml_automl, ("flaml", "pandas", "xgboost", "lightgbm")),
}
SINGLE_CALLS = [name for name, peer in PEERS.items() if peer.single]


def check_installed(rival: str) -> None:
    """Raise ParameterError, with what to install, where a package of a peer is missing."""
    missing = [package for package in PEERS[rival].needs if find_spec(package) is None]
    if missing:
        raise ParameterError(f"{rival} needs {', '.join(missing)}, not installed here: pip install --group bench.")


def version_of(rival: str) -> str:
    """Return the version of the peer's own package."""
    if rival == OURS:
        return ranktune.__version__
    (distribution, *_) = importlib.metadata.packages_distributions()[PEERS[rival].needs[0]]
    return importlib.metadata.version(distribution)


def compete(rival: str, split: QuerySplit, budget: PeerBudget) -> tuple[Floats, Json]:
    """Return the scores of split's test documents by a peer in a separate process, and its report.

    The report has seconds, and PeerResult's fields without score. Raises StudyError where the process failed, or scores
    or estimate are not finite.
    """
    test = part_of(split, "test")
    split = split if rival == OURS else with_validation(split)
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
    return os.environ | {name: "1" if rival == OURS else str(threads) for name in ONE_THREAD}


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
