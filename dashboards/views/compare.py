"""Compare: studies side by side, their settings, their best value by number of trials, their leaderboards.

Rows of the leaderboards, models and baselines, are paired by query where the studies were evaluated on the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from ranktune.dashboards.figures.panels import Cell, Frame, Panel, counted
from ranktune.dashboards.figures.plotly import distinct
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.overview import answers, leaderboard_panel, setting
from ranktune.dashboards.views.progress import best_by_number, best_so_far_lines, mean_of_splits
from ranktune.dashboards.views.solvers import pairs
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.statistics.comparisons import compare_splits
from ranktune.tuner.study.home import StudyFolder

_SOURCES = ("data", "vali", "test", "time", "gap", "group_by_time", "qrels", "seed", "plan", "folds", "outer")


def panels(*studies: StudyData) -> list[Panel]:
    """Return conclusions, settings that differ, the best so far, and the leaderboards of two and more studies."""
    names = distinct([study.name for study in studies])
    boards = (_leaderboard(f"leaderboard-{k}", study) for k, study in enumerate(studies, 1))
    chosen, others = _paired(studies, names)
    return [_in_short(studies, names), chosen, _settings(studies, names), _race(studies, names), *boards, others]


def _in_short(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    """Return the conclusions of the studies beside each other."""
    found: list[dict[str, str]] = [{"state": study.state, **dict(answers(study))} for study in studies]
    asked = dict.fromkeys(what for each in found for what in each)
    rows = [[what, *(each.get(what) for each in found)] for what in asked]
    return Panel("summary", "In short", Frame(("what", *names), rows))


def _paired(studies: Sequence[StudyData], names: Sequence[str]) -> tuple[Panel, Panel]:
    """Return the paired tests between the chosen models, and between any two models, the clearest first."""
    shown = Panel("chosen", "Chosen models, query by query"), Panel("pairs", "Any two models, query by query")
    if why := _why_not_paired(studies):
        return replace(shown[0], note=why), replace(shown[1], note=why)
    metric, part = studies[0].metric, studies[0].part
    weights = [scores.weights for _, scores in studies[0].evidence]
    labels, chosen = list[str](), list[int]()  # of rows, whose values by query are the rows of an array a split
    parts: list[list[Floats]] = [[] for _ in weights]
    for study, name in zip(studies, names, strict=True):
        chosen.append(len(labels))
        everywhere = [label for label in study.common_labels if label != study.evidence[0][1].labels[0]]
        labels += [f"{name}: {label}" for label in ("the chosen", *everywhere)]
        for rows_of_part, (_, scores) in zip(parts, study.evidence, strict=True):
            rows_of_part.append(scores.values[metric][[0, *map(scores.labels.index, everywhere)]])
    splits = list(map(np.concatenate, parts))
    count = counted(sum(int((~np.isnan(values).all(axis=0)).sum()) for values in splits), f"{part} query")
    on = f"On {count}{', which chose the models: differences are too optimistic' * (part != 'test')}."
    rows, generator = list[list[Cell]](), np.random.default_rng(0)
    for a, b in combinations(range(len(names)), 2):
        first, second = ([values[chosen[study]] for values in splits] for study in (a, b))
        compared = compare_splits(first, second, generator, weights=weights)
        numbers = (compared.difference, compared.low, compared.high, compared.p_randomisation)
        rows.append([names[a], names[b], *numbers, compared.wins, compared.ties, compared.losses])
    columns = ("A", "B", "A - B", "low", "high", "p", "A wins", "ties", "B wins")
    note = f"{on} 95 % bootstrap interval; p of a paired randomisation test, not corrected."
    table, kind = pairs(labels, splits, weights, metric, np.random.default_rng(0))
    clearest = table.kept(sorted(table.rows, key=lambda row: 2.0 if row[3] is None else row[3]))
    corrected = f"{on} The Holm-corrected p counts {counted(len(table.rows), 'comparison')}."
    said = "{} minus {}: {:+.4f} [{:+.4f}, {:+.4f}], p = {:.3g}."
    answer = said.format(*rows[0]) if len(rows) == 1 and None not in rows[0] else ""
    of_chosen = replace(shown[0], table=Frame(columns, rows), note=note, answer=answer)
    return of_chosen, replace(shown[1], table=clearest, kind=kind, note=corrected)


def _why_not_paired(studies: Sequence[StudyData]) -> str:
    """Return why rows of studies cannot be compared query by query, "" where they can."""
    if any(study.result is None for study in studies):
        return "Queries are compared once all studies are finished."
    if any(study.metric != studies[0].metric for study in studies):
        return "The studies maximise different metrics: their values are not comparable."
    known = [study.evidence for study in studies]
    queries = {tuple((name, scores.part, scores.queries) for name, scores in of_study) for of_study in known}
    if not all(known) or len(queries) > 1 or not _same_data(studies):
        return "The studies were not evaluated on the same queries: they cannot be compared query by query."
    weights = [[scores.weights for _, scores in of_study] for of_study in known]
    if not all(_is_same(a, b) for of_study in weights for a, b in zip(of_study, weights[0], strict=True)):
        return "The queries have other weights in one study than in another: the means are not comparable."
    return ""


def _settings(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    settings = [study.study.as_dict() for study in studies]
    rows = [
        [name, *(setting(declared.get(name)) for declared in settings)]
        for name in dict.fromkeys(name for declared in settings for name in declared)
        if name != "name" and any(declared.get(name) != settings[0].get(name) for declared in settings)
    ]
    note = "" if rows else "Every setting is the same."
    return Panel("settings", "Settings that differ", Frame(("setting", *names), rows), None, note)


def _race(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    curves = {
        name: mean_of_splits([best_by_number(split) for split in study.splits])
        for name, study in zip(names, studies, strict=True)
    }
    table, kind = best_so_far_lines(studies[0], curves)
    metrics = dict.fromkeys(study.metric for study in studies)
    same = len({study.study.data for study in studies}) == 1
    note = "" if same else "The studies name different data: their values compare only where the content is equal."
    if len(metrics) > 1:
        note = f"The studies maximise different metrics ({' and '.join(metrics)}): their values are not comparable."
    elif not table.rows:
        note = "No trial has succeeded yet."
    title = f"Best validation {studies[0].metric} by number of trials"
    return Panel("race", title, table, kind if len(metrics) == 1 else None, note)


def _leaderboard(key: str, study: StudyData) -> Panel:
    if study.result is None:
        return Panel(key, f"Leaderboard of {study.name}", note="The study is not finished.")
    return replace(leaderboard_panel(study.result), key=key, title=f"Leaderboard of {study.name}")


def _is_same(first: Floats | None, second: Floats | None) -> bool:
    """Return whether weights are the same; None stands for weights of 1."""
    return bool(np.all((1.0 if first is None else first) == (1.0 if second is None else second)))


def _same_data(studies: Sequence[StudyData]) -> bool:
    """Return whether the studies have data of one digest, or name the same files: features may differ."""
    sources = [tuple(map(study.study.as_dict().get, _SOURCES)) for study in studies]
    if all(source == sources[0] for source in sources):
        return True
    try:
        digests = [StudyFolder(study.folder).digests() for study in studies]
    except StudyError:
        return False
    return all(digest == digests[0] for digest in digests)
