"""Documents given several times: what weights of documents must be equal to."""

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data.queries import Queries


def with_copies(queries: Queries, seed: int = 5) -> tuple[Queries, Queries, Ints]:
    """Queries with weights of documents from 1 to 3, with as many copies of each instead, and the rows of these."""
    times = np.random.default_rng(seed).integers(1, 4, queries.n_documents)
    rows = np.repeat(np.arange(len(times)), times)
    qid = queries.query_of_document[rows]
    copied = Queries.from_arrays(queries.features[rows], queries.grades[rows], qid=qid)
    return queries.given(document_weights=times), copied, rows
