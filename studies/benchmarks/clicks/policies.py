"""Counterfactual estimates: how often their intervals cover the truth, of simulated users and of a log of two policies.

In half of the simulated sessions the page of a log is turned by a random number of places, so that the probability of
each document at each position is known. The new policy shows the same documents in the order of another ranker.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.clicks.counterfactual import Estimate, doubly_robust, ips, item_position, position, snips
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.core.arrays import Floats, Ints, Json
from ranktune.solvers.data.queries import Queries
from ranktune.studies.benchmarks.tables import Row
from ranktune.studies.clicks.simulation import Users

PAGE = 10
SESSIONS = 1000
"""Of a replication."""
WRONG = 0.7
"""What the model of the doubly robust estimate believes attraction to be, as a share of what it is."""


@dataclass(frozen=True)
class Pages:
    """The first page of each query in the order of the log's ranker, (n_queries, PAGE), and its length, (n_queries,).

    attraction is 0 beyond the length; target is the place of a document under the new policy, from 0.
    """

    attraction: Floats
    target: Ints
    length: Ints

    @classmethod
    def of(cls, queries: Queries, users: Users, scores: Floats, others: Floats) -> Pages:
        """Return the pages of queries by the scores of the log's ranker; others are those of the new policy's."""
        every, length = users.attraction(queries.grades), np.minimum(queries.lengths, PAGE)
        attraction = np.zeros((queries.n_queries, PAGE))
        target = np.tile(np.arange(PAGE), (queries.n_queries, 1))
        for number, (start, end, n) in enumerate(zip(queries.starts[:-1], queries.starts[1:], length, strict=True)):
            shown = start + np.argsort(-scores[start:end], kind="stable")[:n]
            attraction[number, :n] = every[shown]
            target[number, :n] = np.argsort(np.argsort(-others[shown], kind="stable"))
        return cls(attraction, target, length)

    def truth(self, users: Users) -> float:
        """Return the expected clicks of an impression under the new policy."""
        ranked = np.zeros_like(self.attraction)
        np.put_along_axis(ranked, self.target, self.attraction, axis=1)
        on_page = np.arange(PAGE) < self.length[:, None]
        return float(users.probabilities(ranked)[on_page].sum() / self.length.sum())

    def estimates(self, users: Users, generator: np.random.Generator) -> dict[str, Estimate]:
        """Return the estimates from a log of SESSIONS."""
        query = generator.integers(len(self.length), size=SESSIONS)
        length, attraction, target = self.length[query][:, None], self.attraction[query], self.target[query]
        turn = np.where(generator.random((SESSIONS, 1)) < 0.5, 0, generator.integers(length))
        own = np.tile(np.arange(PAGE), (SESSIONS, 1))
        on_page = own < length
        place = np.where(on_page, (own + turn) % length, own)
        shown = np.zeros_like(attraction)
        np.put_along_axis(shown, place, attraction, axis=1)
        click = np.take_along_axis(users.clicks(shown, generator), place, axis=1)[on_page].astype(float)
        session = np.repeat(np.arange(SESSIONS), length.ravel())
        propensity = (0.5 * (place == own) + 0.5 / length)[on_page]
        there = item_position(propensity, (place == target)[on_page].astype(float))
        places = np.arange(1, PAGE + 1)
        curve = Examination.given(dict(zip(places.tolist(), (places**-users.eta).tolist(), strict=True)))
        seen, wanted = place[on_page] + 1, target[on_page] + 1
        predicted = curve.at(seen) * WRONG * attraction[on_page]
        ranked = np.zeros_like(attraction)
        np.put_along_axis(ranked, target, WRONG * attraction, axis=1)
        expected = curve.at(seen) * np.take_along_axis(ranked, place, axis=1)[on_page]
        return {
            "IPS": ips(click, there, session),
            "SNIPS": snips(click, there, session),
            "DR": doubly_robust(click, there, session, predicted, expected),
            "by position": ips(click, position(curve, seen, wanted), session),
        }


def coverage(pages: Pages, users: Users, replications: int, generator: np.random.Generator) -> Json:
    """Return by estimate the share of replications whose interval covers the truth, and the mean relative to it."""
    truth = pages.truth(users)
    found = [pages.estimates(users, generator) for _ in range(replications)]
    return {
        name: {
            "covered": float(np.mean([each[name].low <= truth <= each[name].high for each in found])),
            "bias": float(np.mean([each[name].value for each in found])) / truth - 1.0,
        }
        for name in found[0]
    }


def open_bandit(folder: Path) -> Iterator[Row]:
    """Yield the clicks of a policy of the Open Bandit Dataset, and their estimates from the log of another policy."""
    for part in ("men", "women"):
        logs = {policy: _log(folder / f"{policy}_{part}.csv.gz") for policy in ("bts", "random")}
        click, _ = logs["random"]
        policy = ips(click, np.ones(len(click)), np.arange(len(click)))
        uniform = float(logs["random"][1][0])  # it shows every item with the same probability
        click, propensity = logs["bts"]
        weight = item_position(propensity, np.full(len(click), uniform))
        for name, estimate in (("IPS", ips), ("SNIPS", snips)):
            found = estimate(click, weight, np.arange(len(click)))
            lower, higher = sorted((found, policy), key=lambda each: each.value)
            room = float(np.hypot(lower.high - lower.value, higher.value - higher.low))
            yield {
                "part": part, "estimate": name, "from the other log": _interval(found),
                "of the policy": _interval(policy),
                "effective": round(found.effective), "agree": higher.value - lower.value <= room,
            }  # fmt: skip


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.5f} [{estimate.low:.5f}, {estimate.high:.5f}]"


def _log(file: Path) -> tuple[Floats, Floats]:
    """Return clicks and propensities of impressions."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [(float(row["click"]), float(row["propensity_score"])) for row in csv.DictReader(lines)]
    click, propensity = np.array(rows).T
    return click, propensity
