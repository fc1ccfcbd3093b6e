"""RankSVM's training time against scikit-learn's Ridge on the same arrays, in one run and on one thread.

    OMP_NUM_THREADS=1 python -m ranktune.studies.bench_ranksvm X.npy y.npy qid.npy [--C 1] [--repeats 7]

X.npy holds a dense array; X.npz a scipy sparse matrix. Both are fitted once unmeasured (compiling, filling caches),
then in turn; medians are of CPU time and of wall-clock time, of whole calls of fit, with everything that they check.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from ranktune.solvers.rank_svm import RankSVM


def load(path: Path) -> Any:
    """Return the features in path, dense or as CSR."""
    if path.suffix == ".npz":
        return sparse.csr_matrix(sparse.load_npz(path))
    return np.load(path, allow_pickle=False)


def measure(fits: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, float]]:
    """Return the median CPU and wall seconds of each fit; they take turns, so that noise hits them alike."""
    for fit in fits.values():
        fit()
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            cpu, wall = time.process_time(), time.perf_counter()
            fit()
            seconds[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: (float(np.median([s[0] for s in all_])), float(np.median([s[1] for s in all_])))
        for name, all_ in seconds.items()
    }


def main() -> None:
    """Measure and print one line a method, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("X", type=Path)
    parser.add_argument("y", type=Path)
    parser.add_argument("qid", type=Path)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-ridge", action="store_true", help="measure RankSVM alone")
    arguments = parser.parse_args()
    X, y, qid = load(arguments.X), np.load(arguments.y), np.load(arguments.qid)
    ranker = RankSVM(C=arguments.C)
    fits: dict[str, Callable[[], Any]] = {"RankSVM": lambda: ranker.fit(X, y, qid=qid)}
    if not arguments.no_ridge:
        fits["Ridge"] = lambda: Ridge().fit(X, y)
    with threadpool_limits(1):
        medians = measure(fits, arguments.repeats)
    for name, (cpu, wall) in medians.items():
        print(f"{name:8} {cpu:8.4f} s CPU {wall:8.4f} s wall")
    print(f"RankSVM  objective {ranker.objective_:.8g}, {ranker.n_iter_} iterations, converged: {ranker.converged_}")
    if "Ridge" in medians:
        print(f"RankSVM / Ridge: {medians['RankSVM'][0] / medians['Ridge'][0]:.3f} CPU")


if __name__ == "__main__":
    main()
