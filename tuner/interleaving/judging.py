"""What a log of interleaved lists says, and how many searches a test needs.

The log says which ranking users prefer and how surely, and the account says what was left out. The size of a test is
computed by the exact power of the sign test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.core.arrays import Array, Floats, Json
from ranktune.solvers.core.checks import check_finite
from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.interleaving.lists import A, B
from ranktune.tuner.interleaving.searches import Searches, read_searches
from ranktune.tuner.statistics.intervals import stratified_interval

NO_DIFFERENCE = "no difference found"
FEWEST = 20
"""Users, or queries, below which a bootstrap interval is too narrow for a verdict."""
ALPHA = 0.05
"""Level of the two-sided sign test, as that of a verdict."""
MOST_SEARCHES, NODES = 10**9, 4001
POWERS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Tally:
    """How many of some searches, or of queries, A and B won, and an exact sign test of it.

    p is two-sided, of "A wins as often as B": the binomial distribution of wins among those that are no ties.
    """

    wins: int
    ties: int
    losses: int
    p: float

    @classmethod
    def of(cls, outcomes: Array) -> Tally:
        """Return the tally of outcomes, whose signs count."""
        wins, losses = int((outcomes > 0).sum()), int((outcomes < 0).sum())
        p = float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
        return cls(wins, len(outcomes) - wins - losses, losses, p)


@dataclass(frozen=True)
class TestOutcome:
    """What an interleaving test has found.

    Attributes
    ----------
    method : str
        "team-draft" or "balanced", which says how clicks are counted.
    verdict : str
        "A" or "B", the ranking that users prefer, where both the interval and the sign test by search say so, else "no
        difference found".
    preference : float
        Searches that A wins less those that B wins, as a share of all searches, from -1 to 1.
    low, high : float or None
        Its 95 % interval, by a bootstrap of units; None with a single one.
    searches, queries : Tally
        Wins, ties and losses of A, with the p of an exact sign test. A search without clicks is a tie. Each query
        counts once, by the sum of its searches.
    clicked : int
        Searches with a click.
    unit, units : str, int
        What is drawn by the bootstrap, "user", or "query" where the log has no users; and how many there are.
    design_effect : float
        The variance of the preference, relative to that of as many searches that do not depend on each other.
    account : Account
        What became of each line of the log.
    """

    method: str
    verdict: str
    preference: float
    low: float | None
    high: float | None
    searches: Tally
    queries: Tally
    clicked: int
    unit: str
    units: int
    design_effect: float
    account: ReadingAccount

    @property
    def ties(self) -> float:
        """The share of searches that are ties."""
        tally = self.searches
        return tally.ties / (tally.wins + tally.ties + tally.losses)

    @property
    def remarks(self) -> list[str]:
        """What to mind of the verdict."""
        what = "users" if self.unit == "user" else "queries"
        few = f"{self.units} {what} are too few for a verdict: it needs {FEWEST}."
        by_query = self.queries.wins - self.queries.losses
        opposed = "Most queries prefer the other ranking: frequent queries decide."
        return [
            *([few] if self.units < FEWEST else []),
            *([opposed] if self.verdict != NO_DIFFERENCE and by_query * self.preference < 0 else []),
        ]

    def as_dict(self) -> Json:
        """Return everything as plain values; the interval is a list of its limits, None with a single unit."""
        plain: Json = {name: value for name, value in vars(self).items() if name not in ("low", "high")}
        plain |= {"searches": asdict(self.searches), "queries": asdict(self.queries), "account": vars(self.account)}
        return {**plain, "interval": None if self.low is None else [self.low, self.high], "remarks": self.remarks}


def judge(
    *logs: str | Path, columns: Mapping[str, str] | None = None, method: str | None = None, random_state: int = 0
) -> TestOutcome:
    r"""Return what a log of interleaved lists says of the two rankings.

    Parameters
    ----------
    *logs : str or Path
        The files of a log: csv, tsv, Parquet or jsonl. A line is a list: teams, and clicks, the positions that were
        clicked, from 1; with query, user, and of balanced lists ranks_a and ranks_b. Or it is a document of a list:
        position, team and click, and query, session or search_id, by which the rows of a search are found.
    columns : mapping of str to str, optional
        Role -> column, where names are not recognised: search, session, query, user, position, team, click, rank_a and
        rank_b.
    method : {"team-draft", "balanced"}, optional
        How clicks are counted; by default as for balanced lists where the log has ranks.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Judged
        The verdict, the preference with its interval, wins by search and by query with sign tests, and the account.

    Raises
    ------
    DataError
        A file cannot be read or lacks a column, or no search is left.
    ParameterError
        An argument is invalid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from ranktune.tuner.interleaving import judge
    >>> path = Path(mkdtemp()) / "log.jsonl"
    >>> line = '{"query": "q%d", "teams": ["A", "B"], "clicks": [%d]}\n'
    >>> _ = path.write_text("".join(line % (n, 1 + (n % 4 == 0)) for n in range(80)))
    >>> found = judge(path)
    >>> found.verdict, found.preference, found.searches.wins, found.searches.losses
    ('A', 0.5, 60, 20)
    """
    searches = read_searches([Path(log) for log in logs], columns or {}, method)
    return judged(searches, np.random.default_rng(random_state))


def judged(searches: Searches, generator: np.random.Generator, resamples: int = 10_000) -> TestOutcome:
    """Return what searches say."""
    outcome = searches.outcome.astype(np.float64)
    sums, counts = _by_unit(outcome, searches.user if searches.has_users else searches.query)
    preference, units = float(outcome.mean()), len(sums)
    interval = stratified_interval([sums / counts], generator, resamples=resamples, weights=[counts])
    low, high = (interval.low, interval.high) if units > 1 else (None, None)
    by_search = Tally.of(outcome)
    sure = units >= FEWEST and by_search.p <= 0.05 and not interval.low <= 0.0 <= interval.high
    return TestOutcome(
        method=searches.method,
        verdict=(A if preference > 0 else B) if sure else NO_DIFFERENCE,
        preference=preference,
        low=low,
        high=high,
        searches=by_search,
        queries=Tally.of(_by_unit(outcome, searches.query)[0]),
        clicked=int(searches.clicked.sum()),
        unit="user" if searches.has_users else "query",
        units=units,
        design_effect=_design_effect(outcome, sums, counts),
        account=searches.account,
    )


def _by_unit(outcome: Floats, unit: Array) -> tuple[Floats, Floats]:
    """Return the sum of the outcomes of each unit, and how many it has."""
    _, place, counts = np.unique(unit, return_inverse=True, return_counts=True)
    return np.bincount(place, outcome).astype(np.float64), counts.astype(np.float64)


def _design_effect(outcome: Floats, sums: Floats, counts: Floats) -> float:
    """Return the variance of the mean by units, relative to that by searches; 1 where nothing varies.

    Source: Kish 1965, "Survey sampling", section 8.2, for the ratio of two sums.
    """
    n, units, variance = len(outcome), len(sums), float(outcome.var())
    if units < 2 or variance == 0.0:
        return 1.0
    apart = float(((sums - outcome.mean() * counts) ** 2).sum())
    return apart / (n * variance) * (units / (units - 1)) * ((n - 1) / n)


@dataclass(frozen=True)
class TestSize:
    """How large a test must be.

    Attributes
    ----------
    searches : int
        The searches that it needs, also those without clicks: at least as many as a verdict needs.
    power : float
        The probability that it finds the effect.
    effect : float
        The preference to be found: searches that the better ranking wins, less those that it loses, as a share.
    ties : float
        The share of searches that are ties.
    design_effect : float
        How many times as many searches are needed because those of a user are alike.
    """

    searches: int
    power: float
    effect: float
    ties: float
    design_effect: float

    def as_dict(self) -> Json:
        """Return everything as plain values."""
        return asdict(self)


def plan(
    effect: float,
    *,
    ties: float | None = None,
    seen: TestOutcome | None = None,
    power: float = 0.8,
) -> TestSize:
    """Return the searches that a test needs to find a preference, if there is one of this size.

    Parameters
    ----------
    effect : float
        The smallest preference that matters: the share of searches that the better ranking wins, less the share that it
        loses. Where it wins 12 % and loses 9 %, 0.03.
    ties : float, optional
        The share of searches that are ties, also those without clicks: 0.79 in this example.
    seen : Judged, optional
        What judge says of a log so far, in place of ties: it has the share of ties, and how much searches of a user are
        alike. The preference seen so far is not used: a plan for what chance has shown promises too much.
    power : float, default=0.8
        The probability with which the test is to find it.

    Returns
    -------
    Plan
        searches, and the power that so many have by the exact two-sided sign test at level 0.05.

    Raises
    ------
    ParameterError
        An argument is invalid, effect and ties do not fit together, or more than 10**9 searches are needed.

    Examples
    --------
    >>> from ranktune.tuner.interleaving import plan
    >>> found = plan(0.03, ties=0.79)
    >>> found.searches, round(found.power, 2)
    (1888, 0.8)
    """
    if (ties is None) == (seen is None):
        raise ParameterError(
            "the noise must be known: give either the share of ties=, or the judgment of a log, as judge() returns it."
        )
    tied = float(ties or 0.0) if seen is None else seen.ties
    alike = 1.0 if seen is None else max(1.0, seen.design_effect)
    for name, value in (("effect", effect), ("ties", tied), ("power", power)):
        check_finite(name, value)
    if not 0.0 <= tied < 1.0:
        raise ParameterError(
            f"ties={tied!r}: they must be a share of at least 0 and below 1, as wins and losses are left."
        )
    if not 0.0 < effect <= 1.0 - tied:
        raise ParameterError(
            f"effect={effect!r}: it must be above 0 and at most {1.0 - tied:g}, the share of searches that are no ties."
        )
    if not ALPHA < power < 1.0:
        raise ParameterError(f"power={power!r}: it must be above {ALPHA} and below 1, such as 0.8.")
    enough = _enough(effect, tied, alike, power)
    if enough is None:
        raise ParameterError(f"an effect of {effect!r} needs more than {MOST_SEARCHES:,} searches. Give a larger one.")
    return TestSize(enough, _power(int(enough / alike), effect, tied), effect, tied, alike)


def sizes(planned: TestSize) -> list[tuple[float, list[int | None]]]:
    """Return half the effect of a plan, the effect and twice it, each with the searches for POWERS; None: too many."""
    effects = [share * planned.effect for share in (0.5, 1.0, 2.0) if share * planned.effect <= 1.0 - planned.ties]
    return [
        (effect, [_enough(effect, planned.ties, planned.design_effect, power) for power in POWERS])
        for effect in effects
    ]


def _enough(effect: float, ties: float, alike: float, power: float) -> int | None:
    """Return the searches of which the test has the power; None where they are more than MOST_SEARCHES."""
    most = int(MOST_SEARCHES / alike)
    if _power(most, effect, ties) < power:
        return None
    low, high = FEWEST - 1, FEWEST
    while _power(high, effect, ties) < power:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, effect, ties) >= power else (middle, high)
    return math.ceil(high * alike)


def _power(searches: int, effect: float, ties: float) -> float:
    """Return the probability that the sign test finds the better ranking in as many searches.

    How many are no ties is binomial. The better ranking must win all of these but so many that as few are likely by
    chance. Of numbers that are likely, at most NODES are computed.
    """
    decided = 1.0 - ties
    loses = (1.0 - effect / decided) / 2.0
    spread = 8.0 * math.sqrt(searches * decided * ties) + 1.0
    first, last = max(0, int(searches * decided - spread)), min(searches, math.ceil(searches * decided + spread))
    n = np.unique(np.linspace(first, last, min(last - first + 1, NODES)).astype(np.int64))
    weight = stats.binom.pmf(n, searches, decided)
    most = stats.binom.ppf(ALPHA / 2, n, 0.5)
    most = np.where(stats.binom.cdf(most, n, 0.5) <= ALPHA / 2, most, most - 1)
    return float((weight * stats.binom.cdf(most, n, loses)).sum() / weight.sum())
