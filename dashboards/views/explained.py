"""Panels of a study's explanations: importance and effects of features, and contributions within queries.

They are those of the chosen model of each split. The views of weights and of queries show them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Curves
from ranktune.dashboards.figures.panels import Frame, Panel, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.selection.evidence import ExplainedQuery, Explanations

MAX_BARS, MAX_DRIVERS = 20, 8
"""Features of a figure; the table has more."""
COMMAND = "`ranktune explain MODEL DATA`"


def importance(data: StudyData) -> list[Panel]:
    """Return the importance of the features of the chosen models, and their effects; nothing for an older study."""
    known = [split.explanations for split in data.splits if split.explanations is not None]
    if not known:
        return []
    # The last split of a nested plan has no test queries.
    known = [split for split in known if split.part == "test"] or known
    return [_importance(data, known), *_effects(known)]


def drivers(data: StudyData) -> list[Panel]:
    """Return what drives the ranking: the most important features, and whether a higher value ranks higher."""
    panel = next(iter(importance(data)), None)
    if panel is None or panel.kind is None:
        return []
    effects = [effect for split in data.splits if split.explanations for effect in split.explanations.effects]
    slopes = {effect.feature: np.polyfit(effect.shares, effect.effects, 1)[0] for effect in reversed(effects)}
    rows = [
        (*row, {1.0: "higher", -1.0: "lower"}.get(np.sign(slopes.get(row[0], 0.0)), ""))
        for row in panel.table.rows[:MAX_DRIVERS]
    ]
    by_word = {word: [figures.short(row[0]) for row in rows if row[-1] == word] for word in ("higher", "lower")}
    note = " ".join(f"A higher value ranks {word}: {', '.join(names)}." for word, names in by_word.items() if names)
    frame = Frame((*panel.table.columns, "A higher value ranks"), rows)
    return [Panel("drivers", "What drives the ranking", frame, panel.kind, note, shown=True)]


def _importance(data: StudyData, known: Sequence[Explanations]) -> Panel:
    """Return the mean importance over splits; their test queries differ, so that their noise averages out."""
    measured = [split for split in known if split.importance]
    title = f"Importance of the features: what {data.metric} loses without each"
    columns = ("Feature", f"Loss of {data.metric}", "Low", "High")
    if not measured:
        note = f"The model uses no feature, or it was not measured at the end of the study: {COMMAND} does."
        return Panel("importance", title, note=note)
    totals: dict[str, Floats] = defaultdict(lambda: np.zeros(3))
    for item in (item for split in measured for item in split.importance):
        loss = item.loss
        totals[item.feature] += (loss.mean, (loss.mean - loss.low) ** 2, (loss.high - loss.mean) ** 2)
    count = len(measured)  # a model that does not use a feature loses nothing without it
    mean, *squares = np.array(list(totals.values())).T / count
    below, above = (np.sqrt(square / count) for square in squares)
    names, order = list(totals), np.argsort(-np.nan_to_num(mean), kind="stable")
    table = Frame(columns, [(names[j], mean[j], mean[j] - below[j], mean[j] + above[j]) for j in order])
    unit = f"loss of {data.metric} without the feature"
    kind = Bars("Feature", columns[1:2], unit, "feature", ("Low", "High"), MAX_BARS)
    feature, *numbers = table.rows[0]
    loses = "{:.4f} [{:.4f}, {:.4f}]".format(*(value or 0.0 for value in numbers))
    answer = f"{figures.short(feature)} matters most: without it {data.metric} loses {loses}."
    first, queries, total = measured[0], sum(each.queries for each in measured), sum(each.total for each in measured)
    labels = ", ".join(dict.fromkeys(figures.short(split.label) for split in measured))
    of_all = f"{queries} of {total}" if queries < total else f"all {total}"
    note = joined(
        f"The values of a feature are shuffled among the documents of each query, and {labels} ranks again.",
        f"Measured on {of_all} {first.part} queries, with 95 % bootstrap intervals.",
        "A feature whose interval reaches 0 may be useless, or others may stand in for it.",
        "The model was trained on these queries: what it has memorised counts too." * (first.part == "training"),
        f"{COMMAND} measures it on {'other data' if queries >= total else 'more queries'}.",
    )
    return Panel("importance", title, table, kind, note, "", answer)


def _effects(known: Sequence[Explanations]) -> list[Panel]:
    """Return the effects of the most important features in the first split that has them."""
    effects = next((split.effects for split in known if split.effects), ())
    if not effects:
        return []
    rows = [
        (effect.feature, *point)
        for effect in effects
        for point in zip(effect.values, effect.shares, effect.effects, strict=True)
    ]
    share, effect = "Share of documents up to it", "Effect on the score"
    across = figures.axis("share of the documents up to the value", range=[0, 1.02])
    kind = Curves(share, (effect,), across, figures.axis("effect on the score"), by="Feature", markers=True,
                 hover="Value")  # fmt: skip
    note = (
        "The mean score of documents that are given the value, beside the mean of their query. A flat line: the value "
        "does not matter; a rising one: a higher value ranks higher."
    )
    title = "How the score changes with the value of a feature"
    return [Panel("effects", title, Frame(("Feature", "Value", share, effect), rows), kind, note)]


def contributions(query: ExplainedQuery, key: str, title: str) -> Panel:
    """Return what each feature contributes to the scores of the first documents of a query."""
    parts: Floats = np.array(query.contributions)
    columns = (*query.features, "all others")
    documents = zip(query.ranks, query.documents, query.scores, parts, strict=True)
    rows = [[rank, name, score, *row] for rank, name, score, row in documents]
    note = (
        f"The first documents, and the first of the best grade. Bars add up to the score less {query.mean:.4g}, the "
        f"mean of {query.background} documents of the query: those to the right move a document up, those to the "
        "left down."
    )
    kind = Bars(("Rank", "Document"), columns, "contribution to the score", "document", mode="relative")
    drawn = kind if np.any(parts) else None
    return Panel(key, title, Frame(("Rank", "Document", "Score", *columns), rows), drawn, note)
