"""api-search: ranking data made of the documentation of joblib, numpy, optuna, scipy and scikit-learn.

A query is a documented public function or class: its name and its summary. Its candidates are the 50 others that
BM25 ranks first over name, summary and body. Its grades come from what people wrote under "See Also": a candidate has
grade 2 if query and candidate list each other, 1 if only the query lists the candidate, 0 otherwise. "See Also" was
removed from the text before anything was computed from it. The data are the queries with a graded candidate.

The file was written once: NOTICE.txt says of which versions, by what, and under which licences.

n  documented objects, sorted by name      m  candidates of each, 50      F  features
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search import NAME
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries

PARTS = ("train", "vali", "test")

CONTINUOUS = (
    "bm25",  # the query's name and summary, in the candidate's name, summary and body
    "bm25_name",  # the same in one of them
    "bm25_summary",
    "bm25_body",
    "bm25_reversed",  # the candidate's name and summary, in the query's name, summary and body
    "tfidf",  # cosine of name, summary and body
    "tfidf_summary",
    "tfidf_name",  # of the parts of the names, as in random_forest
    "tfidf_bigrams",  # of pairs of neighbouring words of summary and body
    "tfidf_parameters",  # of the names of the parameters
    "tfidf_mentions",  # of what the two mention
    "name_ngrams",  # cosine of the character n-grams of the names
    "name_prefix",  # length of the common start of the names, over the longer length
    "name_suffix",
    "mentions",  # the query's text has the candidate's name among its words; rare names count more
    "mentioned",  # the candidate's text has the query's
    "mentions_code",  # the same, where it is written as code
    "mentioned_code",
    "mentions_path",  # the same, where it is written in full, as in numpy.linalg.norm
    "mentioned_path",
    "length_ratio",  # of the shorter text to the longer
)
SAME = ("same_module", "same_package", "same_source", "same_kind")
FEATURE_NAMES = (
    *(*CONTINUOUS, *SAME, "log_length"),
    *(f"{name}_of_best" for name in CONTINUOUS),
    *(f"{name}_rank" for name in CONTINUOUS),
)
"""Linear models need two more views of each continuous feature, because they compare documents within a query: divided
by the largest of the query, and the position in the query."""

_FILE = f"{NAME}.npz"
_SHA256 = "7f52b9bf81823b92abbce5c1a4762274f0354ea2e8538e97c00e445865c426f2"


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """All documented objects, each with its candidates, also those without a graded candidate.

    names       n public names, sorted
    part        (n,) int8, 0 without a graded candidate, else 1 + the place in PARTS
    candidates  (n, m) int16 numbers of objects, by falling BM25
    grades      (n, m) int8, 0, 1 or 2
    log_length  (n,) log(1 + words)
    pairs       (F', n, m) float16, the features of CONTINUOUS and SAME in this order, without length_ratio
    """

    names: tuple[str, ...]
    part: NDArray[np.int8]
    candidates: NDArray[np.int16]
    grades: NDArray[np.int8]
    log_length: NDArray[np.float32]
    pairs: NDArray[np.float16]

    def queries(self, numbers: Ints) -> Queries:
        """Return the objects with these numbers as queries, with the public names as ids."""
        names = np.array(self.names, dtype=np.str_)
        candidates = self.candidates[numbers]
        features = self._features(numbers).reshape(candidates.size, len(FEATURE_NAMES))
        starts = np.arange(len(numbers) + 1, dtype=np.int64) * candidates.shape[1]
        grades = self.grades[numbers].ravel().astype(np.float64)
        return Queries(features, grades, starts, names[numbers], names[candidates.ravel()], FEATURE_NAMES)

    def _features(self, numbers: Ints) -> NDArray[np.float32]:
        """Return the features of the queries with these numbers, (number of queries, m, F)."""
        candidates = self.candidates[numbers]
        pairs = self.pairs[:, numbers].astype(np.float32)
        length, of_candidates = self.log_length[numbers, None], self.log_length[candidates]
        measured = len(CONTINUOUS) - 1
        continuous = np.concatenate([pairs[:measured], np.exp(-np.abs(length - of_candidates))[None]])
        best = continuous.max(axis=2, keepdims=True)
        of_best = continuous / np.where(best > 0.0, best, 1.0)
        columns = np.concatenate([continuous, pairs[measured:], of_candidates[None], of_best, _positions(continuous)])
        return np.ascontiguousarray(np.moveaxis(columns, 0, 2))


def _positions(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 for the first along the last axis to 0 for the last, in the logarithm of the rank, ties averaged."""
    by_candidate = np.ascontiguousarray(np.moveaxis(values, 2, 0))
    twice = np.ones(by_candidate.shape, dtype=np.uint8)  # twice the rank: 1 + those before + those not behind
    for other in by_candidate:
        twice += other > by_candidate
        twice += other >= by_candidate
    m = len(by_candidate)
    position = 1.0 - np.log2(np.arange(1, 2 * m + 1) / 2.0) / np.log2(m)  # of each half rank
    return np.moveaxis(position.astype(np.float32)[twice - 1], 0, 2)


def load_table() -> CandidateTable:
    """Return the shipped table. Raises DataError where its file is damaged."""
    content = resources.files(__package__).joinpath(_FILE).read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise DataError(f"{_FILE} is not as it was shipped. Install RankTune again.")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        names = tuple(file["names"].tobytes().decode().split("\n"))
        return CandidateTable(
            names, *(file[name] for name in ("part", "candidates", "grades", "log_length", "features"))
        )


def load_splits(name: str) -> list[QuerySplit]:
    """Return api-search, which is called by its name, as a reader of data sets does."""
    return [load_split()]


def load_split() -> QuerySplit:
    """Return api-search in its fixed split by query: train 60 %, vali 20 %, test 20 %."""
    table = load_table()
    parts = [table.queries(np.flatnonzero(table.part == place)) for place in range(1, len(PARTS) + 1)]
    return QuerySplit(NAME, *parts)
