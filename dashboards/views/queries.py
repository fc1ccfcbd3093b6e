"""Queries: where the chosen model ranks better or worse than others, over time too, and those that it ranks worst.

A panel's group is the other model. Each of several splits has its own chosen model; their queries are pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.analysis.pooling import no_models_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Lines
from ranktune.dashboards.figures.panels import Frame, Panel, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.explained import contributions
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.selection.evidence import QueryDocuments
from ranktune.tuner.selection.rows import BASELINE, LeaderboardRow
from ranktune.tuner.statistics.comparisons import compare_splits
from ranktune.tuner.statistics.periods import Period

MAX_OTHERS = 6
"""Models that the chosen one is compared with."""
MAX_WORST = 5
"""Queries whose documents are shown."""
MAX_EXAMPLE, MAX_DOCUMENTS = 8, 20
"""Documents of a query that are shown: those that the chosen model ranks first; others of the best grade are added."""


@dataclass(frozen=True, eq=False)
class _Splits:
    """The evidence of all finished splits: queries, each with its split, and values by model and split."""

    metric: str
    part: str
    queries: tuple[tuple[str, str], ...]
    label: str
    chosen: tuple[Floats, ...]
    others: dict[str, tuple[Floats, ...]]
    weights: tuple[Floats | None, ...]


def panels(data: StudyData) -> list[Panel]:
    """Return differences against other models, the distribution over queries, and the worst queries."""
    splits = _splits(data)
    if splits is None:
        title = f"{data.metric}, query by query"
        return [Panel("queries", title, note=no_models_note(data))]
    labels = list(splits.others)[:MAX_OTHERS]
    compared = [_counts(data, splits, labels)] if labels else []
    differences = [_difference(splits, label, f"difference-{k}") for k, label in enumerate(labels)]
    return [*compared, *differences, *_over_time(data), _distribution(splits), *_worst(data, splits)]


def _over_time(data: StudyData) -> list[Panel]:
    """Return the metric by period of each split and part, where times are known."""
    return [
        _periods(data, name, part, of_part)
        for name, evidence in data.evidence
        for part in ("validation", "test")
        if (of_part := [period for period in evidence.periods if period.part == part])
    ]


def _periods(data: StudyData, split: str, part: str, periods: Sequence[Period]) -> Panel:
    """Return the mean of the chosen model and of the baseline by period, with intervals."""
    rows = [[p.label, p.first, p.last, p.queries, p.mean.mean, p.mean.low, p.mean.high] for p in periods]
    where = f" of {figures.short(split)}" if split else ""
    note = (
        "Folds forward in time: each query is scored by a model of earlier ones. "
        if part == "validation"
        else "The test queries are later than all that the models learned from. "
    ) + "Periods have about equally many queries; intervals are 95 % bootstrap intervals over them."
    across = figures.axis("first time of the period", type="category")
    kind = Lines("From", (data.metric,), across, figures.axis(f"mean {data.metric}"), by="Model",
                 ends=("Low", "High"), markers=True)  # fmt: skip
    columns = ("Model", "From", "To", "Queries", data.metric, "Low", "High")
    key = "-".join(filter(None, ("over-time", part, split)))
    title = f"{data.metric} over time: {part} queries{where}"
    return Panel(key, title, Frame(columns, rows), kind, note)


def _splits(data: StudyData) -> _Splits | None:
    """Return the values by query; the others are of every split: the baseline, then as the leaderboard has them."""
    known, everywhere = data.evidence, data.common_labels
    if not known:
        return None
    chosen = tuple(evidence.labels[0] for _, evidence in known)
    if len(set(chosen)) == 1:
        everywhere = [label for label in everywhere if label != chosen[0]]
    rows = [] if data.result is None else [row.solver for row in data.result.leaderboard]
    everywhere.sort(key=lambda label: (label != BASELINE, rows.index(label) if label in rows else len(rows)))
    return _Splits(
        metric=data.metric,
        part="test" if known[0][1].part == "test" else "validation",
        queries=tuple((query, name) for name, evidence in known for query in evidence.queries),
        label=figures.short(chosen[0]) if len(set(chosen)) == 1 else "the chosen model of each split",
        chosen=tuple(evidence.values[data.metric][0] for _, evidence in known),
        others={
            label: tuple(evidence.values[data.metric][evidence.labels.index(label)] for _, evidence in known)
            for label in everywhere
        },
        weights=tuple(evidence.weights for _, evidence in known),
    )


def _counts(data: StudyData, splits: _Splits, labels: Sequence[str]) -> Panel:
    """Return wins, ties and losses of the chosen model against each other."""
    rows = []
    board = {} if data.result is None else {row.solver: row for row in data.result.leaderboard}
    for k, label in enumerate(labels):
        compared = _compared(splits, label, board.get(label), np.random.default_rng([data.study.seed, k]))
        gap = np.concatenate(splits.chosen) - np.concatenate(splits.others[label])
        rows.append([label, int((gap > 0).sum()), int((gap == 0).sum()), int((gap < 0).sum()), *compared])
    columns = ("Against", "Wins", "Ties", "Losses", "Difference", "Low", "High", "p")
    colours = (figures.COLOURS[0], "#9a9a9a", figures.ACCENT)
    kind = Bars("Against", columns[1:4], f"{splits.part} queries", "against", colours=colours)
    note = joined(
        f"{len(splits.queries)} {splits.part} queries. The difference is {splits.label} minus the other, with "
        "a 95 % bootstrap interval and the p of a randomisation test, not corrected for multiple comparisons.",
        data.weights_note,
    )
    title = f"Queries that {splits.label} ranks better, equally well or worse ({splits.metric})"
    other, wins, ties, losses, *_ = rows[0]
    answer = (
        f"Against {figures.short(other)}, {splits.label} is better on {wins}, worse on {losses} and equal on {ties} "
        f"{splits.part} queries."
    )
    return Panel("wins", title, Frame(columns, rows), kind, note, "", answer)


def _compared(
    splits: _Splits, label: str, row: LeaderboardRow | None, generator: np.random.Generator
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the difference, its interval and p, from the leaderboard where it has them."""
    if row is not None and row.difference is not None and row.p_value is not None:
        return -row.difference.mean, -row.difference.high, -row.difference.low, row.p_value
    paired = compare_splits(list(splits.chosen), list(splits.others[label]), generator, weights=splits.weights)
    return paired.difference, paired.low, paired.high, paired.p_randomisation


def _difference(splits: _Splits, label: str, key: str) -> Panel:
    """Return the difference on each query, the best for the chosen model first."""
    a, b = np.concatenate(splits.chosen), np.concatenate(splits.others[label])
    counted = np.flatnonzero(~np.isnan(a - b))
    order = counted[np.argsort(-(a - b)[counted], kind="stable")]
    place = figures.thinned((a - b)[order])
    rows = [[*splits.queries[q], a[q], b[q], a[q] - b[q], k + 1] for k, q in zip(place, order[place], strict=True)]
    columns = ("Query", "Split", f"{splits.metric} of the chosen", f"{splits.metric} of the other", "Difference",
               "Place")  # fmt: skip
    title = f"{splits.metric} of {splits.label} minus that of {figures.short(label)}, query by query"
    unit = f"difference in {splits.metric}, above 0: the chosen is better"
    kind = Bars("Place", ("Difference",), unit, f"{splits.part} queries, sorted", upright=True, hover="Query")
    ties, skipped = int(((a - b)[order] == 0).sum()), len(a) - len(counted)
    note = joined(
        "" if len(order) else "The metric is defined for no query.",
        f"{ties} queries are tied and have no bar." if ties else "",
        f"The metric is not defined for {skipped} queries." if skipped and len(order) else "",
        f"{len(rows)} of {len(order)} queries are shown." if len(rows) < len(order) else "",
    )
    return Panel(key, title, Frame(columns, rows), kind, note, label)


def _distribution(splits: _Splits) -> Panel:
    """Return the distribution of the metric over the queries."""
    models = {splits.label: splits.chosen} | dict(list(splits.others.items())[:1])
    values = {name: np.concatenate(parts) for name, parts in models.items()}
    values = {name: scores[~np.isnan(scores)] for name, scores in values.items()}
    everything = np.concatenate(list(values.values()))
    title = f"Distribution of {splits.metric} over the queries"
    if not len(everything):
        return Panel("distribution", title, note="The metric is defined for no query.")
    edges = np.linspace(min(0.0, float(everything.min())), max(1.0, float(everything.max())), 21)
    counts = [np.histogram(scores, edges)[0] for scores in values.values()]
    rows = [[*edges[k : k + 2], *(int(each[k]) for each in counts)] for k in range(20)]
    unit, what = f"{splits.part} queries", f"{splits.metric} of a query"
    kind = Bars(("From", "To"), tuple(values), unit, what, mode="group", upright=True)
    note = "Each group of bars covers one twentieth of the range."
    return Panel("distribution", title, Frame(("From", "To", *values), rows), kind, note)


def example(data: StudyData) -> list[Panel]:
    """Return a query as it was ranked before and as it is: the one that gains most over the first other model."""
    splits = _splits(data)
    kept = [] if splits is None or not splits.others else _closely(data)
    if splits is None or not kept:
        return []
    before = next(iter(splits.others))
    places = {query: k for k, query in enumerate(splits.queries)}
    other = np.concatenate(splits.others[before])

    def gain(row: tuple[float, str, str, QueryDocuments]) -> float:
        at = places.get((row[3].query, row[1]))
        return -np.inf if at is None or np.isnan(other[at]) else row[0] - float(other[at])

    panel = _documents(splits, 0, *max(kept, key=gain))
    columns = [k for k, name in enumerate(panel.table.columns) if not name.startswith("Score by")][:5]
    rows = [[row[k] for k in columns] for row in panel.table.rows[:MAX_EXAMPLE]]
    note = f"The ranks of the first documents by the chosen model and by {figures.short(before)}."
    title = f"An example: {panel.title[0].lower()}{panel.title[1:]}"
    return [Panel("example", title, Frame(tuple(panel.table.columns[k] for k in columns), rows), None, note)]


def _closely(data: StudyData) -> list[tuple[float, str, str, QueryDocuments]]:
    """Return value, split, chosen model and documents of queries in the evidence, the worst first."""
    kept: list[tuple[float, str, str, QueryDocuments]] = []
    for name, evidence in data.evidence:
        scores = dict(zip(evidence.queries, evidence.values[data.metric][0].tolist(), strict=True))
        kept += [
            (scores[query.query], name, evidence.labels[0], query)
            for query in evidence.closely
            if query.query in scores and not np.isnan(scores[query.query])
        ]
    return sorted(kept, key=lambda row: row[0])


def _worst(data: StudyData, splits: _Splits) -> list[Panel]:
    """Return the worst-ranked queries of those whose documents are in the evidence."""
    kept = _closely(data)
    if not kept:
        title = "Worst-ranked queries"
        return [Panel("worst", title, note="The evidence has the documents of no query.")]
    return [
        panel for k, row in enumerate(kept[:MAX_WORST]) for panel in (_documents(splits, k, *row), *_why(data, k, *row))
    ]


def _why(data: StudyData, k: int, value: float, split: str, chosen: str, query: QueryDocuments) -> list[Panel]:
    """Return what the features contribute to the scores of the query's first documents, where it was computed."""
    explained = next((each.explanations for each in data.splits if each.name == split), None)
    known = () if explained is None or explained.label != chosen else explained.closely
    title = f"Why this order: query {figures.short(query.query)} by {figures.short(chosen)}"
    return [
        contributions(explanations, f"why-{k}", title) for explanations in known if explanations.query == query.query
    ][:1]


def _documents(splits: _Splits, k: int, value: float, split: str, chosen: str, query: QueryDocuments) -> Panel:
    """Return a query's documents as the chosen model ranks them."""
    labels = [label for label in dict.fromkeys((chosen, *splits.others)) if label in query.scores][:4]
    ranks = {label: _ranks(np.array(query.scores[label])) for label in labels}
    rank = ranks.get(chosen, np.arange(1, len(query.documents) + 1))
    best = max(query.grades, default=0.0)
    order = [int(i) for i in np.argsort(rank, kind="stable")]
    shown = [i for i in order if rank[i] <= MAX_DOCUMENTS or (query.grades[i] == best and best > 0)]
    rows = [
        [
            int(rank[i]), query.documents[i], query.grades[i],
            *(cell for label in labels for cell in (query.scores[label][i], int(ranks[label][i]))),
        ]
        for i in shown[: 2 * MAX_DOCUMENTS]
    ]  # fmt: skip
    names = [name for label in labels for name in (f"Score by {label}", f"Rank by {label}")]
    where = f" of {figures.short(split)}" if split else ""
    title = f"Query {figures.short(query.query)}{where}: {splits.metric} {value:.3f} by {figures.short(chosen)}"
    left_out = len(query.documents) - len(rows)
    note = joined(
        f"Number {k + 1} from the bottom of the queries whose documents are in the evidence.",
        f"The first {MAX_DOCUMENTS} and those of the best grade are shown, {left_out} others are not."
        if left_out
        else "",
    )
    return Panel(f"worst-{k}", title, Frame(("Rank", "Document", "Grade", *names), rows), None, note)


def _ranks(scores: Floats) -> Ints:
    """Return the place of each score, 1 for the highest; of equal ones the first comes first."""
    places = np.empty(len(scores), dtype=np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places
