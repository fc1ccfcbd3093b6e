"""The queries that a configuration is fitted to: those of a part of the plan, or a sample of them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ranktune.solvers.boosting.lightgbm.bins import MAX_KEPT_BYTES
from ranktune.solvers.boosting.lightgbm.ranker import LightGBMRanker
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.core.memory import spelled
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.memory import left
from ranktune.tuner.splits.parts import read_part
from ranktune.tuner.splits.store import read_development

BYTES_OF_DOCUMENT, BYTES_OF_FIT = 100, 120 << 20
"""What LightGBM takes besides a byte for each feature of a document: for each document, and in all."""


def sample(numbers: Ints, count: int, seed: int) -> Ints:
    """Return the numbers of a sample of that many queries, rising; all where count is 0 or not smaller."""
    if not 0 < count < len(numbers):
        return numbers
    return np.sort(np.random.default_rng([seed, 7]).permutation(numbers)[:count])


def read_for_fit(task: Task, numbers: Ints) -> Queries:
    """Return the development queries of these numbers, to fit the configuration of a task to.

    Where memory is limited, and the bins of LightGBM would take more, it is the largest sample of them that fits, and
    a RankTuneWarning says so.
    """
    room, development = left(), read_development(task.folder)
    if room is None or development.is_sparse or not issubclass(solver_class(task.solver), LightGBMRanker):
        return read_part(task.folder, numbers)
    documents, width = int(development.lengths[numbers].sum()), development.n_features
    most = (room - BYTES_OF_FIT) // (width + BYTES_OF_DOCUMENT)
    if 0 < most < documents:
        count = max(int(most / documents * len(numbers)), 1)
        warnings.warn(
            f"{task.solver} is fitted to a sample of {count} of {len(numbers)} queries, whose bins the {spelled(room)} "
            "of memory that are left hold. Give more memory (memory=), or fewer jobs.",
            RankTuneWarning,
            stacklevel=2,
        )
        numbers = sample(numbers, count, task.seed)
        documents = int(development.lengths[numbers].sum())
    part, shared = read_part(task.folder, numbers), development.n_documents * width
    if shared <= MAX_KEPT_BYTES and documents + shared // (width + BYTES_OF_DOCUMENT) > most:
        part = replace(part, features_checked=True)  # without an origin, whose bins it would share
    return part
