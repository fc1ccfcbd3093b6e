"""Queries: where the chosen model ranks better or worse than others, over time too, and those that it ranks worst.

A panel's group is the other model. Each of several splits has its own chosen model; their queries are pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Curves
from ranktune.dashboards.figures.panels import Frame, Panel, counted, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.explained import contributions
from ranktune.dashboards.views.solver_trials import no_models_note
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


class _Ranked(NamedTuple):
    """A query of the evidence with its documents, and the value and the chosen model of its split."""

    value: float
    split: str
    chosen: str
    documents: QueryDocuments


def panels(data: StudyData) -> list[Panel]:
    """Return differences against other models, the distribution over queries, and the worst queries."""
    if not data.evidence:
        return [Panel("queries", f"{data.metric}, query by query", note=no_models_note(data))]
    labels = _others(data)[:MAX_OTHERS]
    compared = [_counts(data, labels)] if labels else []
    differences = [_difference(data, label, f"difference-{k}") for k, label in enumerate(labels)]
    over_time = [
        _periods(data, name, part, of_part)
        for name, evidence in data.evidence
        for part in ("validation", "test")
        if (of_part := [period for period in evidence.periods if period.part == part])
    ]
    return [*compared, *differences, *over_time, _distribution(data), *_worst(data)]


def _periods(data: StudyData, split: str, part: str, periods: Sequence[Period]) -> Panel:
    """Return the mean of the chosen model and of the baseline by period, with intervals."""
    table = Frame.of(periods, {
        "Model": "label", "From": "first", "To": "last", "Queries": "queries", data.metric: "mean.mean",
        "Low": "mean.low", "High": "mean.high",
    })  # fmt: skip
    where = f" of {figures.short(split)}" if split else ""
    note = (
        "Folds forward in time: each query is scored by a model of earlier ones. "
        if part == "validation"
        else "The test queries are later than all that the models learned from. "
    ) + "Periods have about equally many queries; intervals are 95 % bootstrap intervals over them."
    across = figures.axis("first time of the period", type="category")
    kind = Curves("From", (data.metric,), across, figures.axis(f"mean {data.metric}"), by="Model",
                 ends=("Low", "High"), markers=True)  # fmt: skip
    key = "-".join(filter(None, ("over-time", part, split)))
    return Panel(key, f"{data.metric} over time: {part} queries{where}", table, kind, note)


def _values(data: StudyData, label: str = "") -> list[Floats]:
    """Return the values by query of a model, or of the chosen one, an array a split."""
    return [scores.values[data.metric][scores.labels.index(label) if label else 0] for _, scores in data.evidence]


def _gaps(data: StudyData, label: str) -> Floats:
    """Return the value of the chosen model less that of another on each query of all splits."""
    return np.concatenate(_values(data)) - np.concatenate(_values(data, label))


def _chosen(data: StudyData) -> str:
    """Return the name of the chosen model."""
    names = {scores.labels[0] for _, scores in data.evidence}
    return figures.short(*names) if len(names) == 1 else "the chosen model of each split"


def _others(data: StudyData) -> list[str]:
    """Return the models that every split has: the baseline, then as the leaderboard has them."""
    chosen = {scores.labels[0] for _, scores in data.evidence}
    labels = [label for label in data.common_labels if chosen != {label}]
    rows = [] if data.result is None else [row.solver for row in data.result.leaderboard]
    return sorted(labels, key=lambda label: (label != BASELINE, rows.index(label) if label in rows else len(rows)))


def _counts(data: StudyData, labels: Sequence[str]) -> Panel:
    """Return wins, ties and losses of the chosen model against each other."""
    chosen, part, rows = _chosen(data), data.part, []
    board = {} if data.result is None else {row.solver: row for row in data.result.leaderboard}
    for k, label in enumerate(labels):
        gaps = _gaps(data, label)
        compared = _compared(data, label, board.get(label), np.random.default_rng([data.study.seed, k]))
        rows.append([label, *(int(each.sum()) for each in (gaps > 0, gaps == 0, gaps < 0)), *compared])
    columns = ("Against", "Wins", "Ties", "Losses", "Difference", "Low", "High", "p")
    kind = Bars("Against", columns[1:4], f"{part} queries", "against",
                colours=(figures.COLOURS[0], "#9a9a9a", figures.ACCENT))  # fmt: skip
    note = joined(
        f"{counted(len(gaps), f'{part} query')}. The difference is {chosen} minus the other, with a 95 % bootstrap "
        "interval and the p of a randomisation test, not corrected for multiple comparisons.",
        data.weights_note,
    )
    title = f"Queries that {chosen} ranks better, equally well or worse ({data.metric})"
    other, wins, ties, losses = rows[0][:4]
    answer = f"Against {figures.short(other)}, {chosen} is better on {wins}, worse on {losses} and equal on {ties}"
    return Panel("wins", title, Frame(columns, rows), kind, note, "", f"{answer} {part} queries.")


def _compared(
    data: StudyData, label: str, row: LeaderboardRow | None, generator: np.random.Generator
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the difference, its interval and p, from the leaderboard where it has them."""
    if row is not None and row.difference is not None and row.p_value is not None:
        return -row.difference.mean, -row.difference.high, -row.difference.low, row.p_value
    weights = [scores.weights for _, scores in data.evidence]
    paired = compare_splits(_values(data), _values(data, label), generator, weights=weights)
    return paired.difference, paired.low, paired.high, paired.p_randomisation


def _difference(data: StudyData, label: str, key: str) -> Panel:
    """Return the difference on each query, the best for the chosen model first."""
    gaps, metric, part = _gaps(data, label), data.metric, data.part
    a, b = (np.concatenate(_values(data, each)) for each in ("", label))
    queries = [(query, name) for name, scores in data.evidence for query in scores.queries]
    order = [q for q in np.argsort(-gaps, kind="stable").tolist() if not np.isnan(gaps[q])]
    places, shown = figures.some_of(list(enumerate(order, 1)), gaps[order].tolist())
    rows = [[*queries[q], a[q], b[q], gaps[q], k] for k, q in places]
    ties, skipped = int((gaps == 0).sum()), len(gaps) - len(order)
    note = joined(
        f"{counted(ties, 'query')} {'is' if ties == 1 else 'are'} tied, without a bar." * bool(ties),
        f"The metric is not defined for {counted(skipped, 'query')}." * bool(skipped),
        shown,
    )
    columns = ("Query", "Split", f"{metric} of the chosen", f"{metric} of the other", "Difference", "Place")
    unit = f"difference in {metric}, above 0: the chosen is better"
    kind = Bars("Place", ("Difference",), unit, f"{part} queries, sorted", upright=True, hover="Query")
    title = f"{metric} of {_chosen(data)} minus that of {figures.short(label)}, query by query"
    return Panel(key, title, Frame(columns, rows), kind, note, label)


def _distribution(data: StudyData) -> Panel:
    """Return the distribution of the metric over the queries."""
    names = {_chosen(data): ""} | {label: label for label in _others(data)[:1]}
    values = [np.concatenate(_values(data, label)) for label in names.values()]
    everything = np.concatenate(values)
    title = f"Distribution of {data.metric} over the queries"
    if np.isnan(everything).all():
        return Panel("distribution", title, note="The metric is defined for no query.")
    edges = np.linspace(min(0.0, float(np.nanmin(everything))), max(1.0, float(np.nanmax(everything))), 21)
    counts = [np.histogram(scores[~np.isnan(scores)], edges)[0] for scores in values]
    rows = list(zip(edges[:-1], edges[1:], *counts, strict=True))
    unit, what = f"{data.part} queries", f"{data.metric} of a query"
    kind = Bars(("From", "To"), tuple(names), unit, what, mode="group", upright=True)
    note = "Each group of bars covers one twentieth of the range."
    return Panel("distribution", title, Frame(("From", "To", *names), rows), kind, note)


def example(data: StudyData) -> list[Panel]:
    """Return a query as it was ranked before and as it is: the one that gains most over the first other model."""
    kept, others = _closely(data), _others(data)
    if not kept or not others:
        return []
    queries = [(query, name) for name, scores in data.evidence for query in scores.queries]
    gains = dict(zip(queries, np.nan_to_num(_gaps(data, others[0]), nan=-np.inf).tolist(), strict=True))
    panel = _documents(data, 0, max(kept, key=lambda each: gains.get((each.documents.query, each.split), -np.inf)))
    names = [name for name in panel.table.columns if not name.startswith("Score by")][:5]
    rows = list(zip(*map(panel.table.__getitem__, names), strict=True))[:MAX_EXAMPLE]
    note = f"The ranks of the first documents by the chosen model and by {figures.short(others[0])}."
    title = f"An example: {panel.title[0].lower()}{panel.title[1:]}"
    return [Panel("example", title, Frame(tuple(names), rows), None, note)]


def _closely(data: StudyData) -> list[_Ranked]:
    """Return the queries whose documents are in the evidence, the worst first."""
    kept = []
    for name, evidence in data.evidence:
        scores = dict(zip(evidence.queries, evidence.values[data.metric][0].tolist(), strict=True))
        ranked = (_Ranked(scores.get(each.query, np.nan), name, evidence.labels[0], each) for each in evidence.closely)
        kept += [each for each in ranked if not np.isnan(each.value)]
    return sorted(kept, key=lambda each: each.value)


def _worst(data: StudyData) -> list[Panel]:
    """Return the worst-ranked queries of those whose documents are in the evidence."""
    shown = [
        panel
        for k, ranked in enumerate(_closely(data)[:MAX_WORST])
        for panel in (_documents(data, k, ranked), *_why(data, k, ranked))
    ]
    return shown or [Panel("worst", "Worst-ranked queries", note="The evidence has the documents of no query.")]


def _why(data: StudyData, k: int, ranked: _Ranked) -> list[Panel]:
    """Return what the features contribute to the scores of the query's first documents, where it was computed."""
    title = f"Why this order: query {figures.short(ranked.documents.query)} by {figures.short(ranked.chosen)}"
    return [
        contributions(query, f"why-{k}", title)
        for split in data.splits
        if split.name == ranked.split and split.explanations and split.explanations.label == ranked.chosen
        for query in split.explanations.closely
        if query.query == ranked.documents.query
    ][:1]


def _documents(data: StudyData, k: int, ranked: _Ranked) -> Panel:
    """Return a query's documents as the chosen model ranks them."""
    value, split, chosen, query = ranked
    labels = [label for label in dict.fromkeys((chosen, *_others(data))) if label in query.scores][:4]
    ranks = {label: _ranks(query.scores[label]) for label in labels}
    rank = ranks.get(chosen, np.arange(1, len(query.documents) + 1))
    best = max(query.grades, default=0.0)
    order = np.argsort(rank, kind="stable").tolist()
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
    title = f"Query {figures.short(query.query)}{where}: {data.metric} {value:.3f} by {figures.short(chosen)}"
    left_out = len(query.documents) - len(rows)
    note = joined(
        f"Number {k + 1} from the bottom of the queries whose documents are in the evidence.",
        f"The first {MAX_DOCUMENTS} and those of the best grade are shown, {left_out} others are not." * bool(left_out),
    )
    return Panel(f"worst-{k}", title, Frame(("Rank", "Document", "Grade", *names), rows), None, note)


def _ranks(scores: Sequence[float]) -> Ints:
    """Return the place of each score, 1 for the highest; of equal ones the first comes first."""
    places = np.empty(len(scores), dtype=np.int64)
    places[np.argsort(-np.array(scores), kind="stable")] = np.arange(1, len(scores) + 1)
    return places
