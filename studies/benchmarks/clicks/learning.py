"""One log of simulated users: propensities beside the truth, and rankers that learn from the judgments of each model.

Grades are probabilities, or ratios, of clicks. What a document is worth to users who click is that probability itself,
so that its gain is linear, as the solvers' gain "auto" is for such grades. Judgments count with their weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping

import numpy as np

from ranktune.solvers import LambdaMART, Ranker, RankSVM
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.clicks.counts import Counts
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.fitted import ClickModel
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.clicks.position_based import Joint, PositionBased, TrustBias
from ranktune.solvers.clicks.propensities import swaps
from ranktune.solvers.clicks.rates import COEC, ClickRate
from ranktune.solvers.core.arrays import Floats, Ints, Json
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import Split
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.turnkey.peers import METRIC, given
from ranktune.studies.clicks.simulation import Users, simulated

USERS: Mapping[str, Users] = {
    "eta 1": Users(),
    "eta 1.5": Users(eta=1.5),
    "noise 0.3": Users(noise=0.3),
    "trust": Users("trust"),
    "cascade": Users("cascade"),
}
LEARNERS: Mapping[str, Callable[[int], BaseRanker]] = {
    "Ranker": lambda seed: Ranker(random_state=seed),
    "RankSVM": lambda seed: RankSVM(),
    "LambdaMART": lambda seed: LambdaMART(random_state=seed),
}
FULL, SHOWN, LOGGED, CTR = "full", "shown", "log", "CTR"
FEW = 10
"""Queries that the ranker of the log is fitted to."""
SPREAD = 0.5
"""Noise of the scores of the log's ranker, relative to their standard deviation."""


MODELS = (CTR, "COEC", "PBM", "joint", "trust")


def models_of() -> dict[str, ClickModel]:
    """Return the models that are compared, by name."""
    return dict(zip(MODELS, (ClickRate(), COEC(), PositionBased(), Joint(), TrustBias()), strict=True))


def measured(split: Split, users: Users, sessions: int, seed: int, models: Collection[str]) -> Json:
    """Return the errors of propensities, the metric of each ranker by test query, and why models failed."""
    generator, train, test = np.random.default_rng(seed), split.train, given(split, "test")
    logging = logging_scores(train, generator)
    log = simulated(train, users, sessions, generator, scores=logging(train), spread=SPREAD)
    counts = Counts.of([log])
    learnt = {FULL: train, SHOWN: judged(train, counts.document[counts.firsts], users.attraction(train.grades))}
    found: Json = {"propensities": {}, "failures": {}}
    for name, model in models_of().items():
        if name not in models:
            continue
        try:
            fitted = model.fit(counts)
        except RankTuneError as error:
            found["failures"][name] = str(error)
            continue
        learnt[name] = from_judgments(train, fitted.judgments())
        if name != CTR:
            found["propensities"][name] = errors(fitted.examination, users)
    found["propensities"]["swaps"] = errors(swaps(counts), users)
    values = {LOGGED: {name: _values(logging(test), test) for name in LEARNERS}}
    for name, queries in learnt.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rankers = {learner: make(seed).fit(queries) for learner, make in LEARNERS.items()}
        values[name] = {learner: _values(ranker.predict(test), test) for learner, ranker in rankers.items()}
    return found | {"values": values}


def logging_scores(train: Queries, generator: np.random.Generator) -> Callable[[Queries], Floats]:
    """Return the scores of a linear ranker that was fitted to a few queries, with the standard deviation 1."""
    lowest, highest = (of.reduceat(train.grades, train.starts[:-1]) for of in (np.minimum, np.maximum))
    telling = np.flatnonzero(lowest < highest)
    few = train.select(np.sort(generator.choice(telling, min(FEW, len(telling)), replace=False)))
    ranker = RankSVM().fit(few)
    deviation = float(np.std(ranker.predict(train)))
    return lambda queries: np.asarray(ranker.predict(queries) / deviation)


def judged(train: Queries, rows: Ints, grades: Floats, weights: Floats | None = None) -> Queries:
    """Return some documents with other grades, (n_documents,)."""
    rows = np.sort(rows)
    return Queries.from_arrays(
        train.features[rows],
        grades[rows],
        qid=np.repeat(np.arange(train.n_queries), train.lengths)[rows],
        document_weights=None if weights is None else weights[rows],
    )


def from_judgments(train: Queries, judgments: Judgments) -> Queries:
    """Return the documents that a model grades, with these grades and their weights."""
    rows = np.array([int(name) for name in judgments.document])
    grades, weights = np.full((2, train.n_documents), np.nan)
    grades[rows], weights[rows] = judgments.relevance, judgments.weight
    return judged(train, rows[~np.isnan(judgments.relevance)], grades, weights)


def errors(examination: Examination, users: Users) -> Json:
    """Return the largest relative error of estimable positions below the first, how many there are, and are covered."""
    up, down = users.rates(examination.position)
    truth = (up - down) / (up - down)[0]
    known = examination.estimable & (examination.position > examination.position[0])
    covered = (examination.low <= truth) & (truth <= examination.high)
    relative = np.abs(examination.value / truth - 1.0)[known]
    return {"error": float(relative.max(initial=0.0)), "known": int(known.sum()), "covered": int(covered[known].sum())}


def _values(scores: Floats, test: Queries) -> list[float | None]:
    values = parse_metric(METRIC).per_query(np.asarray(scores, dtype=np.float64), test)
    return [None if np.isnan(value) else round(float(value), 6) for value in values]
