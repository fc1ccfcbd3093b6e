"""What a split leaves in its folder: the chosen model, those of all rows, and what they scored by query."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ranktune.tuner.selection.evidence import EVIDENCE, Evidence, look_closely, worth_a_look, write_evidence
from ranktune.tuner.selection.finals import Entry
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import Problem

MODELS = "models"
"""Folder of the models of all rows of a split's leaderboard."""


def keep(entries: Sequence[Entry], problem: Problem, own: Path) -> None:
    """Save the chosen model, those of all rows, and what they scored by query."""
    with writing(own):
        entries[0].model.save(own / "model.json")
        shutil.rmtree(own / MODELS, ignore_errors=True)
        (own / MODELS).mkdir()
        labels = [entry.candidate.solver for entry in entries]
        for label, entry in zip(labels, entries, strict=True):
            entry.model.save(own / MODELS / f"{label}.json")
        files = tuple(f"{MODELS}/{label}.json" for label in labels)
        write_evidence(_evidence(entries, problem, tuple(labels), files), own / EVIDENCE)


def _evidence(entries: Sequence[Entry], problem: Problem, labels: tuple[str, ...], files: tuple[str, ...]) -> Evidence:
    """Return the rows' values by query: on test, else on fresh folds, else those of the trials."""
    if problem.test is not None:
        values = {name: np.stack([entry.test[name] for entry in entries]) for name in entries[0].test}
        (main, *_) = values.values()
        scores = [entry.model.predict(replace(problem.test, rows=None)) for entry in entries]
        closely = look_closely(problem.test, worth_a_look(main), labels, scores)
        names = tuple(str(name) for name in problem.test.query_ids)
        return Evidence("test", labels, files, names, values, closely)
    own = [entry.candidate.vali if entry.candidate.again is None else entry.candidate.again for entry in entries]
    judged = problem.judged
    rows = [values if len(values) == len(judged) else np.full(len(judged), np.nan) for values in own]
    names = tuple(str(name) for name in problem.development.query_ids[judged])
    return Evidence("vali", labels, files, names, {entries[0].model.metric or "": np.stack(rows)}, ())
