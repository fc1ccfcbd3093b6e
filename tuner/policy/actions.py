"""What a study knows, and the actions that a policy decides on by it and the runner carries out.

Parameters are by flat name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from ranktune.solvers.core.space import Value

MIN_TRIALS = 20
"""Trials before a search may end for a small expected gain, which the Gaussian process underestimates after few."""


@dataclass(frozen=True)
class Untried:
    """A configuration that has not begun."""

    solver: str
    params: Mapping[str, Value]


@dataclass(frozen=True)
class Growing:
    """A boosted model that its limit ended: its parameters, what it scored, and whether a study tries it first."""

    params: Mapping[str, Value]
    value: float
    first: bool


@dataclass(eq=False)
class SearchAccount:
    """What a search has used and reached.

    Attributes
    ----------
    size : float
        Configurations that there are to try.
    trials, running : int
        Finished trials, and those that are running.
    seconds : float
        What the finished ones took.
    usual : dict of str to float
        How long the next trial of each solver may take.
    poor : int
        Suggestions in a row with too small an expected gain.
    """

    size: float = float("inf")
    trials: int = 0
    running: int = 0
    seconds: float = 0.0
    usual: dict[str, float] = field(default_factory=dict)
    poor: int = 0

    @property
    def tried(self) -> int:
        """Trials that have begun."""
        return self.trials + self.running

    @property
    def used(self) -> float:
        """The seconds that the search has used, with those that its running trials are expected to take."""
        return self.seconds + self.running * (self.seconds / self.trials if self.trials else 0.0)

    def spend(self, solver: str, seconds: float) -> None:
        """Count the seconds of a finished trial. The next one of its solver may take as long as any before."""
        self.trials += 1
        self.seconds += seconds
        self.usual[solver] = max(self.usual.get(solver, 0.0), seconds)

    def suggested(self, gain: float | None, until: float) -> None:
        """Count a suggestion with its expected gain, None where the sampler expects none, which should be `until`."""
        is_poor = gain is not None and gain < until and self.trials >= MIN_TRIALS
        self.poor = self.poor + 1 if is_poor else 0


@dataclass(frozen=True, eq=False)
class SearchState:
    """What a search knows.

    Attributes
    ----------
    accounts : mapping of str to Account
        The searches by name.
    share : float
        The most trials of a search.
    first : sequence of Untried
        The first configurations, in their order.
    unfinished : sequence of Growing
        Boosted models that their limits ended.
    best : float
        What the best trial scored.
    begun : mapping of str to int
        How many trials of a solver have begun.
    finished : frozenset of str
        Solvers of which a trial has finished.
    boosting : frozenset of str
        Solvers that boost.
    is_cut : bool
        Whether boosting that is cut at its limit counts with the rounds that it has.
    fit_seconds : float
        The seconds of a boosted fit until it stops: a rough estimate, then the mean of those that have stopped.
    trial_seconds : float
        The same, where the estimate counts as one more fit.
    in_vain, most_in_vain : int, float
        The last trials in a row of which none was ahead of the best of its solver, and how many end the search.
    behind : mapping of str to float
        By how many standard errors each solver is behind the best, paired by query.
    worse : frozenset of str
        Solvers that are significantly worse than the best.
    composed : str
        The solver whose compositions have a search beside that of all others, by its name; else empty.
    compositions : int
        The most of them while another solver leads.
    """

    accounts: Mapping[str, SearchAccount] = field(default_factory=dict)
    share: float = math.inf
    first: Sequence[Untried] = ()
    unfinished: Sequence[Growing] = ()
    best: float = -math.inf
    begun: Mapping[str, int] = field(default_factory=dict)
    finished: frozenset[str] = frozenset()
    boosting: frozenset[str] = frozenset()
    is_cut: bool = False
    fit_seconds: float = 0.0
    trial_seconds: float = 0.0
    in_vain: int = 0
    most_in_vain: float = math.inf
    behind: Mapping[str, float] = field(default_factory=dict)
    worse: frozenset[str] = frozenset()
    composed: str = ""
    compositions: int = 0

    @property
    def to_grow(self) -> int:
        """How many first configurations of boosting have not finished, where boosting counts when it is cut."""
        untried = sum(one.solver in self.boosting - self.worse for one in self.first)
        return untried + sum(growing.first for growing in self.unfinished) if self.is_cut else 0

    @property
    def running(self) -> int:
        """How many trials run."""
        return sum(account.running for account in self.accounts.values())

    def seconds_of(self, trials: int) -> float:
        """Return the seconds that so many trials take of which some run, which count half.

        A boosted trial takes `trial_seconds`, any other as long as those of its kind.
        """
        took = [*chain.from_iterable(account.usual.items() for account in self.accounts.values())]
        others = [seconds for solver, seconds in took if solver not in self.boosting]
        other = sum(others) / len(others) if others else 0.0
        usual = self.trial_seconds if self.boosting else other
        running = min(self.running, trials)
        first = [usual if one.solver in self.boosting else other for one in self.first[: trials - running]]
        return sum(first) + usual * (trials - len(first) - 0.5 * running)


@dataclass(frozen=True)
class FitTrial:
    """Fit a configuration from its beginning."""

    params: Mapping[str, Value]


@dataclass(frozen=True)
class Grow:
    """Continue an unfinished model."""

    params: Mapping[str, Value]


@dataclass(frozen=True)
class Suggest:
    """Fit the configuration that the sampler of a search suggests."""

    search: str


@dataclass(frozen=True)
class Finish:
    """Begin no more trials, for a reason in words."""

    reason: str


Next = FitTrial | Grow | Suggest | Finish
"""What a search does next."""


@dataclass(frozen=True)
class Rescore:
    """Score the candidates at these places again, on fresh folds."""

    places: Sequence[int]


@dataclass(frozen=True)
class BlendTrials:
    """Blend the candidates at these places by the scores that their trials left."""

    places: Sequence[int]


@dataclass(frozen=True)
class Bag:
    """Refit candidates on all queries, trees of few queries with several seeds.

    Attributes
    ----------
    places : sequence of int
        The candidates that are refitted.
    seeds : mapping of int to int
        The seeds of those that are refitted as a bag.
    as_left : sequence of int
        Those whose trials' models are used as they are.
    """

    places: Sequence[int]
    seeds: Mapping[int, int]
    as_left: Sequence[int]
