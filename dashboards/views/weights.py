"""What matters to the models: importance, effects and spread of features; weights, and the features by L1 strength.

A panel's group is the row of the leaderboard, or the solver of the trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ranktune.dashboards.analysis.pooling import no_models_note, pooled, pooled_note, stopped_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Heat, Points
from ranktune.dashboards.figures.panels import Figure, Frame, Panel, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.explained import importance
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, parts_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.within import WithinModel, column_name

MAX_BARS = 40
"""Features of a figure; the table has more."""
MAX_ROWS = 2_000
L1 = "l1"
"""Name of the L1 strength, in every solver that has one."""


@dataclass(frozen=True, eq=False)
class _Row:
    """The models of one row of the leaderboard, by split; all of one kind and of the same features.

    part: their part of a blend, "" for other models
    """

    label: str
    part: str
    splits: tuple[str, ...]
    models: tuple[Model, ...]

    @property
    def title(self) -> str:
        name = figures.short(self.label)
        return f"{name} ({self.part})" if self.part else name

    @cached_property
    def numbers(self) -> Floats:
        """Weights, or numbers of splits for trees, (n_models, n_features)."""
        return np.stack([_of_model(model) for model in self.models])

    @cached_property
    def names(self) -> list[str]:
        """The features, or the columns that trees compare."""
        model = self.models[0]
        if isinstance(model, WithinModel):
            return [column_name(j, model.n_features, model.feature_names) for j in range(model.inner.n_features)]
        named = model.feature_names
        return [f"feature {j + 1}" for j in range(model.n_features)] if named is None else list(named)

    @property
    def compares(self) -> bool:
        """Whether trees compare documents."""
        return isinstance(self.models[0], WithinModel)

    @property
    def is_trees(self) -> bool:
        return self.compares or isinstance(self.models[0], TreeModel)


def panels(data: StudyData) -> list[Panel]:
    """Return the importance of the features, spread and weights by row of the leaderboard, and the L1 strengths."""
    rows = _rows(data)
    shown = importance(data)
    for k, row in enumerate(rows):
        spread = _spread(data, row, k)
        shown += [_weights(row, k)] if spread is None else [spread, _weights(row, k, drawn=not row.is_trees)]
        if len(row.models) > 1:
            shown.append(_agreement(row, k))
    if not rows:
        title = "Weights of the chosen model"
        note = "There is no saved linear model and no saved tree model." if data.evidence else no_models_note(data)
        shown.append(Panel("weights", title, note=note))
    return shown + _strengths(data)


def _rows(data: StudyData) -> list[_Row]:
    """Return the rows with a model, in the order of the first split's evidence: the chosen first."""
    labels = list(dict.fromkeys(label for s in data.splits if s.evidence is not None for label in s.evidence.labels))
    rows = []
    for label in labels:
        kept = [(split.name, split.model(label)) for split in data.splits]
        parts = [(name, *part) for name, model in kept if model is not None for part in _parts(model)]
        for kind in dict.fromkeys(kind for _, kind, _ in parts):
            models = [(name, model) for name, of, model in parts if of == kind]
            models = [(name, model) for name, model in models if model.n_features == models[0][1].n_features]
            whole = all(not isinstance(model, BlendModel) for _, model in kept)
            part = "" if whole else kind
            rows.append(_Row(label, part, tuple(name for name, _ in models), tuple(model for _, model in models)))
    return rows


def _parts(model: Model) -> list[tuple[str, Model]]:
    """Return the parts that a model adds, by kind; those without weights and trees are left out."""
    if isinstance(model, BlendModel):
        return [inner for part in model.parts for inner in _parts(part)]
    if isinstance(model, LinearModel):
        return [("linear, features scaled by query" if model.list_scaling else "linear", model)]
    if isinstance(model, WithinModel):
        return [("trees that compare documents", model)]
    return [("trees", model)] if isinstance(model, TreeModel) else []


def _of_model(model: Model) -> Floats:
    if isinstance(model, LinearModel):
        return model.weights
    if isinstance(model, WithinModel):
        return _of_model(model.inner)
    if isinstance(model, TreeModel):
        return np.bincount(model.trees.feature, minlength=model.n_features).astype(np.float64)
    raise TypeError(f"a model of type {type(model).__name__} has no weights.")


def _spread(data: StudyData, row: _Row, k: int) -> Panel | None:
    """Return how far each feature moves scores within queries, the mean over splits; None where that is not known."""
    (kind,) = parts_of(row.models[0])
    explained = {split.name: split.explanations for split in data.splits if split.explanations is not None}
    known = [explained[name].spreads.get(row.label, {}).get(kind) for name in row.splits if name in explained]
    spreads = [split for split in known if split is not None]
    if not spreads:
        return None
    values = np.zeros((len(spreads), row.models[0].n_features))
    for deviations, spread in zip(values, spreads, strict=True):
        features = [j for j in spread if j < values.shape[1]]
        deviations[features] = [spread[j] for j in features]
    if not row.is_trees:
        values *= np.where(row.numbers.mean(axis=0) < 0.0, -1.0, 1.0)
    what = "deviation of contributions" if row.is_trees else "weight x deviation"
    title = f"How far each feature moves the scores of {row.title} within queries"
    note = joined(
        "A part of a blend: its scores are added to those of the other parts." if row.part else "",
        "The contribution of a feature to the score of a document is exact (Shapley values); the figure has its "
        "standard deviation within queries."
        if row.is_trees
        else "The weight of each feature times its standard deviation within queries.",
        "It is in the unit of the score, so that features of different ranges can be compared.",
    )
    unit = "deviation within queries, in score"
    return _by_feature(Panel(f"spread-{k}", title, note=note, group=row.label), row, values, what, unit)


def _weights(row: _Row, k: int, *, drawn: bool = True) -> Panel:
    """Return the weights of a row's models: their mean over splits, and their standard deviation."""
    numbers, what = row.numbers, "splits" if row.is_trees else "weight"
    agree = np.abs(np.sign(numbers).sum(axis=0)) / len(numbers)
    title = f"{'Splits of the trees' if row.is_trees else 'Weights'} of {row.title} by feature"
    note = _weights_note(row, int(np.any(numbers != 0, axis=0).sum()))
    unit = ("number of splits" if row.is_trees else "weight, in score per unit") if drawn else ""
    panel = Panel(f"weights-{k}", title, note=note, group=row.label)
    return _by_feature(panel, row, numbers, what, unit, {"Sign agreement": agree})


def _by_feature(
    panel: Panel, row: _Row, numbers: Floats, what: str, unit: str, more: Mapping[str, Floats] = MappingProxyType({})
) -> Panel:
    """Return a panel with the mean over splits of what each feature has, (n_splits, n_features); drawn in a unit."""
    columns, mean = {what.capitalize(): numbers[0]}, numbers.mean(axis=0)
    order = np.argsort(-np.abs(numbers).mean(axis=0), kind="stable")
    order = order[np.any(numbers[:, order] != 0, axis=0)]
    if several := len(numbers) > 1:
        deviation = numbers.std(axis=0, ddof=1)
        columns = {f"Mean {what}": mean, "Standard deviation": deviation, **more}
        columns |= {"Low": mean - deviation, "High": mean + deviation}
    order = order[:MAX_ROWS]
    cells = zip([row.names[j] for j in order], *(column[order] for column in columns.values()), strict=True)
    table = Frame(("Feature", *columns), list(cells))
    kind = Bars("Feature", list(columns)[:1], unit, "feature", ("Low", "High") if several else None, MAX_BARS)
    return replace(panel, table=table, kind=kind if unit else None)


def _weights_note(row: _Row, nonzero: int) -> str:
    parts = ["A part of a blend: its scores are added to those of the other parts."] if row.part else []
    what = "columns, features and what is made of them within queries," if row.compares else "features"
    parts += [f"{nonzero} of {len(row.names)} {what} are used."]
    if row.is_trees:
        parts.append("How often a feature is compared does not say how much it matters.")
    if nonzero > MAX_BARS:
        parts.append(f"The figure shows the {MAX_BARS} largest.")
    if len(row.models) > 1:
        parts.append(
            f"Means over {len(row.models)} splits, with their standard deviation. Sign agreement is 1 where all splits "
            "have the same sign."
        )
    if any(isinstance(model, LinearModel) and model.list_scaling for model in row.models):
        parts.append("Features are divided by their range in the query, so that their weights can be compared.")
    elif not row.is_trees:
        parts.append("Weights are per unit of the feature: those of features with different ranges cannot be compared.")
    return " ".join(parts)


def _agreement(row: _Row, k: int) -> Panel:
    """Return the similarity of the weights of the splits."""
    numbers, splits = row.numbers, list(row.splits)
    norms = np.linalg.norm(numbers, axis=1)
    lengths = np.where(norms > 0, norms, np.nan)
    alike = (numbers @ numbers.T) / np.outer(lengths, lengths)
    shared = (numbers != 0).astype(np.float64)
    both, either = shared @ shared.T, shared.sum(axis=1)
    union = either[:, None] + either[None, :] - both
    rows = [
        [splits[a], splits[b], alike[a, b], int(both[a, b]), int(union[a, b])]
        for a in range(len(splits))
        for b in range(a + 1, len(splits))
    ]
    title = f"Agreement of the splits on the {'splits of trees' if row.is_trees else 'weights'} of {row.title}"
    columns = ("Split", "Other split", "Cosine", "Features of both", "Features of either")
    note = "Cosine similarity of the weights: 1 where they are proportional, 0 where no feature is in common."
    kind = Heat(*columns[:3], "cosine", lambda row: f"{row['Cosine']:.2f}", mirrored=1)
    return Panel(f"agreement-{k}", title, Frame(columns, rows), kind, note, row.label)


def _strengths(data: StudyData) -> list[Panel]:
    """Return, for each solver with an L1 strength, the features and the value of its trials by strength."""
    shown_panels = []
    trials = [t for t in pooled(data) if t.value is not None and t.nonzeros is not None and _strength(t) > 0]
    for k, solver in enumerate(data.all_solvers):
        of_solver = [trial for trial in trials if trial.solver == solver]
        if not of_solver:
            continue
        of_solver = [of_solver[i] for i in figures.thinned([trial.value for trial in of_solver], 600)]
        of_solver.sort(key=_strength)
        rows: list[list[Any]] = [
            [trial.place, trial.split, _strength(trial), trial.nonzeros, trial.value, trial.stopped or None]
            for trial in of_solver
        ]
        columns = ("Trial", "Split", "L1 strength", "Features", data.metric, "Stopped after")
        title = f"Features and {data.metric} by the L1 strength of {figures.short(solver)}"
        note = joined("Trials differ in other parameters too.", pooled_note(data), stopped_note(of_solver))
        across = figures.log_axis("L1 strength", rows[0][2], rows[-1][2])
        below = figures.axis("features", domain=[0, 0.46], rangemode="tozero")
        points = Points("L1 strength", "Features", across, below, figures.solver_styles(data.all_solvers), solver)
        kind = partial(_above_each_other, points, data.metric)
        shown_panels.append(Panel(f"path-{k}", title, Frame(columns, rows), kind, note, solver))
    return shown_panels


def _strength(trial: Trial) -> float:
    value = trial.params.get(L1)
    return float(value) if isinstance(value, float | int) else 0.0


def _above_each_other(points: Points, metric: str, frame: Frame) -> Figure:
    """Return two plots, one above the other, over the same strength."""
    values = points.drawn(points.solver, frame, metric, yaxis="y2")
    above = figures.axis(f"{metric} (validation)", domain=[0.54, 1])
    layout = {"yaxis2": above, "height": 520, "showlegend": False}
    return replace(points, over=values, layout=layout)(frame)
