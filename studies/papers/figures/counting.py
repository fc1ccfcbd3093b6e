"""Sums over all active pairs by several data structures: what Figure 4 of the RankSVM paper compares.

Direct counting (a number a grade, summed over the active grades), a Fenwick tree (as balanced trees, log k steps an
insertion and a query, without pointers), and the tree of 32 children a node.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.grade_tree import offsets
from ranktune.solvers.losses.window_sums import sum_many

DIRECT_AT_MOST = 1000
"""Grades up to which direct counting is measured."""


@compiled
def direct(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, cells: Floats, out: Floats) -> None:
    """Overwrite out with the sums of v over all active partners, by one number a grade."""
    n = len(v)
    cells[:k] = 0.0
    added = 0
    for r in range(n):
        while added < high[r]:
            cells[codes[added]] += v[added]
            added += 1
        total = 0.0
        for c in range(codes[r] + 1, k):
            total += cells[c]
        out[r] = total
    cells[:k] = 0.0
    added = n
    for r in range(n - 1, -1, -1):
        while added > low[r]:
            added -= 1
            cells[codes[added]] += v[added]
        total = 0.0
        for c in range(codes[r]):
            total += cells[c]
        out[r] += total


@compiled
def fenwick(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, tree: Floats, out: Floats) -> None:
    """Overwrite out with the sums of v over all active partners, by a Fenwick tree over the grades."""
    n = len(v)
    tree[: k + 1] = 0.0
    added = 0
    for r in range(n):
        while added < high[r]:
            at = k - np.int64(codes[added])
            while at <= k:
                tree[at] += v[added]
                at += at & -at
            added += 1
        total, at = 0.0, k - 1 - np.int64(codes[r])
        while at > 0:
            total += tree[at]
            at &= at - 1
        out[r] = total
    tree[: k + 1] = 0.0
    added = n
    for r in range(n - 1, -1, -1):
        while added > low[r]:
            added -= 1
            at = np.int64(codes[added]) + 1
            while at <= k:
                tree[at] += v[added]
                at += at & -at
        total, at = 0.0, np.int64(codes[r])
        while at > 0:
            total += tree[at]
            at &= at - 1
        out[r] += total


def problem(length: int, n_grades: int) -> tuple[Floats, Codes, Codes, Codes]:
    """Return v, codes, low, high of documents with correlated scores and grades; about half of the pairs are active."""
    generator = np.random.default_rng(length + n_grades)
    scores = np.sort(generator.normal(size=length))
    noisy = np.argsort(np.argsort(scores + generator.normal(size=length)))
    codes = (noisy * n_grades // length).astype(np.uint32)
    low = np.searchsorted(scores, scores - 1.0, side="right").astype(np.uint32)
    high = np.searchsorted(scores, scores + 1.0, side="left").astype(np.uint32)
    return generator.normal(size=length), codes, low, high


def nanoseconds(work: Callable[[], None], length: int, repeats: int) -> float:
    """Return the median CPU time of work in nanoseconds a document; short work is repeated within a measurement."""
    work()
    rounds = max(1, 200_000 // length)
    measured = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(rounds):
            work()
        measured.append((time.process_time() - start) / rounds)
    return float(np.median(measured)) * 1e9 / length


def measure(length: int, n_grades: int, repeats: int) -> dict[str, float]:
    """Return nanoseconds a document of each structure, nan where it does not apply."""
    v, codes, low, high = problem(length, n_grades)
    room, out = np.empty(max(offsets(n_grades)[-1], n_grades + 1)), np.empty(length)
    works: dict[str, tuple[bool, Callable[[], None]]] = {
        "direct": (n_grades <= DIRECT_AT_MOST, lambda: direct(v, codes, n_grades, low, high, room, out)),
        "Fenwick": (True, lambda: fenwick(v, codes, n_grades, low, high, room, out)),
        "tree of 32": (True, lambda: sum_many(v, codes, n_grades, low, high, room, out)),
    }
    return {
        name: nanoseconds(work, length, repeats) if applies else float("nan") for name, (applies, work) in works.items()
    }
