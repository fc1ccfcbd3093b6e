"""Every threshold that decides what a study does: which trial is next, what is stopped, chosen, refitted and blended.

Functions that decide take a `Policy`, by default `POLICY`, so that a study can be run, or simulated, with other values.
Technical limits (bytes, intervals of polling, sizes of blocks), the numerics of the Gaussian process, and numbers that
make no difference are where they are used. Seconds are those of a wall clock. "Half" and "twice" say what NDCG@10 on
test queries gains, with its standard error, by half and by twice the value (docs/explanation/tasks.md): in simulated
studies if nothing else is said. "Set by hand" says that no experiment chose a value.
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
        then compare, at a fifth of the fits. Set by hand: the table of tasks has the values of given queries alone.
    trials : int
        The most trials where no number is given: what more find is mostly noise. Set by hand: simulated studies of a
        minute have time for 54.
    max_rounds : int
        The most rounds of boosting, which validation queries stop before. Set by hand.
    """

    test_share: float = 0.2
    folds: int = 5
    given: int = 300
    trials: int = 500
    max_rounds: int = 5000


@dataclass(frozen=True)
class Race:
    """When a trial is stopped (`ranktune.tuner.policy.racing`).

    Attributes
    ----------
    level : float
        The probability, at most, with which a trial is stopped that would have won. The usual level of tests. Replayed
        races with half and with twice of it took 67 and 61 percent of the fits, instead of 64, and gained 0.0003
        (0.0003) and 0.0000 (0.0001).
    min_queries : int
        Queries, by their effective number, that must differ before they are tested: the mean of fewer is far from
        normal. Replayed races with half and with twice as many took 61 and 72 percent of the fits, instead of 64, and
        gained 0.0001 (0.0001) and 0.0002 (0.0002).
    first_steps : float
        Rounds of boosting, times the learning rate, after which the growth of a model is first tested. Set by hand:
        the table of tasks has no values by query of models that grow.
    """

    level: float = 0.05
    min_queries: int = 8
    first_steps: float = 4.0


@dataclass(frozen=True)
class Searching:
    """Which trial is next (`ranktune.tuner.policy.next_trial`).

    Attributes
    ----------
    startup, startup_apart : int
        Quasi-random trials before the sampler uses its model: in the space of all solvers, and in that of one. Set by
        hand. The latter: half -0.0003 (0.0002), twice +0.0001 (0.0001).
    least_share : float
        The least share of the time of the best solver that the search of another one has. Set by hand; half -0.0001
        (0.0001), twice -0.0003 (0.0002).
    poor : int
        Suggestions in a row with too small an expected gain that end a search, and the fewest trials in vain: after
        three, others gained nothing (docs/explanation/tasks.md).
    seconds_in_vain, most_in_vain : float, int
        Where neither a number nor a time is given, a search ends after trials in vain: as many as take about so many
        seconds, at least `poor` and at most so many. What others gained after them is in docs/explanation/tasks.md.
    few_fits, before_boosting : float, int
        Boosted fits that the time left must have room for, so that all other solvers are tried before boosting, and how
        many are tried before it otherwise. Decided by simulated studies of tasks to learn from, and confirmed on others
        (docs/explanation/tasks.md). The former: half -0.0006 (0.0005), twice 0.0000 (0.0003); the latter: 0.0000
        (0.0011), -0.0054 (0.0019).
    compositions : int
        Compositions of a loss, a pair weight, a penalty and an optimizer that are tried while other solvers lead, where
        no time is given, as far as there are as many other trials (docs/explanation/optimiser.md).
    short : float
        Mean seconds of trials up to which each worker that joined has one ahead. One that has none waits for some
        hundredths of a second, which is little beside longer trials. Set by hand: it chooses no model.
    """

    startup: int = 10
    startup_apart: int = 5
    least_share: float = 0.1
    poor: int = 3
    seconds_in_vain: float = 30.0
    most_in_vain: int = 15
    few_fits: float = 2.0
    before_boosting: int = 2
    compositions: int = 10
    short: float = 5.0


@dataclass(frozen=True)
class Time:
    """How long the end takes, and what has time (`ranktune.tuner.policy.reserve`).

    Attributes
    ----------
    a_cell : float
        Rough seconds of boosting until it stops, for each feature of each document: the median of LambdaMART's defaults
        on sixteen generated tasks. Half -0.0036 (0.0018), twice +0.0008 (0.0003).
    min_fits, min_fits_dealt : int
        Boosted fits on all folds that the time of a study must have room for: with given validation queries, and
        without, where one fold is few queries to choose on. Decided on sixteen generated tasks, and confirmed on
        others. The former: half -0.0031 (0.0017), twice +0.0003 (0.0002).
    end_share : float
        The largest share of the time of a study that is reserved for its end. Set by hand; half +0.0002 (0.0003) with
        16 percent more trials, twice -0.0001 (0.0001), without what the end gains.
    margin : float
        Safety factor of estimated seconds. Set by hand: a study must end in time, which no gain shows. Half +0.0009
        (0.0006), twice -0.0019 (0.0010).
    refit : float
        Duration of a refit to all queries, relative to one part of a trial: of five folds, each fit is to four fifths
        of the queries. Half +0.0009 (0.0006), twice -0.0020 (0.0010).
    fixed, a_document, a_query : float
        Seconds of the report in any case, for each document, and for each query and model, as of blending. Set by hand
        as durations, of which no gain shows whether they are right. Half +0.0057 (0.0016), +0.0002 (0.0003) and +0.0007
        (0.0006), twice -0.0293 (0.0040), -0.0033 (0.0014) and -0.0019 (0.0009).
    bag, untimed_bag : int
        Seeds over which refitted tree models are averaged, where queries are few: as time is reserved for with a time
        limit, and without. Set by hand. The former: half 0.0000 (0.0002) with 5 percent more trials, twice -0.0001
        (0.0001), without what bags gain.
    max_bag : int
        The most seeds, which time that nothing else has used pays for. Set by hand: no seed is simulated.
    """

    a_cell: float = 2.5e-6
    min_fits: int = 10
    min_fits_dealt: int = 3
    end_share: float = 0.4
    margin: float = 1.1
    refit: float = 1.25
    fixed: float = 1.75
    a_document: float = 6e-6
    a_query: float = 4e-5
    bag: int = 5
    untimed_bag: int = 3
    max_bag: int = 10


@dataclass(frozen=True)
class Choosing:
    """Which trials are believed, and which are scored on fresh folds (`ranktune.tuner.policy.reserve`).

    Attributes
    ----------
    ahead : float
        Standard errors of the paired difference by which a trial must be ahead of the first configuration of its
        solver. Chosen on many drawn tasks, and confirmed on others (docs/explanation/tasks.md). Half 0.0000 (0.0002),
        twice 0.0000 (0.0002).
    close : float
        Standard errors of the paired difference within which a trial of a linear model is close to the best. Such
        trials are further candidates, whose models a blend averages. Decided on generated tasks, and confirmed on
        others (docs/explanation/tasks.md).
    per_solver, finalists : int
        Candidates of each solver, and the largest number of those scored on fresh folds. Set by hand. Half -0.0001
        (0.0001) and 0.0000 (0.0000), twice -0.0001 (0.0000) and 0.0000 (0.0000), without what fresh folds gain.
    alpha : float
        Paired p-value above which two candidates are not distinguished. The usual level of tests.
    many_queries : int
        Validation queries from which on worse candidates can help in a blend; of fewer, blends follow their noise. Set
        by hand: no blend is simulated.
    """

    ahead: float = 1.0
    close: float = 1.0
    per_solver: int = 3
    finalists: int = 16
    alpha: float = 0.05
    many_queries: int = 400


@dataclass(frozen=True)
class Blending:
    """What is blended, and with which shares (`ranktune.tuner.policy.blends`).

    Attributes
    ----------
    equal : tuple of float
        Weights of the equal shares, the usual one first; the rest is greedy. On fourteen generated tasks the mean of
        both was better than either alone.
    worse : float
        Standard errors of the paired difference from which a model is too far behind the best for an equal share, or
        for the share of the default. Set by hand: no blend is simulated.
    least : float
        Part of an equal share below which a model is left out. On 35 tasks 0.3 had 0.0001 less on test queries than
        0.1, and a fifth less time for refits.
    better : float
        Standard errors by which, with few queries, equal or greedy shares alone must be better than their mean. Set by
        hand: no blend is simulated.
    other : float
        Standard errors by which, with few queries, the blend of a family, or a single model, must be better than the
        blend of all. Decided on 75 generated tasks, and confirmed on 54 others (docs/explanation/tasks.md).
    default : float
        Share of a blend that the best of the first configurations has, with few queries. Decided and
        confirmed likewise.
    """

    equal: tuple[float, ...] = (0.5, 1.0, 0.0)
    worse: float = 2.0
    least: float = 0.3
    better: float = 1.5
    other: float = 3.0
    default: float = 0.25


@dataclass(frozen=True)
class OnePassPolicy:
    """What is compared while all configurations learn from one pass over the data (`ranktune.tuner.one_pass`).

    Half and twice are of passes over 56 drawn tasks.

    Attributes
    ----------
    halvings : int
        The first look comes after 1/2^halvings of the queries. Set by hand; half +0.0003 (0.0003), twice 0.0000.
    fresh : float
        Share of the places that is kept for new configurations while they can join. Set by hand; half +0.0005
        (0.0002), twice +0.0001 (0.0002).
    near : float
        Standard deviation of what a configuration near another one differs by, as a share of each range. Set by hand;
        half +0.0003 (0.0002), twice 0.0000 (0.0001).
    kept : float
        The probability with which it keeps a choice. Set by hand; half +0.0001 (0.0001), always +0.0001 (0.0001).
    """

    halvings: int = 6
    fresh: float = 0.25
    near: float = 0.15
    kept: float = 0.7


@dataclass(frozen=True)
class Policy:
    """The thresholds of a study by what they decide.

    Attributes
    ----------
    significant : float
        Standard errors of a paired difference beyond which one model is significantly worse than another, so that it
        gets less time and is no finalist. Set by hand; half -0.0002 (0.0001), twice 0.0000 (0.0000).
    few_queries : int
        Queries below which queries are few: trees are then refitted as bags of seeds, and blends stay with what
        averages most unless another is plainly better. Bags of more queries gained 0.0008 (0.0007) for models of up to
        five times the size (docs/explanation/tasks.md).
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
