"""Every threshold that decides what a study does: which trial is next, what is stopped, chosen, refitted and blended.

Functions that decide take a `Policy`, by default `POLICY`, so that a study can be run, or simulated, with other values.
Technical limits (bytes, intervals of polling, sizes of blocks) and the numerics of the Gaussian process are where they
are used. Seconds are those of a wall clock. "Set by hand" says that no experiment chose a value.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scoring:
    """On which queries trials are scored and models are tested, and how many trials run and how long they may grow.

    Attributes
    ----------
    test_share : float
        Share of the training queries that are set aside as test queries where none are given. The usual share.
    folds : int
        Folds of cross-validation. The usual number.
    given : int
        Given validation queries from which on they alone score trials: enough to find the few best, which fresh folds
        then compare, at a fifth of the fits. Set by hand.
    large_bytes, large_queries : int
        Bytes of features and number of queries from which on the first fold alone scores trials: each fold is a copy
        on disk, and one has queries enough. Set by hand.
    trials : int
        The most trials where no number is given: what more find is mostly noise. Set by hand.
    max_rounds : int
        The most rounds of boosting, which validation queries stop before. Set by hand.
    round_step : float
        Factor from the rounds after which a model that grows is scored on folds to the next ones. Set by hand.
    """

    test_share: float = 0.2
    folds: int = 5
    given: int = 300
    large_bytes: int = 2**31
    large_queries: int = 5_000
    trials: int = 500
    max_rounds: int = 5000
    round_step: float = 1.15


@dataclass(frozen=True)
class Race:
    """When a trial is stopped (`ranktune.tuner.policy.racing`).

    Attributes
    ----------
    level : float
        The probability, at most, with which a trial is stopped that would have won. The usual level of tests.
    min_queries : int
        Queries, by their effective number, that must differ before they are tested: the mean of fewer is far from
        normal. Set by hand.
    min_orders : int
        Orders that must differ before they are tested; each is a mean itself. Set by hand.
    first_steps : float
        Rounds of boosting, times the learning rate, after which the growth of a model is first tested. Set by hand.
    """

    level: float = 0.05
    min_queries: int = 8
    min_orders: int = 3
    first_steps: float = 4.0


@dataclass(frozen=True)
class Searching:
    """Which trial is next (`ranktune.tuner.policy.next_trial`).

    Attributes
    ----------
    startup, startup_apart : int
        Quasi-random trials before the sampler uses its model: in the space of all solvers, and in that of one. Set by
        hand.
    least_share : float
        The least share of the time of the best solver that the search of another one has. Set by hand.
    poor : int
        Suggestions in a row with too small an expected gain that end a search; a single one may be bad luck. Set by
        hand.
    seconds_in_vain, most_in_vain : float, int
        Where neither a number nor a time is given, a search ends after trials in vain: as many as take about so many
        seconds, at least `poor` and at most so many. What others gained after them is in docs/explanation/tasks.md.
    further : int
        Trials after those in vain that gained nothing on other data (docs/explanation/tasks.md).
    min_trials : int
        Trials before a search may end for a small expected gain, which is underestimated after few. Set by hand.
    cut : float
        Share of its expected time from which a trial of boosting is begun; at the deadline it counts with its rounds.
        Set by hand.
    usual : float
        What a longer trial of a solver still counts after a shorter one, as the time that the next may take. Set by
        hand.
    bulk : float
        Power of a model's bytes that stands for the seconds to fit it where no time is given: trees of twice the bytes
        take less than twice. Set by hand.
    few_fits, before_boosting : float, int
        Boosted fits that the time left must have room for, so that all other solvers are tried before boosting, and how
        many are tried before it otherwise. Decided by simulated studies of tasks to learn from, and confirmed on others
        (docs/explanation/tasks.md).
    failures : int
        Failures in a row after which the study gives up. Set by hand.
    short : float
        Mean seconds of trials up to which each worker that joined has one ahead. One that has none waits for some
        hundredths of a second, which is little beside longer trials. Set by hand.
    """

    startup: int = 10
    startup_apart: int = 5
    least_share: float = 0.1
    poor: int = 3
    seconds_in_vain: float = 30.0
    most_in_vain: int = 15
    further: int = 20
    min_trials: int = 20
    cut: float = 0.3
    usual: float = 0.9
    bulk: float = 2.0 / 3.0
    few_fits: float = 2.0
    before_boosting: int = 2
    failures: int = 20
    short: float = 5.0


@dataclass(frozen=True)
class Time:
    """How long the end takes, and what has time (`ranktune.tuner.policy.reserve`).

    Attributes
    ----------
    a_cell : float
        Rough seconds of boosting until it stops, for each feature of each document: the median of LambdaMART's defaults
        on sixteen generated tasks.
    min_fits, min_fits_dealt : int
        Boosted fits on all folds that the time of a study must have room for: with given validation queries, and
        without, where one fold is few queries to choose on. Decided on sixteen generated tasks, and confirmed on
        others.
    end_share : float
        The largest share of the time of a study that is reserved for its end. Set by hand.
    leader_share : float
        The same, for the refit of the best model alone. Set by hand.
    margin : float
        Safety factor of estimated seconds. Set by hand.
    refit : float
        Duration of a refit to all queries, relative to one part of a trial: of five folds, each fit is to four fifths
        of the queries.
    fixed, a_document, a_query : float
        Seconds of the report in any case, for each document, and for each query and model, as of blending. Set by hand.
    bag, untimed_bag : int
        Seeds over which refitted tree models are averaged, where queries are few: with a time limit, and without. Set
        by hand.
    max_bag : int
        The most seeds, which time that nothing else has used pays for. Set by hand.
    copy_passes : int
        Times that all development documents are scored to make a copy and to measure its loss. Set by hand.
    explained, explained_least, explained_most : float
        Share of the time of a study that explanations take, and the seconds that they take at least and at most. Set by
        hand.
    explained_left : float
        Share of the seconds left that explanations take at most. Set by hand.
    unused : float
        Share of the given time that may be left without a reason in the report. Set by hand.
    """

    a_cell: float = 2.5e-6
    min_fits: int = 10
    min_fits_dealt: int = 3
    end_share: float = 0.4
    leader_share: float = 0.5
    margin: float = 1.1
    refit: float = 1.25
    fixed: float = 1.75
    a_document: float = 6e-6
    a_query: float = 4e-5
    bag: int = 5
    untimed_bag: int = 3
    max_bag: int = 10
    copy_passes: int = 6
    explained: float = 0.03
    explained_least: float = 0.5
    explained_most: float = 20.0
    explained_left: float = 0.25
    unused: float = 0.03


@dataclass(frozen=True)
class Choosing:
    """Which trials are believed, and which are scored on fresh folds (`ranktune.tuner.policy.reserve`).

    Attributes
    ----------
    ahead : float
        Standard errors of the paired difference by which a trial must be ahead of the first configuration of its
        solver. Chosen on many drawn tasks, and confirmed on others (docs/explanation/tasks.md).
    close : float
        Standard errors of the paired difference within which a trial of a linear model is close to the best. Such
        trials are further candidates, whose models a blend averages. Decided on generated tasks, and confirmed on
        others (docs/explanation/tasks.md).
    averaged : int
        The most such trials. Averages of three, five and eight were equally good.
    per_solver, finalists : int
        Candidates of each solver, and the largest number of those scored on fresh folds. Set by hand.
    alpha : float
        Paired p-value above which two candidates are not distinguished. The usual level of tests.
    many_queries : int
        Validation queries from which on worse candidates can help in a blend; of fewer, blends follow their noise. Set
        by hand.
    """

    ahead: float = 1.0
    close: float = 1.0
    averaged: int = 8
    per_solver: int = 3
    finalists: int = 16
    alpha: float = 0.05
    many_queries: int = 400


@dataclass(frozen=True)
class Blending:
    """What is blended, and with which shares (`ranktune.tuner.policy.blends`).

    Attributes
    ----------
    folds, a_fold : int
        Folds on which blends are chosen, and the fewest queries of one. Set by hand.
    equal : tuple of float
        Weights of the equal shares, the usual one first; the rest is greedy. On fourteen generated tasks the mean of
        both was better than either alone.
    worse : float
        Standard errors of the paired difference from which a model is too far behind the best for an equal share, or
        for the share of the default. Set by hand.
    least : float
        Part of an equal share below which a model is left out. On 35 tasks 0.3 had 0.0001 less on test queries than
        0.1, and a fifth less time for refits.
    better : float
        Standard errors by which, with few queries, equal or greedy shares alone must be better than their mean. Set by
        hand.
    other : float
        Standard errors by which, with few queries, the blend of a family, or a single model, must be better than the
        blend of all. Decided on 75 generated tasks, and confirmed on 54 others (docs/explanation/tasks.md).
    default : float
        Share of a blend that the best of the first configurations has, with few queries. Decided and
        confirmed likewise.
    steps, patience : int
        Largest number of models of a greedy choice, with repetitions, and steps without a gain after which it ends. Set
        by hand.
    queries : int
        Queries of a greedy choice; of more an evenly spaced sample. Set by hand.
    """

    folds: int = 5
    a_fold: int = 2
    equal: tuple[float, ...] = (0.5, 1.0, 0.0)
    worse: float = 2.0
    least: float = 0.3
    better: float = 1.5
    other: float = 3.0
    default: float = 0.25
    steps: int = 20
    patience: int = 5
    queries: int = 2000


@dataclass(frozen=True)
class OnePassPolicy:
    """What is compared while all configurations learn from one pass over the data (`ranktune.tuner.one_pass`).

    Attributes
    ----------
    halvings : int
        The first look comes after 1/2^halvings of the queries. Set by hand.
    first_queries : int
        The least number of queries before the first look. Set by hand.
    fresh : float
        Share of the places that is kept for new configurations while they can join. Set by hand.
    shares : tuple of float
        Shares of ElasticRank and SOLAR1 among the configurations that are drawn. Set by hand.
    near : float
        Standard deviation of what a configuration near another one differs by, as a share of each range. Set by hand.
    kept : float
        The probability with which it keeps a choice. Set by hand.
    """

    halvings: int = 6
    first_queries: int = 64
    fresh: float = 0.25
    shares: tuple[float, ...] = (0.75, 0.25)
    near: float = 0.15
    kept: float = 0.7


@dataclass(frozen=True)
class Policy:
    """The thresholds of a study by what they decide.

    Attributes
    ----------
    significant : float
        Standard errors of a paired difference beyond which one model is significantly worse than another, so that it
        gets less time and is no finalist. Set by hand.
    few_queries : int
        Queries below which queries are few: trees are then refitted as bags of seeds, and blends stay with what
        averages most unless another is plainly better. Set by hand.
    scoring, race, search, time, choice, blend, one_pass
        The thresholds of each decision.
    """

    significant: float = 3.0
    few_queries: int = 1000
    scoring: Scoring = Scoring()
    race: Race = Race()
    search: Searching = Searching()
    time: Time = Time()
    choice: Choosing = Choosing()
    blend: Blending = Blending()
    one_pass: OnePassPolicy = OnePassPolicy()


POLICY = Policy()
"""The policy of every study, unless it is given another one."""
