"""Compare: studies side by side, their settings, their best value by number of trials, their leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from ranktune.dashboards.analysis.paired_studies import PairedRows, paired_rows
from ranktune.dashboards.analysis.tuning_value import best_by_number, best_so_far_lines, mean_of_splits
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, joined
from ranktune.dashboards.figures.plotly import distinct
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.views.overview import answers, leaderboard_panel, setting
from ranktune.tuner.statistics.comparisons import compare_splits, pairwise


def panels(*studies: StudyData) -> list[Panel]:
    """Return conclusions, settings that differ, the best so far, and the leaderboards of two and more studies."""
    names = distinct([study.name for study in studies])
    boards = (_leaderboard(f"leaderboard-{k}", study) for k, study in enumerate(studies, 1))
    paired = paired_rows(studies, names)
    return [
        _in_short(studies, names),
        _chosen(paired, names),
        _settings(studies, names),
        _race(studies, names),
        *boards,
        _pairs(paired),
    ]


def _in_short(studies: Sequence[StudyData], names: Sequence[str]) -> Panel:
    """Return the conclusions of the studies beside each other."""
    found: list[dict[str, str]] = [{"state": study.state, **dict(answers(study))} for study in studies]
    asked = dict.fromkeys(what for each in found for what in each)
    rows = [[what, *(each.get(what) for each in found)] for what in asked]
    return Panel("summary", "In short", Frame(("what", *names), rows))


def _chosen(paired: PairedRows | str, names: Sequence[str]) -> Panel:
    """Return the paired tests between the chosen models of the studies."""
    title = "Chosen models, query by query"
    columns = ("A", "B", "A - B", "low", "high", "p", "A wins", "ties", "B wins")
    if isinstance(paired, str):
        return Panel("chosen", title, note=paired)
    rows: list[list[Cell]] = []
    generator = np.random.default_rng(0)
    for a, b in combinations(range(len(names)), 2):
        first, second = ([values[paired.chosen[study]] for values in paired.splits] for study in (a, b))
        compared = compare_splits(first, second, generator, weights=paired.weights)
        numbers = (compared.difference, compared.low, compared.high, compared.p_randomisation)
        rows.append([names[a], names[b], *numbers, compared.wins, compared.ties, compared.losses])
    note = joined(_queries(paired), "95 % bootstrap interval; p of a paired randomisation test, not corrected.")
    return Panel("chosen", title, Frame(columns, rows), None, note)


def _pairs(paired: PairedRows | str) -> Panel:
    """Return the paired tests between any two rows of the leaderboards, the clearest first."""
    title = "Any two models, query by query"
    columns = ("A", "B", "A - B", "p", "p Holm", "A wins", "ties", "B wins")
    if isinstance(paired, str):
        return Panel("pairs", title, note=paired)
    pairs = pairwise(paired.splits, np.random.default_rng(0), paired.weights)
    pairs.sort(key=lambda pair: 2.0 if pair.p is None else pair.p)
    rows = [
        [
            paired.labels[pair.a], paired.labels[pair.b], pair.difference, pair.p, pair.p_holm,
            pair.wins, pair.ties, pair.losses,
        ]
        for pair in pairs
    ]  # fmt: skip
    note = joined(_queries(paired), f"p Holm is corrected for the {len(rows)} comparisons.")
    return Panel("pairs", title, Frame(columns, rows), None, note)


def _queries(paired: PairedRows) -> str:
    count = sum(int((~np.isnan(values).all(axis=0)).sum()) for values in paired.splits)
    if paired.part == "test":
        return f"On {count} test queries."
    return f"On {count} validation queries, which chose the models: differences are too optimistic."


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
    first = studies[0]
    title = f"Best validation {first.metric} by number of trials"
    table, kind = best_so_far_lines(first, curves)
    metrics = dict.fromkeys(study.metric for study in studies)
    same = len({study.study.data for study in studies}) == 1
    note = "" if same else "The studies name different data: their values compare only where the content is equal."
    if len(metrics) > 1:
        note = f"The studies maximise different metrics ({' and '.join(metrics)}): their values are not comparable."
    elif not table.rows:
        note = "No trial has succeeded yet."
    return Panel("race", title, table, kind if len(metrics) == 1 else None, note)


def _leaderboard(key: str, study: StudyData) -> Panel:
    title = f"Leaderboard of {study.name}"
    if study.result is None:
        return Panel(key, title, note="The study is not finished.")
    return replace(leaderboard_panel(study.result), key=key, title=title, note="")
