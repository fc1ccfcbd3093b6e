"""Which trials are believed, and the estimated duration of the end of a study, for which time is reserved.

The first configuration that was tried of a solver is good on many other tasks. The maximum of many noisy scores is
mostly noise where queries are few, so a trial replaces it only where its mean difference over queries is larger than
its standard error. With many queries that is soon so, with few only for a large difference. The finalists of all
solvers are chosen likewise.

In the full form of the end the candidates that may still win are rescored on fresh folds, which takes as long as their
trials did, and refitted on all queries, trees with several seeds. In its cheapest form, that of expensive trials, the
models and the scores that the trials left are used as they are. Of these actions those are chosen that fit into the
time that is left; seconds that are left are infinite without a time limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.policy.actions import Bag, BlendTrials, Rescore
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.statistics.intervals import paired, randomisation_test, z_score

AVERAGED = 8
"""The most trials of a linear model whose models are averaged. Averages of three, five and eight were equally good."""
EXPLAINED, EXPLAINED_OF_LEFT = 0.03, 0.25
"""Shares of the time of a study that explanations take, and of the seconds left, at most. They choose no model: with
less time fewer documents are explained."""
LEAST, MOST = 0.5, 20.0
"""Seconds that explanations take at least where there is time, and at most."""


class Tried(Protocol):
    """A configuration that was tried: what it scored by validation query, (n_queries,), with weights of these."""

    @property
    def solver(self) -> str:
        """Name of its solver."""

    @property
    def seconds(self) -> float:
        """What its trial took."""

    @property
    def fit_seconds(self) -> float:
        """What a fit of it would take, on all parts of a trial."""

    @property
    def vali(self) -> Floats:
        """What it scored."""

    @property
    def vali_weights(self) -> Floats | None:
        """Weights of the queries, None where each counts once."""


def ahead(first: Floats, others: Sequence[Floats], weights: Floats | None = None, policy: Policy = POLICY) -> list[int]:
    """Return the places of the trials that are ahead of the first configuration, the highest mean first.

    Parameters
    ----------
    first : array of shape (n_queries,)
        What the first configuration scored by validation query.
    others : sequence of array of shape (n_queries,)
        The same of the other trials.
    weights : array of shape (n_queries,), optional
        Weights of the queries.
    policy : Policy
        By how many standard errors a trial must be ahead.
    """
    differences = [paired(values, first, weights) for values in others]
    needed = policy.choice.ahead
    places = [place for place, (difference, error) in enumerate(differences) if difference > needed * error]
    return sorted(places, key=lambda place: -differences[place][0])


def close(values: Sequence[Floats], weights: Floats | None = None, policy: Policy = POLICY) -> list[int]:
    """Return the places of the trials that are close to the best of them, the highest mean first.

    values are what each scored by validation query, (n_queries,). Their models are averaged: that is more accurate than
    any of them where the queries do not tell which is best. Of those that score the same, the first is enough.
    """
    ordered = sorted(range(len(values)), key=lambda place: -mean_or_zero(values[place], weights))
    best = values[ordered[0]]
    near = [place for place in ordered if z_score(best, values[place], weights) <= policy.choice.close]
    different = {values[place].tobytes(): place for place in reversed(near)}
    return [place for place in near if place in different.values()][:AVERAGED]


def is_behind(tried: Tried, leader: Tried, policy: Policy = POLICY) -> bool:
    """Return whether a configuration is significantly worse than the leader."""
    return z_score(leader.vali, tried.vali, tried.vali_weights) > policy.significant


def finalists(
    candidates: Sequence[Tried], generator: np.random.Generator, *, worse: bool = False, policy: Policy = POLICY
) -> list[int]:
    """Return the places of the finalists, the best of each solver first; candidates are best first.

    They are those that paired queries do not distinguish from the best: the maximum of many noisy scores is biased, so
    it does not decide between them. The best of each other solver may still help in a blend. Those that are
    significantly worse are among them only with `worse`: the best of each solver, and all where queries are many.
    """
    leader, weights, rules = candidates[0].vali, candidates[0].vali_weights, policy.choice
    few = len(leader) < rules.many_queries
    close = [
        k
        for k, candidate in enumerate(candidates)
        if (worse and not few) or randomisation_test(candidate.vali, leader, generator, weights=weights) > rules.alpha
    ]
    solvers = [candidate.solver for candidate in candidates]
    best = [k for k in range(len(candidates)) if solvers[k] not in solvers[:k]]
    first = [k for k in best if worse or not is_behind(candidates[k], candidates[0], policy)]
    rest = sorted((k for k in close if k not in first), key=lambda k: (solvers[:k].count(solvers[k]), k))
    return [*first, *rest][: rules.finalists]


class Took(NamedTuple):
    """The seconds of a solver's best trial, those of them that a fit repeats, and how many trials it has completed."""

    trial: float
    fit: float
    trials: int = 1


@dataclass(frozen=True)
class Durations:
    """The durations of fits and of the end of a study, by the sizes of its data.

    Attributes
    ----------
    queries, documents : int
        Development queries, and documents of development and test queries.
    cells : int
        Stored features of the development documents.
    parts, fresh_parts : int
        Folds or orders by which a trial is scored, and those of the fresh plan, 0 without one.
    averages : callable
        averages(solver) is whether a solver can average models of several seeds.
    """

    queries: int
    documents: int
    cells: int
    parts: int
    fresh_parts: int
    averages: Callable[[str], bool]
    policy: Policy = POLICY

    @property
    def a_fit(self) -> float:
        """Rough seconds of a boosted fit until it stops."""
        return self.cells * self.policy.time.a_cell

    def reporting(self, models: int = 1) -> float:
        """Return the seconds of what follows the refit of so many models."""
        time = self.policy.time
        return time.fixed + time.a_document * self.documents + time.a_query * self.queries * models

    def blending(self, models: int) -> float:
        """Return the seconds of blending so many models."""
        return self.policy.time.a_query * self.queries * models if models > 1 else 0.0

    @property
    def rescore_ratio(self) -> float:
        """Duration of rescoring relative to a trial; 0 where there is no fresh plan."""
        return self.fresh_parts / self.parts

    @property
    def refit_ratio(self) -> float:
        """Duration of a refit on all queries with one seed, relative to a trial."""
        return self.policy.time.refit / self.parts

    def is_scored_once(self, seconds: float, *, is_given: bool) -> bool:
        """Return whether the seconds have room for so few boosted fits on all folds that trials are scored once.

        seconds are those of all workers together; is_given is whether validation queries were given.
        """
        needed = self.policy.time.min_fits if is_given else self.policy.time.min_fits_dealt
        return needed * self.parts * self.a_fit > seconds

    def reserve(self, total: float, took: Mapping[str, Took], growing: bool = False, jobs: int = 1) -> float:
        """Return the duration of the end, in seconds of one worker, by what each solver's best trial took.

        The solvers are in their order, the best first; those that took nothing are only blended and reported. total is
        the seconds of the study with all its workers. growing is whether first configurations of boosting are still to
        come: they gain more than all of the end but a refit of the best. The result is the duration of the fullest form
        that takes at most a share of the total: all solvers rescored and refitted, with bags of seeds of each candidate
        while the share lasts; with few queries all solvers refitted, else the best alone rescored and refitted, or
        refitted. Where a refit of the best takes more, the models of the trials are used as they are. Blending and the
        report keep each of so many jobs.
        """
        if not took:
            return jobs * self.reporting()
        time, choice, models = self.policy.time, self.policy.choice, len(took)
        ending = jobs * (self.blending(models) + self.reporting(models))
        took = {solver: each for solver, each in took.items() if each.trial > 0.0} or took
        trials = [each.trial for each in took.values()]
        rescore, refit = self.rescore_ratio, self.refit_ratio
        rescore *= total < float("inf")  # without a time limit nothing is rescored
        others = max(min(choice.finalists - len(took), (choice.per_solver - 1) * len(took)), 0)
        bags = sum(
            each.fit * (time.bag * min(each.trials, choice.per_solver) if self.is_bagged(solver) else 1)
            for solver, each in took.items()
        )
        fits, best = sum(each.fit for each in took.values()), next(iter(took.values()))
        limit = max(time.end_share * total / time.margin, 0.0)  # reading may have taken all of the time
        least = best.fit * refit
        if least > limit:
            return ending
        full = (sum(trials) + others * float(np.median(trials))) * rescore + bags * refit
        if growing:  # less than a refit of the best would be left unused
            form = least
        elif sum(trials) * rescore + fits * refit <= limit:
            form = min(full, limit)
        elif self.queries < self.policy.few_queries:
            form = min(bags * refit, limit)
        else:
            again = best.trial * 2.0 * rescore + least
            form = again if again <= limit else least
        return ending + time.margin * form

    def free(self, left: float, jobs: int, models: int = 1) -> float:
        """Return the seconds of all workers together before the report of so many models, of so many seconds left."""
        return (left - self.reporting(models)) * jobs

    def refit(self, seconds: float) -> float:
        """Return the seconds that a refit with one seed may take, of what a fit repeats of its trial."""
        return self.policy.time.margin * seconds * self.refit_ratio

    def refit_limits(self, plain: Sequence[Tried], jobs: int, left: float) -> list[float]:
        """Return the seconds after which each refit ends: those left, or where these do not suffice for all, its share.

        Boosting then has the rounds that it has.
        """
        free, total = self.free(left, jobs, len(plain)), sum(each.fit_seconds for each in plain)
        scarce = self.refit_ratio * total > max(free, 0.0)
        return [free * min(each.fit_seconds / total if scarce else 1.0, 1.0 / jobs) for each in plain]

    def after_search(self, candidates: Sequence[Tried], seed: int, jobs: int, left: float) -> Rescore | BlendTrials:
        """Return which candidates are rescored; without a deadline or time for two, those blended by their trials.

        Those of trials cost nothing more, so that significantly worse ones are among them.
        """
        places = finalists(candidates, np.random.default_rng([seed, 4]), policy=self.policy)
        if self.fresh_parts and left < float("inf"):
            places = self.fit_in_time(places, candidates, jobs, left)
            if len(places) > 1:
                return Rescore(places)
        return BlendTrials(finalists(candidates, np.random.default_rng([seed, 4]), worse=True, policy=self.policy))

    def fit_in_time(self, places: list[int], candidates: Sequence[Tried], jobs: int, left: float) -> list[int]:
        """Return those of places that can be rescored and refitted in the seconds left, in their order.

        They are the best of each solver, and others while there is time, cheap ones first. None if the best of some
        solver does not fit: a blend would miss it, and gains more from another solver than from fresh folds. Bags of
        seeds get the time that then remains.
        """
        solvers = [candidates[k].solver for k in places]
        another = {k: solver in solvers[:place] for place, (k, solver) in enumerate(zip(places, solvers, strict=True))}
        free, fitting = self.free(left, jobs, len(places)), []
        for k in sorted(places, key=lambda k: (another[k], candidates[k].seconds)):
            cost = self.policy.time.margin * candidates[k].seconds * self.rescore_ratio
            cost += self.refit(candidates[k].fit_seconds)
            if cost <= free:
                free -= cost
                fitting.append(k)
            elif not another[k]:
                return []
        return sorted(fitting, key=places.index)

    def after_blending(
        self, plain: Sequence[Tried], needed: int, has_model: Sequence[bool], jobs: int, left: float
    ) -> Bag:
        """Return which candidates are refitted, with how many seeds, and which models of trials are used as they are.

        The first `needed` of plain are the parts of the chosen candidate. They are refitted in their order while there
        is time, and the others after them, unless they are significantly worse. A part whose trial left no model is
        refitted in any case; has_model says of each whether it did. That model replaces a refit that takes too long, so
        that parts with one need no margin.
        """
        free, refitted, as_left = self.free(left, jobs, len(plain)), list[int](), list[int]()
        is_worse = [place >= needed and is_behind(values, plain[0], self.policy) for place, values in enumerate(plain)]
        for place, (candidate, has_fit) in enumerate(zip(plain, has_model, strict=True)):
            is_needed, cost = place < needed, self.refit(candidate.fit_seconds)
            if is_needed and has_fit:
                cost /= self.policy.time.margin
            # A fit cannot be divided among the jobs.
            if cost * jobs <= free and not (has_fit and is_worse[place]):
                free -= cost
                refitted.append(place)
            elif has_fit:
                as_left.append(place)
            elif is_needed:
                refitted.append(place)
        bags = [place for place in refitted if self.is_bagged(plain[place].solver) and not is_worse[place]]
        return Bag(refitted, self.bag_sizes(plain, refitted, bags, jobs, left), as_left)

    def bag_sizes(
        self, plain: Sequence[Tried], refitted: Sequence[int], bags: Sequence[int], jobs: int, left: float
    ) -> dict[int, int]:
        """Return the number of seeds of each bag, with which all that is refitted fits into the seconds left.

        Each bag has one seed more in turn while there is time. Without a time limit, models of one solver that are
        blended anyway share the seeds of a bag.
        """
        time, solvers = self.policy.time, Counter(plain[place].solver for place in bags)
        if left == float("inf"):
            return dict.fromkeys(bags, max(time.untimed_bag // max(solvers.values(), default=1), 1))
        cost = {place: self.refit(plain[place].fit_seconds) for place in refitted}
        processes = min(jobs, len(refitted))
        sizes, free = dict.fromkeys(bags, 1), self.free(left, jobs - jobs % max(processes, 1), len(refitted))
        for place in [*bags] * (time.max_bag - 1):
            more = {**sizes, place: sizes[place] + 1}
            seconds = [more.get(each, 1) * cost[each] for each in refitted]
            if sum(seconds) + (processes - 1) * max(seconds) <= free:  # the others may wait for the last one
                sizes = more
        return sizes

    def is_bagged(self, solver: str) -> bool:
        """Return whether a solver is refitted with a bag of seeds: queries are few, and it can average several."""
        return self.queries < self.policy.few_queries and self.averages(solver)


def explaining(elapsed: float, left: float) -> float:
    """Return the seconds for explanations after so many seconds of a study, with so many left; 0 for none."""
    return min(max(EXPLAINED * elapsed, LEAST), MOST, EXPLAINED_OF_LEFT * max(left, 0.0))
