"""Features in the bins of LightGBM. Folds, samples and trials of one data set share them.

Bins depend on features alone. Those of queries that were selected from others (Queries.select) are the bins of the
queries that they come from, which are kept until those are gone.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.boosting.bins import shared_by
from ranktune.solvers.boosting.lightgbm.library import Data, Parameters
from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data.origins import Kept
from ranktune.solvers.data.queries import Queries

MAX_KEPT = 2
"""The most data sets whose bins are kept in a process."""
MAX_KEPT_BYTES = 2**30
"""The most bytes of the bins of a data set that are kept; larger bins are made for each fit."""
DENSE_SAMPLE = 50_000
"""Documents that the limits of the bins of dense features are computed from; more take longer and are no better."""


KEPT: Kept[Data] = Kept(MAX_KEPT)
"""The bins of the last data sets."""


def rows_of(queries: Queries, numbers: Ints) -> Ints:
    """Return the rows of the queries of these numbers, (n,)."""
    rows: Ints = np.arange(queries.n_documents)[queries.documents_of(numbers)]
    return rows


def bins_of(queries: Queries, params: Parameters) -> tuple[Data, Ints | None]:
    """Return bins and the rows of queries in them; without rows, the bins are those of queries and not shared.

    The bins of sparse features are never shared: which of them are kept depends on the least size of a leaf.
    """
    origin, numbers = shared_by(queries)
    if queries.is_sparse or origin.n_documents * origin.n_features > MAX_KEPT_BYTES:
        return Data(queries.features, params), None
    of_bins = {name: value for name, value in params.items() if name in _OF_BINS} | {"min_data_in_leaf": 1}
    key = str(sorted(of_bins.items()))
    return KEPT.of(origin, key, lambda: Data(origin.features, of_bins)), rows_of(origin, numbers)


_OF_BINS = (
    *("max_bin", "min_data_in_bin", "bin_construct_sample_cnt", "data_random_seed", "use_missing", "is_enable_sparse"),
    *("feature_pre_filter", "force_col_wise", "force_row_wise", "verbosity"),
)
"""The parameters of LightGBM that bins depend on."""
