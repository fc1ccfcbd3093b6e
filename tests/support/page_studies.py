"""Studies on disk for tests of pages, written in a moment and without tuning anything."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.policy.racing import FullValueEstimate
from ranktune.tuner.selection.evidence import EVIDENCE, write_evidence
from ranktune.tuner.selection.results import Result
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder, make_folder
from tests.support.study_samples import (
    HOSTILE,
    PAIR,
    concluded,
    evidence_of,
    linear_model,
    study_of_splits,
    trial,
    trials_of,
)

BEGUN = 1_700_000_000.0
LINE = tuple(name for name in HOSTILE if name.isprintable() and "/" not in name and 0 < len(name) < 200)
"""Hostile names that a study may have: it is a folder's name."""


def declare(home: Path, name: str, splits: Sequence[str] = ("",), **fields: Any) -> Study:
    """Make the folder of a study that has not begun."""
    given: dict[str, Any] = {"name": name, "data": "somewhere", "solvers": PAIR, "trials": 20}
    study = Study(**given | fields)
    folder = make_folder(home, name)
    folder.declare(study, dict.fromkeys(splits, "digest"))
    for split in filter(None, splits):
        (folder.path / split).mkdir(exist_ok=True)
    return study


def append(home: Path, name: str, trials: Sequence[Trial], split: str = "") -> None:
    """Write finished trials into a study's record, as a run does."""
    record = Record(home / name / split, "/".join(filter(None, (name, split))), "ndcg@10")
    known = StudyFolder(home / name).study().union_space().distributions
    for each in trials:
        params = each.flat_params
        values = {} if each.value is None else {"ndcg@10": np.full(4, each.value)}
        outcome = TaskOutcome(
            per_query=values, nonzeros=each.nonzeros or float("nan"), seconds=each.seconds, error=each.error,
            begun=BEGUN + each.number, ended=BEGUN + each.number + 0.5, worker=each.worker, warnings=each.warnings,
            steps=tuple((BEGUN, f"fold {k}", part) for k, part in enumerate(each.parts, start=1)),
            stopped=each.stopped, path_parameter=each.path_parameter, path=each.path,
            chosen=float(each.params[each.path_parameter] or 0.0) if each.path else None, restarts=each.restarts,
        )  # fmt: skip
        estimate = FullValueEstimate(each.value or 0.0, (each.error_of_estimate or 0.0) ** 2) if each.stopped else None
        spaces = {key: known.get(key, optuna.distributions.FloatDistribution(0.0, 10.0)) for key in params}
        record.append(each.number, params, spaces, outcome, estimate)
    record.close()


def finish(home: Path, name: str, labels: Sequence[str] = PAIR, splits: Sequence[str] = ("",), **more: Any) -> Result:
    """Write the result and the evidence of a study, and return the result."""
    result = concluded(name, labels, splits, **more)
    save(result, home)
    for k, split in enumerate(splits):
        write_evidence(evidence_of(labels, seed=k), home / name / split / EVIDENCE)
    return result


def save(result: Result, home: Path) -> None:
    """Write a result into the folder of its study, without a digest."""
    (home / result.study / "result.json").write_text(json.dumps(result.as_dict()))


def hostile_data(folder: Path) -> StudyData:
    """Return a finished study in which everything that anybody may name has a hostile name."""
    params = {name: 0.1 * (k + 1) for k, name in enumerate(HOSTILE)}
    trials = [
        replace(t, params=dict(t.params) | (params if k % 2 else {}), worker=HOSTILE[k % 8], warnings=(HOSTILE[k % 8],))
        for k, t in enumerate(trials_of(16))
    ]
    trials += [trial(16 + k, PAIR[0], {}, None, error=text) for k, text in enumerate(HOSTILE)]
    labels = (HOSTILE[0], HOSTILE[3], *PAIR)
    evidence = evidence_of(labels)
    queries = (*HOSTILE, *evidence.queries[len(HOSTILE) :])
    closely = tuple(
        replace(entry, query=text, documents=HOSTILE[: len(entry.grades)] + entry.documents[len(HOSTILE) :])
        for text, entry in zip(HOSTILE, evidence.closely, strict=False)
    )
    evidence = replace(evidence, queries=queries, closely=closely)
    folder.mkdir(parents=True, exist_ok=True)
    model = linear_model(folder / "model.json", list(range(1, len(HOSTILE) + 1)), HOSTILE)
    splits = HOSTILE[0], HOSTILE[3]
    data = study_of_splits(
        [(split, trials, evidence) for split in splits], result=concluded(HOSTILE[1], labels, splits),
        models={(split, label): model for split in splits for label in labels},
    )  # fmt: skip
    return replace(data, study=replace(data.study, data=HOSTILE[3]))
