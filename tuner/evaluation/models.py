"""The models of configurations: how they are made, scored and timed, and what trials store for the end of a study.

A trial stores the scores of its models, and the model of a given split, in the folder of the problem, under a name that
depends on the configuration alone. They are a cache: a file that is missing, as after a trial on another host, or
damaged, is computed again.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError, StudyError
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import named_signs
from ranktune.solvers.models.base import Model, load_model
from ranktune.tuner.evaluation.feature_costs import solver_parameters
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.store import located

KEPT = "kept"
"""Subfolder of a problem's folder."""


def keep_model(task: Task, model: Model) -> None:
    """Save the model that a task gave on the training queries of its split."""
    path = _path(task, "json")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        model.save(path)


def keep_final(task: Task, model: Model, seconds: float) -> float:
    """Save the model of a final fit that took so many seconds, unless it is kept; return how long that fit took."""
    took = _path(task, "seconds")
    with suppress(OSError, ValueError):
        return float(took.read_text())
    with suppress(Exception):  # such as a model that cannot be saved: that is said where it is delivered
        keep_model(task, model)
        took.write_text(repr(seconds))
    return seconds


def has_model(task: Task) -> bool:
    """Return whether the model of a task was kept."""
    return _path(task, "json").exists()


def kept_model(task: Task) -> Model | None:
    """Return the model of a task, None if it was not kept."""
    with suppress(OSError, ModelFormatError, DataError, StudyError):
        return load_model(_path(task, "json"))
    return None


def keep_growing(task: Task, model: Model | None) -> None:
    """Save the model that a task can continue, of the rounds that its parameters have; with None remove it."""
    place = _growing(task)
    if model is not None:
        keep_model(place, model)
        return
    with suppress(OSError):
        path = _path(place, "json")
        for file in path.parent.glob(f"{path.stem}*"):  # the model, and the arrays beside it
            file.unlink()


def growing_model(task: Task) -> Model | None:
    """Return the model that a task can continue, which the limit or the end of its process ended; None without one."""
    return kept_model(_growing(task))


def rounds_of(task: Task, model: Model) -> int:
    """Return the rounds that an unfinished model has grown to."""
    return int(float(str(model.parameters[task.path_parameter])))


def _growing(task: Task) -> Task:
    return replace(task, plan=f"{task.plan}, growing")


def keep_scores(task: Task, scores: NDArray[np.float32]) -> None:
    """Save the scores of the development documents, (n_documents,), that the models of a task gave."""
    with suppress(OSError):  # such as a full disk: the scores are then computed again
        path = _path(task, "npz")
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, write_archive({"scores": scores}), sync=False)  # the archive has a checksum


def kept_scores(task: Task, n_documents: int) -> NDArray[np.float32] | None:
    """Return the scores of a task, (n_documents,), None if they were not kept."""
    with suppress(StudyError):  # a damaged file too
        scores = read_archive(_path(task, "npz")).get("scores")
        if scores is not None and scores.shape == (n_documents,) and scores.dtype == np.float32:
            return np.asarray(scores)
    return None


def _path(task: Task, kind: str) -> Path:
    about = json.dumps([task.solver, sorted(task.parameters.items()), task.seed, task.plan], default=float)
    digest = hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
    return located(task.folder) / KEPT / f"{digest}.{kind}"


def as_model(ranker: BaseRanker, task: Task, train: Queries, columns: Ints | None) -> Model:
    """Return the model of a ranker that was fitted on these columns of train, None for all, with its origin."""
    model = ranker.as_model(
        solver=task.solver,
        parameters=solver_parameters(task.parameters),
        feature_names=train.with_columns(columns).feature_names,
        metric=task.metrics[0],
        fingerprint=train.fingerprint,
        encoding=train.encoding,
    )
    if columns is not None:
        model = model.on_columns(columns, train.n_features, train.feature_names)
    if train.monotone is None:
        return model
    return model.replaced(monotone=named_signs(train.monotone, train.feature_names))


MANY_DOCUMENTS = 10_000
"""Documents that are enough to measure the time of scoring one."""
MIN_SECONDS = 0.05
"""Seconds of scoring that are enough to measure it."""


def microseconds_a_document(model: Model, queries: Queries, repeats: int = 5) -> float:
    """Return the median processor time to score one document; a slow model is measured once.

    Of many queries the first ones are scored, MANY_DOCUMENTS or a few more.
    """
    if queries.n_documents > MANY_DOCUMENTS:
        queries = queries.select(np.arange(int(np.searchsorted(queries.starts, MANY_DOCUMENTS))))
    times: list[float] = []
    while len(times) < repeats and sum(times) < MIN_SECONDS:
        begun = time.process_time()
        model.predict(queries)
        times.append(time.process_time() - begun)
    return float(np.median(times)) / queries.n_documents * 1e6
