"""Sums over all active pairs by several data structures: what Figure 4 of the RankSVM paper compares.

Direct counting (a number a grade, summed over the active grades), a Fenwick tree (as balanced trees, log k steps an
insertion and a query, without pointers), and the tree of 32 children a node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.grade_tree import offsets
from ranktune.solvers.losses.window_sums import sum_many

Sums: TypeAlias = Callable[[Floats, Codes, int, Codes, Codes, Floats, Floats], None]
DIRECT_AT_MOST = 1000
"""Grades up to which direct counting is measured."""


@compiled
def _direct(v: Floats, codes: Codes, k: int, high: Codes, cells: Floats, out: Floats) -> None:
    """Add to out the sums of v over the active partners of higher grades, by one number a grade."""
    cells[:k] = 0.0
    added = 0
    for r in range(len(v)):
        while added < high[r]:
            cells[codes[added]] += v[added]
            added += 1
        for c in range(codes[r] + 1, k):
            out[r] += cells[c]


@compiled
def _fenwick(v: Floats, codes: Codes, k: int, high: Codes, tree: Floats, out: Floats) -> None:
    """Add to out the sums of v over the active partners of higher grades, by a Fenwick tree over the grades."""
    tree[: k + 1] = 0.0
    added = 0
    for r in range(len(v)):
        while added < high[r]:
            at = k - np.int64(codes[added])
            while at <= k:
                tree[at] += v[added]
                at += at & -at
            added += 1
        at = k - 1 - np.int64(codes[r])
        while at > 0:
            out[r] += tree[at]
            at &= at - 1


def _both_ways(higher: Callable[..., None]) -> Sums:
    """Return the sums over all active partners: those of lower grades are of higher ones, read from the other end."""

    def sums(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, room: Floats, out: Floats) -> None:
        lower = np.zeros(len(v))
        out[:] = 0.0
        higher(v, codes, k, high, room, out)
        higher(v[::-1].copy(), k - 1 - codes[::-1], k, len(v) - low[::-1], room, lower)
        out += lower[::-1]

    return sums


direct, fenwick = _both_ways(_direct), _both_ways(_fenwick)


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
    works: dict[str, tuple[int, Sums]] = {
        "direct": (DIRECT_AT_MOST, direct), "Fenwick": (n_grades, fenwick), "tree of 32": (n_grades, sum_many),
    }  # fmt: skip
    given = v, codes, n_grades, low, high, room, out
    return {
        name: nanoseconds(partial(sums, *given), length, repeats) if n_grades <= most else float("nan")
        for name, (most, sums) in works.items()
    }
