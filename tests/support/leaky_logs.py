"""Click logs of simulated users with further columns: some known before each search, others leaks."""

from dataclasses import replace

import numpy as np

from ranktune.solvers.clicks.counts import Impressions
from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.data.queries import Queries
from tests.support.click_simulation import Users, simulated

DAY = 86_400_000
HONEST = ("price", "text", "taste", "pair_before", "document_yesterday")
LEAKS = {
    "place": "position", "score": "position", "document_rate": "future", "pair_rate": "future", "sold": "future",
    "later_rate": "future", "day_rate": "future", "running_rate": "outcome", "dwell": "outcome",
}  # fmt: skip


def leaky_log(seed: int, users: Users, *, sessions: int = 5000, n_documents: int = 250) -> Impressions:
    """Return ten days of a log in the order of time, 40 queries that share documents, with columns by HONEST, LEAKS."""
    generator = np.random.default_rng(seed)
    n = 40 * 20
    text = generator.normal(size=n)
    grades = np.clip(np.round(text + 0.7 * generator.normal(size=n)), 0, 3)
    queries = Queries.from_arrays(text[:, None], grades, group=[20] * 40)
    scores = text + 0.5 * generator.normal(size=n)
    log = simulated(queries, users, sessions, generator, scores=scores, spread=0.7)
    assert log.time is not None
    order = np.lexsort((log.position, log.time))
    log = replace(log, **{name: getattr(log, name)[order] for name in ("query", "position", "click", "session")})
    row, time = log.document[order], log.session * (10 * DAY // sessions)
    document = generator.integers(0, n_documents, n)[row]
    pair, day = log.query * n_documents + document, time // DAY
    of_day, later = rate(document * 100 + day, log.click), time >= np.median(time)
    yesterday = dict(zip((document * 100 + day + 1).tolist(), of_day.tolist(), strict=True))
    columns = {
        "price": generator.lognormal(size=n_documents)[document],
        "text": text[row],
        "taste": np.round(text[row] + generator.normal(size=len(row)), 1),
        "pair_before": running(pair, log.click, own=False),
        "document_yesterday": [yesterday.get(code, np.nan) for code in (document * 100 + day).tolist()],
        "place": log.position - 1,
        "score": -log.position + 0.9 * generator.random(len(row)),
        "document_rate": rate(document, log.click),
        "pair_rate": rate(pair, log.click),
        "sold": np.bincount(document, log.click)[document],
        "later_rate": rate(document, np.where(later, log.click, np.nan)),
        "day_rate": of_day,
        "running_rate": running(document, log.click, own=True),
        "dwell": log.click * generator.random(len(row)),
    }
    further = np.column_stack([np.asarray(column, dtype=float) for column in columns.values()])
    names = [str(number) for number in range(n_documents)]
    return replace(log, document=document, documents=names, time=time, further=further, further_names=tuple(columns))


def rate(group: Ints, click: Floats) -> Array:
    """The mean of clicks by group, for each row."""
    code, given = np.unique(group, return_inverse=True)[1], ~np.isnan(click)
    return (
        np.bincount(code[given], click[given], code.max() + 1)
        / np.maximum(np.bincount(code[given], minlength=code.max() + 1), 1)
    )[code]


def running(group: Ints, click: Floats, *, own: bool) -> list[float]:
    """The rate of clicks in a group up to each row, with or without its own click."""
    totals: dict[int, tuple[float, float]] = {}
    result = []
    for key, clicked in zip(group.tolist(), click.tolist(), strict=True):
        n, clicks = totals.get(key, (1.0, 0.1))
        totals[key] = n + 1.0, clicks + clicked
        result.append(totals[key][1] / totals[key][0] if own else clicks / n)
    return result
