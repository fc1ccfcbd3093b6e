"""What a trial leaves for the end of the study: the scores that its models gave, and the model of a given split.

They lie in the folder of the problem, under a name that depends on the configuration alone, so that neither has to be
computed again. They are a shortcut: where one is missing, as after a trial on another host, or damaged, it is computed
again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.errors import DataError, ModelFormatError, StudyError
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import located
from ranktune.tuner.splits.proof import read_archive

KEPT = "kept"
"""Subfolder of a problem's folder."""


def keep_model(task: Task, model: Model) -> None:
    """Save the model that a task gave on the training queries of its split."""
    path = _path(task, "json")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        model.save(path)


def has_model(task: Task) -> bool:
    """Return whether the model of a task was kept."""
    return _path(task, "json").exists()


def kept_model(task: Task) -> Model | None:
    """Return the model of a task, None if it was not kept."""
    with suppress(OSError, ModelFormatError, DataError, StudyError):
        return load_model(_path(task, "json"))
    return None


def keep_scores(task: Task, scores: NDArray[np.float32]) -> None:
    """Save the scores of the development documents, (n_documents,), that the models of a task gave."""
    with suppress(OSError):  # such as a full disk: the scores are then computed again
        path = _path(task, "npz")
        path.parent.mkdir(exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        np.savez(draft, scores=scores)
        draft.with_name(f"{draft.name}.npz").replace(path)  # without a sync: the archive has a checksum


def kept_scores(task: Task, n_documents: int) -> NDArray[np.float32] | None:
    """Return the scores of a task, (n_documents,), None if they were not kept."""
    with suppress(StudyError):  # a damaged file too
        found = read_archive(_path(task, "npz")).get("scores")
        if found is not None and found.shape == (n_documents,) and found.dtype == np.float32:
            return np.asarray(found)
    return None


def _path(task: Task, kind: str) -> Path:
    about = json.dumps([task.solver, sorted(task.parameters.items()), task.seed, task.plan], default=float)
    digest = hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
    return located(task.folder) / KEPT / f"{digest}.{kind}"
