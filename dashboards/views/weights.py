"""What matters to the models: importance, effects and spread of features; weights, and the features by L1 strength.

A panel's group is the row of the leaderboard, or the solver of the trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Points
from ranktune.dashboards.figures.panels import Frame, Panel, grouped, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.explained import importance
from ranktune.dashboards.views.solver_trials import no_models_note, pooled, pooled_note
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, parts_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.within import WithinModel, column_name

MAX_BARS = 40
"""Features of a figure; the table has more."""
MAX_ROWS, MAX_TRIALS = 2_000, 600
L1 = "l1"
"""Name of the L1 strength, in every solver that has one."""
PART_NOTE = "A part of a blend: its scores are added to those of the other parts."


@dataclass(frozen=True, eq=False)
class _Models:
    """The models of one row of the leaderboard, by split; all of one kind and of the same features.

    part: their part of a blend, "" for other models
    """

    label: str
    part: str
    splits: tuple[str, ...]
    models: tuple[Model, ...]

    @property
    def title(self) -> str:
        return figures.short(self.label) + f" ({self.part})" * bool(self.part)

    @cached_property
    def numbers(self) -> Floats:
        """Weights, or numbers of splits for trees, (n_models, n_features)."""
        return np.stack(list(map(_of_model, self.models)))

    @cached_property
    def names(self) -> list[str]:
        """The features, or the columns that trees compare."""
        model = self.models[0]
        if isinstance(model, WithinModel):
            return [column_name(j, model.n_features, model.feature_names) for j in range(model.inner.n_features)]
        return list(model.feature_names or (f"feature {j + 1}" for j in range(model.n_features)))

    @property
    def compares(self) -> bool:
        """Whether trees compare documents."""
        return isinstance(self.models[0], WithinModel)

    @property
    def is_trees(self) -> bool:
        return self.compares or isinstance(self.models[0], TreeModel)

    @property
    def part_note(self) -> str:
        return PART_NOTE * bool(self.part)


def panels(data: StudyData) -> list[Panel]:
    """Return the importance of the features, spread and weights by row of the leaderboard, and the L1 strengths."""
    rows = _rows(data)
    shown = importance(data)
    for k, row in enumerate(rows):
        shown += grouped(_of_row(data, row), k, row.label)
    if not rows:
        note = "There is no saved linear model and no saved tree model." if data.evidence else no_models_note(data)
        shown.append(Panel("weights", "Weights of the chosen model", note=note))
    return [*shown, *_strengths(data)]


def _of_row(data: StudyData, row: _Models) -> Iterator[Panel]:
    spread = _spread(data, row)
    if spread is not None:
        yield spread
    yield _weights(row, drawn=spread is None or not row.is_trees)


def _rows(data: StudyData) -> list[_Models]:
    """Return the rows with a model, in the order of the first split's evidence: the chosen first."""
    labels = dict.fromkeys(label for s in data.splits if s.evidence is not None for label in s.evidence.labels)
    rows = []
    for label in labels:
        kept = [(split.name, split.model(label)) for split in data.splits]
        parts = [(name, *part) for name, model in kept if model is not None for part in _parts(model)]
        is_blend = any(isinstance(model, BlendModel) for _, model in kept)
        for kind in dict.fromkeys(kind for _, kind, _ in parts):
            models = [(name, model) for name, of, model in parts if of == kind]
            names, alike = zip(*(each for each in models if each[1].n_features == models[0][1].n_features), strict=True)
            rows.append(_Models(label, kind * is_blend, names, alike))
    return rows


def _parts(model: Model) -> list[tuple[str, Model]]:
    """Return the parts that a model adds, by kind; those without weights and trees are left out."""
    if isinstance(model, BlendModel):
        return [inner for part in model.parts for inner in _parts(part)]
    if isinstance(model, LinearModel):
        return [("linear" + ", features scaled by query" * model.list_scaling, model)]
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


def _spread(data: StudyData, row: _Models) -> Panel | None:
    """Return how far each feature moves scores within queries, the mean over splits; None where that is not known."""
    (kind,) = parts_of(row.models[0])
    explained = [s.explanations for s in data.splits if s.explanations is not None and s.name in row.splits]
    known = (each.spreads.get(row.label, {}).get(kind) for each in explained)
    spreads = [spread for spread in known if spread is not None]
    if not spreads:
        return None
    features = range(row.models[0].n_features)
    values = np.array([[spread.get(j, 0.0) for j in features] for spread in spreads])
    if not row.is_trees:
        values *= np.where(row.numbers.mean(axis=0) < 0.0, -1.0, 1.0)
    title = f"How far each feature moves the scores of {row.title} within queries"
    note = joined(
        row.part_note,
        "The contribution of a feature to the score of a document is exact (Shapley values); the figure has its "
        "standard deviation within queries."
        if row.is_trees
        else "The weight of each feature times its standard deviation within queries.",
        "It is in the unit of the score, so that features of different ranges can be compared.",
    )
    what = "deviation of contributions" if row.is_trees else "weight x deviation"
    return _by_feature(Panel("spread", title, note=note), row, values, what, "deviation within queries, in score")


def _weights(row: _Models, *, drawn: bool) -> Panel:
    """Return the weights of a row's models: their mean over splits, and their standard deviation."""
    numbers, what = row.numbers, "splits" if row.is_trees else "weight"
    agree = np.abs(np.sign(numbers).sum(axis=0)) / len(numbers)
    title = f"{'Splits of the trees' if row.is_trees else 'Weights'} of {row.title} by feature"
    unit = ("number of splits" if row.is_trees else "weight, in score per unit") * drawn
    used = int(np.any(numbers != 0, axis=0).sum())
    columns = "columns, features and what is made of them within queries," if row.compares else "features"
    scaled = any(isinstance(model, LinearModel) and model.list_scaling for model in row.models)
    note = joined(
        row.part_note,
        f"{used} of {len(row.names)} {columns} are used.",
        "How often a feature is compared does not say how much it matters." * row.is_trees,
        f"Means over {len(row.models)} splits, with their standard deviation. Sign agreement is 1 where all splits "
        "have the same sign." * (len(row.models) > 1),
        "Features are divided by their range in the query, so that their weights can be compared."
        if scaled
        else "Weights are per unit of the feature: those of features with different ranges cannot be compared."
        * (not row.is_trees),
    )
    return _by_feature(Panel("weights", title, note=note), row, numbers, what, unit, {"Sign agreement": agree})


def _by_feature(
    panel: Panel, row: _Models, numbers: Floats, what: str, unit: str,
    more: Mapping[str, Floats] = MappingProxyType({}),
) -> Panel:  # fmt: skip
    """Return a panel with the mean over splits of what each feature has, (n_splits, n_features); drawn in a unit."""
    columns, mean = {what.capitalize(): numbers[0]}, numbers.mean(axis=0)
    order = np.argsort(-np.abs(numbers).mean(axis=0), kind="stable")
    order = order[np.any(numbers[:, order] != 0, axis=0)][:MAX_ROWS]
    if several := len(numbers) > 1:
        deviation = numbers.std(axis=0, ddof=1)
        columns = {f"Mean {what}": mean, "Standard deviation": deviation, **more}
        columns |= {"Low": mean - deviation, "High": mean + deviation}
    cells = zip([row.names[j] for j in order], *(column[order] for column in columns.values()), strict=True)
    kind = Bars("Feature", list(columns)[:1], unit, "feature", ("Low", "High") if several else None, MAX_BARS)
    return replace(panel, table=Frame(("Feature", *columns), list(cells)), kind=kind if unit else None)


def _strengths(data: StudyData) -> Iterator[Panel]:
    """Yield, for each solver with an L1 strength, the features of its trials by strength."""
    trials = [t for t in pooled(data) if t.value is not None and t.nonzeros is not None and _strength(t) > 0]
    styles = figures.solver_styles(data.all_solvers)
    for k, solver in enumerate(data.all_solvers):
        of_solver = [trial for trial in trials if trial.solver == solver]
        if not of_solver:
            continue
        kept, shown = figures.some_of(of_solver, [trial.value for trial in of_solver], MAX_TRIALS)
        kept.sort(key=_strength)
        rows = [[t.place, t.split, _strength(t), t.nonzeros, t.value, t.stopped or None] for t in kept]
        columns = ("Trial", "Split", "L1 strength", "Features", data.metric, "Stopped after")
        note = joined("Trials differ in other parameters too.", shown, pooled_note(data))
        across = figures.log_axis("L1 strength", _strength(kept[0]), _strength(kept[-1]))
        kind = Points("L1 strength", "Features", across, figures.axis("features", rangemode="tozero"), styles, solver)
        title = f"Features by the L1 strength of {figures.short(solver)}"
        yield Panel(f"path-{k}", title, Frame(columns, rows), kind, note, solver)


def _strength(trial: Trial) -> float:
    value = trial.params.get(L1)
    return float(value) if isinstance(value, float | int) else 0.0
