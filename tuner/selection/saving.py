"""The files of a split's result: the chosen model, those of all rows of the leaderboard, and what they scored."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ranktune.solvers.core.errors import LeftOut, StudyError, or_left_out
from ranktune.tuner.selection.evidence import (
    EVIDENCE,
    EXPLANATIONS,
    Evidence,
    query_documents,
    select_queries,
    write_evidence,
)
from ranktune.tuner.selection.finals import Finalist, ScoredRanking
from ranktune.tuner.selection.rows import BASELINE
from ranktune.tuner.splits.seals import remove_sealed, sealing
from ranktune.tuner.statistics.periods import Period, by_period
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem

MODELS = "models"
"""Folder of the models of all rows of a split's leaderboard."""


def save_chosen(entries: Sequence[Finalist], folder: Path) -> tuple[list[Finalist], list[LeftOut]]:
    """Save the models of the first rows, and that of the first again as the chosen one; return those that can be saved.

    The files of former models, and what they scored, are removed.
    """
    with writing(folder):
        for name in (EVIDENCE, EXPLANATIONS):
            remove_sealed(folder / name)
        shutil.rmtree(folder / MODELS, ignore_errors=True)
        (folder / MODELS).mkdir()
        saved, left_out = save_models(entries, folder)
        if saved:
            _save(saved[0], folder / "model.json")
    return saved, left_out


def save_models(entries: Sequence[Finalist], folder: Path) -> tuple[list[Finalist], list[LeftOut]]:
    """Save the models of rows, and return those that can be saved."""
    left_out: list[LeftOut] = []
    with writing(folder):
        saved = [
            entry
            for entry in entries
            if or_left_out(
                f"the model of {entry.candidate.solver}",
                partial(_save, entry, folder / MODELS / f"{entry.candidate.solver}.json"),
                False,
                raised=(StudyError, OSError),
                into=left_out,
            )
        ]
    return saved, left_out


def _save(entry: Finalist, path: Path) -> bool:
    with sealing(path):
        entry.model.save(path)
    return True


def save_evidence(
    entries: Sequence[Finalist], problem: SplitProblem, folder: Path, baseline: ScoredRanking | None = None
) -> None:
    """Save what the models of all rows and the baseline scored by query."""
    labels = [entry.candidate.solver for entry in entries]
    files = [f"{MODELS}/{label}.json" for label in labels]
    if baseline is not None:
        labels, files = [*labels, BASELINE], [*files, ""]
    evidence = _evidence(entries, problem, tuple(labels), tuple(files), baseline)
    evidence = replace(evidence, periods=_over_time(entries[0], problem, baseline))
    with writing(folder):
        write_evidence(evidence, folder / EVIDENCE)


def _over_time(chosen: ScoredRanking, problem: SplitProblem, baseline: ScoredRanking | None) -> tuple[Period, ...]:
    """Return what the chosen model and the baseline scored by period, on validation queries and on test queries."""
    if problem.development.times is None:
        return ()
    periods: list[Period] = []
    for scored in filter(None, (chosen, baseline)):
        label, vali = scored.candidate.solver, scored.candidate.values
        parts = [("validation", vali, problem.validation_queries)]
        if problem.test is not None and scored.test:
            parts.append(("test", next(iter(scored.test.values())), problem.test))
        for part, values, queries in parts:
            if len(values) == queries.n_queries:
                of_query = queries.time_of_query
                periods += by_period(part, label, of_query, values, queries.query_weights, dated=queries.dated)
    return tuple(periods)


def _evidence(
    entries: Sequence[Finalist],
    problem: SplitProblem,
    labels: tuple[str, ...],
    files: tuple[str, ...],
    baseline: ScoredRanking | None,
) -> Evidence:
    """Return the rows' values by query: on test, else on fresh folds, else those of the trials."""
    if problem.test is not None:
        tests = [entry.test for entry in entries] + ([] if baseline is None else [baseline.test])
        values = {name: np.stack([scored[name] for scored in tests]) for name in entries[0].test}
        (main, *_) = values.values()
        scores = [entry.model.predict(replace(problem.test, rows=None)) for entry in entries]
        scores += [] if baseline is None or problem.test.baseline is None else [problem.test.baseline]
        closely = query_documents(problem.test, select_queries(main), labels, scores)
        names = tuple(str(name) for name in problem.test.query_ids)
        return Evidence("test", labels, files, names, values, closely, problem.test_weights)
    by_entry = [entry.candidate.values for entry in entries]
    if baseline is not None:
        by_entry.append(baseline.candidate.vali)
    columns = problem.validation
    rows = [values if len(values) == len(columns) else np.full(len(columns), np.nan) for values in by_entry]
    names = tuple(str(name) for name in problem.development.query_ids[columns])
    values = {entries[0].model.metric or "": np.stack(rows)}
    return Evidence("vali", labels, files, names, values, (), problem.validation_weights)
