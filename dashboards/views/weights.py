"""Weights: what the models look at, whether splits agree on it, and how an L1 penalty thins them out.

A panel's group is the row of the leaderboard, or the solver of the trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.pooling import MOVED, Pooled, competing, pooled, unfinished_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import COLOURS, Cell, Panel, Table, look
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel

TOP = 40
"""Features that a figure shows; the table has more."""
IN_TABLE = 2_000
L1 = "l1"
"""The parameter that is an L1 strength, in every solver that has one."""


@dataclass(frozen=True, eq=False)
class _Row:
    """The models of one row of the leaderboard, by split; all of one kind and of the same features.

    part: which part of a blend they are, "" for models that are whole
    """

    label: str
    part: str
    splits: tuple[str, ...]
    models: tuple[Model, ...]

    @property
    def title(self) -> str:
        name = figures.short(self.label)
        return f"{name} ({self.part})" if self.part else name

    @property
    def numbers(self) -> Floats:
        """Weights, or numbers of splits for trees, (n_models, n_features)."""
        return np.stack([_of_model(model) for model in self.models])

    @property
    def names(self) -> list[str]:
        own = self.models[0].feature_names
        return [f"feature {j + 1}" for j in range(self.models[0].n_features)] if own is None else list(own)

    @property
    def is_trees(self) -> bool:
        return isinstance(self.models[0], TreeModel)


def panels(data: StudyData) -> list[Panel]:
    """Return the weights of every row of the leaderboard whose model was kept, and the paths of L1 fits."""
    rows = _rows(data)
    found: list[Panel] = []
    for k, row in enumerate(rows):
        found.append(_weights(row, k))
        if len(row.models) > 1:
            found.append(_agreement(row, k))
    if not rows:
        title = "Weights of the chosen model"
        note = unfinished_note(data) if not _has_evidence(data) else "No linear model and no trees were kept."
        found.append(Panel("weights", title, Table(("Feature", "Weight"), []), None, note))
    return found + _paths(data)


def _has_evidence(data: StudyData) -> bool:
    return any(split.evidence is not None for split in data.splits)


def _rows(data: StudyData) -> list[_Row]:
    """Return the rows with a model, in the order of the first split's evidence: the chosen first."""
    labels = list(dict.fromkeys(label for s in data.splits if s.evidence is not None for label in s.evidence.labels))
    found = []
    for label in labels:
        kept = [(split.name, split.model(label)) for split in data.splits]
        parts = [(name, *part) for name, model in kept if model is not None for part in _parts(model)]
        for kind in dict.fromkeys(kind for _, kind, _ in parts):
            own = [(name, model) for name, of, model in parts if of == kind]
            own = [(name, model) for name, model in own if model.n_features == own[0][1].n_features]
            whole = all(not isinstance(model, BlendModel) for _, model in kept)
            part = "" if whole else kind
            found.append(_Row(label, part, tuple(name for name, _ in own), tuple(model for _, model in own)))
    return found


def _parts(model: Model) -> list[tuple[str, Model]]:
    """Return what a model adds up, by kind; none of a kind without weights or trees."""
    if isinstance(model, BlendModel):
        return [found for part in model.parts for found in _parts(part)]
    if isinstance(model, LinearModel):
        return [("linear, features scaled by query" if model.list_scaling else "linear", model)]
    return [("trees", model)] if isinstance(model, TreeModel) else []


def _of_model(model: Model) -> Floats:
    if isinstance(model, LinearModel):
        return model.weights
    if isinstance(model, TreeModel):
        return np.bincount(model.trees.feature, minlength=model.n_features).astype(np.float64)
    raise TypeError(f"a model of type {type(model).__name__} has no weights.")


def _weights(row: _Row, k: int) -> Panel:
    """Return the weights of a row's models: their mean over splits, with what they vary by."""
    numbers, what = row.numbers, "splits" if row.is_trees else "weight"
    mean, several = numbers.mean(axis=0), len(row.models) > 1
    order = np.argsort(-np.abs(numbers).mean(axis=0), kind="stable")
    order = order[np.any(numbers[:, order] != 0, axis=0)]
    deviation = numbers.std(axis=0, ddof=1) if several else np.zeros(len(mean))
    agree = np.abs(np.sign(numbers).sum(axis=0)) / len(numbers)
    sure = ("Standard deviation", "Sign agreement") if several else ()
    columns = ("Feature", f"Mean {what}" if several else what.capitalize(), *sure)
    table: list[list[Cell]] = [
        [row.names[j], figures.number(mean[j]), *figures.numbers((deviation[j], agree[j]) if several else ())]
        for j in order[:IN_TABLE]
    ]
    of = f"How often the trees of {row.title} split on each feature"
    title = of if row.is_trees else f"Weights of {row.title} by feature"
    note = _weights_note(row, len(order))
    if not len(order):
        return Panel(f"weights-{k}", title, Table(columns, table), None, note, row.label)
    top = order[:TOP]
    labels = figures.distinct((row.names[j] for j in top), 36)
    colours = [COLOURS[0] if mean[j] >= 0 else COLOURS[5] for j in top]
    trace = figures.bars(row.label, labels, mean[top], lying=True, marker={"color": colours})
    if several:
        trace["error_x"] = {"type": "data", "array": figures.numbers(deviation[top]), "thickness": 1.5, "width": 2}
    unit = "number of splits" if row.is_trees else "weight, in score per unit"
    shown = figures.figure(
        [trace],
        figures.axis(unit),
        figures.axis("feature", categories=labels, autorange="reversed", tickfont={"size": 11}),
        height=max(240, 120 + 18 * len(top)),
    )
    return Panel(f"weights-{k}", title, Table(columns, table), shown, note, row.label)


def _weights_note(row: _Row, nonzero: int) -> str:
    parts = ["One part of a blend, whose scores are added to the others'."] if row.part else []
    parts += [f"{nonzero} of {row.models[0].n_features} features matter."]
    if nonzero > TOP:
        parts.append(f"The figure shows the {TOP} largest.")
    if len(row.models) > 1:
        parts.append(
            f"Means over {len(row.models)} splits; bars and the table's deviation say how much they differ, agreement "
            "is 1 where the sign is the same in all of them."
        )
    if any(isinstance(model, LinearModel) and model.list_scaling for model in row.models):
        parts.append("Features are first divided by their range in the query, so that weights can be compared.")
    elif not row.is_trees:
        parts.append("Weights are per unit of the feature: those of features with different ranges do not compare.")
    return " ".join(parts)


def _agreement(row: _Row, k: int) -> Panel:
    """Return how alike the weights of the splits are."""
    numbers, splits = row.numbers, list(row.splits)
    norms = np.linalg.norm(numbers, axis=1)
    lengths = np.where(norms > 0, norms, np.nan)
    alike = (numbers @ numbers.T) / np.outer(lengths, lengths)
    shared = (numbers != 0).astype(np.float64)
    both, either = shared @ shared.T, shared.sum(axis=1)
    union = either[:, None] + either[None, :] - both
    rows: list[list[Cell]] = [
        [splits[a], splits[b], figures.number(alike[a, b]), int(both[a, b]), int(union[a, b])]
        for a in range(len(splits))
        for b in range(a + 1, len(splits))
    ]
    names = figures.distinct(splits, figures.WRAPPED)
    cells = figures.heat_map(names, names, alike, "cosine", zero_in_middle=True) | {"zmin": -1.0, "zmax": 1.0}
    cells |= {
        "text": [[f"{value:.2f}" if np.isfinite(value) else "" for value in line] for line in alike],
        "texttemplate": "%{text}",
        "hovertemplate": "%{y} and %{x}: %{text}<extra></extra>",
    }
    shown = figures.figure(
        [cells], figures.axis("split", categories=names), figures.axis("split", categories=names, autorange="reversed"),
        height=max(300, 150 + 40 * len(names)),
    )  # fmt: skip
    what = "the features that the trees split on" if row.is_trees else "the weights"
    title = f"Do splits agree on {what}: {row.title}"
    columns = ("Split", "Other split", "Cosine", "Features of both", "Features of either")
    note = (
        "The cosine of the two lists of numbers: 1 where they point the same way, 0 where they have nothing in common."
    )
    return Panel(f"agreement-{k}", title, Table(columns, rows), shown, note, row.label)


def _paths(data: StudyData) -> list[Panel]:
    """Return, for each solver with an L1 strength, how many features its trials kept and what they were worth."""
    found = []
    everything = [
        one for one in pooled(data) if one.value is not None and isinstance(one.trial.params.get(L1), float | int)
    ]
    several = sum(bool(split.trials) for split in data.splits) > 1
    for k, solver in enumerate(competing(data)):
        own = [one for one in everything if one.trial.solver == solver and one.trial.nonzeros is not None]
        own = [one for one in own if one.trial.params[L1] > 0]
        if not own:
            continue
        own = [own[i] for i in figures.thinned([one.value for one in own], 600)]
        own.sort(key=lambda one: float(one.trial.params[L1]))
        rows: list[list[Cell]] = [
            [one.trial.number, one.split, *figures.numbers((one.trial.params[L1], one.trial.nonzeros, one.value))]
            for one in own
        ]
        columns = ("Trial", "Split", "L1 strength", "Features", data.metric)
        title = f"What the L1 strength of {figures.short(solver)} leaves: features and {data.metric}"
        note = "Trials from little penalty to much; they differ in other parameters too. " + (MOVED if several else "")
        note += f" {early_stopped.NOTE}" if any(one.trial.stopped for one in own) else ""
        shown = _path_figure(data, solver, own, rows)
        found.append(Panel(f"path-{k}", title, Table(columns, rows), shown, note.strip(), solver))
    return found


def _path_figure(
    data: StudyData, solver: str, own: Sequence[Pooled], rows: Sequence[Sequence[Cell]]
) -> Mapping[str, object]:
    """Return two parts, one above the other, over the same strength."""
    x, text = [float(row[2] or 0.0) for row in rows], [early_stopped.said(one.trial) for one in own]
    stopped = [bool(one.trial.stopped) for one in own]
    marker = {**look(competing(data))[solver], "size": 7, "opacity": 0.7}
    features = figures.scatter("features", x, [row[3] for row in rows], marker=marker, text=text)
    values = figures.scatter(data.metric, x, [row[4] for row in rows], marker=marker, text=text) | {"yaxis": "y2"}
    below = figures.axis("features", domain=[0, 0.46], rangemode="tozero")
    above = figures.axis(f"{data.metric} (validation)", domain=[0.54, 1])
    return figures.figure(
        [part for trace in (features, values) for part in early_stopped.told_apart(trace, stopped)],
        figures.log_axis("L1 strength", x[0], x[-1]), below, yaxis2=above, height=520, showlegend=False,
    )  # fmt: skip
