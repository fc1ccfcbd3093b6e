"""The baseline of a study: the scores of a ranking given from outside, kept in the folder of the study.

HOME/NAME/baseline.npz holds the scores of the parts of each split as they were read, so that the study is resumed
without the file that they came from: plain arrays and one JSON text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import Damaged, DataError, StudyError
from ranktune.solvers.core.files.archives import write_archive
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.plans import StoredPlan
from ranktune.tuner.splits.seals import is_written, read_sealed_arrays, write_sealed

FILE = "baseline.npz"
PARTS = ("train", "vali", "test")

Scores: TypeAlias = Mapping[tuple[str, str], Floats]
"""Split and part -> the score of each document, in the order of its queries."""


@dataclass(frozen=True)
class Baseline:
    """What the ranking is called in the settings, and its scores on the parts that it covers."""

    spelling: str
    scores: Scores

    def on(self, splits: Sequence[QuerySplit]) -> list[QuerySplit]:
        """Return the splits whose parts have the scores. Raises StudyError where there are not as many as documents."""
        return [
            QuerySplit(
                split.name,
                self._with(split.name, "train", split.train),
                None if split.vali is None else self._with(split.name, "vali", split.vali),
                None if split.test is None else self._with(split.name, "test", split.test),
            )
            for split in splits
        ]

    def _with(self, split: str, part: str, queries: Queries) -> Queries:
        scores = self.scores.get((split, part))
        if scores is None:
            return queries
        if len(scores) != queries.n_documents:
            raise StudyError(
                f"the study keeps {len(scores)} scores of its baseline {self.spelling}, and the data have "
                f"{queries.n_documents} documents. Give the data that it began with."
            )
        return queries.replaced(baseline=scores)

    def save(self, folder: Path) -> None:
        """Write it into the folder of a study."""
        keys = list(self.scores)
        arrays = {f"scores{number}": self.scores[key] for number, key in enumerate(keys)}
        header = {"spelling": self.spelling, "keys": keys}
        write_sealed(folder / FILE, write_archive(arrays, header, small=True))


def load_baseline(folder: Path, spelling: str) -> Baseline | None:
    """Return the baseline in the folder of a study, None where there is none of that spelling.

    Raises StudyError for a damaged file.
    """
    path = folder / FILE
    if not is_written(path):
        return None
    try:
        header, arrays = read_sealed_arrays(path)
        scores = [np.asarray(arrays[f"scores{k}"], dtype=np.float64) for k in range(len(header["keys"]))]
        keys = [(str(split), str(part)) for split, part in header["keys"]]
        baseline = Baseline(str(header["spelling"]), dict(zip(keys, scores, strict=True)))
    except Damaged as damage:
        raise StudyError(f"{damage} Remove it, and give the baseline again.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"cannot read {path}: {error}. Remove it, and give the baseline again.") from None
    return baseline if baseline.spelling == spelling else None


def covers(scores: Floats | None) -> bool:
    """Return whether these scores of a baseline, (n,), are there and none is missing."""
    return scores is not None and bool(np.isfinite(scores).all())


def check_covered(spelling: str, development: Queries, plan: StoredPlan, test: Queries | None) -> None:
    """Raise DataError unless the baseline scores the test queries or, without them, those that judge trials."""
    scores = development.baseline if test is None else test.baseline
    if test is None and scores is not None and isinstance(plan, tuple):
        scores = scores[development.documents_of(np.unique(np.concatenate([fold.vali for fold in plan])))]
    if not covers(scores):
        what = "validation" if test is None else "test"
        raise DataError(
            f"the baseline {spelling} has no scores of the {what} queries, on which it is compared with the chosen "
            "model. Give scores of all data, a model, or a column of the data."
        )
