"""Data sets of LightGBM and XGBoost."""

from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy import sparse

from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.sources.catalogue import load, read

X = np.array([[1.0, 2.0], [0.5, 0.25], [4.0, 1.0], [2.0, 8.0]])
Y, GROUP = [1, 0, 0, 2], [1, 3]


def test_a_dataset_of_lightgbm_is_read() -> None:
    for data in (X, sparse.csr_array(X), pd.DataFrame(X, columns=["a", "b"])):
        dataset = lightgbm.Dataset(data, Y, group=GROUP, weight=[2.0, 3.0, 3.0, 3.0], free_raw_data=False)
        for _ in range(2):
            queries = read(dataset)
            features = queries.features if isinstance(queries.features, np.ndarray) else queries.features.toarray()
            assert np.array_equal(features, X) and queries.grades.tolist() == Y
            assert queries.starts.tolist() == [0, 1, 4] and queries.weight_of_query.tolist() == [2.0, 3.0]
            assert queries.feature_names == (("a", "b") if isinstance(data, pd.DataFrame) else None)
            dataset.construct()


def test_a_matrix_of_xgboost_is_read() -> None:
    matrix = xgboost.DMatrix(X, Y, qid=[5, 6, 6, 6], weight=[2.0, 3.0], feature_names=["a", "b"])
    queries = read(matrix)
    assert queries.features.tolist() == X.tolist() and queries.feature_names == ("a", "b")
    assert queries.starts.tolist() == [0, 1, 4] and queries.weight_of_query.tolist() == [2.0, 3.0]
    (split,) = load(matrix, vali=matrix)
    assert split.vali is not None and split.vali.fingerprint == queries.fingerprint


def test_what_a_matrix_lacks_is_missing_or_in_a_sparse_one_0() -> None:
    holes = np.where(X == 0.25, np.nan, X)
    holes[0, 0] = 0.0
    queries = read(xgboost.DMatrix(holes, Y, qid=[5, 6, 6, 6]))
    assert np.array_equal(np.asarray(queries.features), holes, equal_nan=True)
    few = sparse.csr_array(np.eye(4, 9, dtype=np.float32))
    with pytest.warns(RankTuneWarning, match="lacks 89% of the values"):
        features = read(xgboost.DMatrix(few, Y, qid=[5, 6, 6, 6])).features
    assert not isinstance(features, np.ndarray) and np.array_equal(features.toarray(), few.toarray())


def test_data_sets_that_lack_something_are_refused(tmp_path: Path) -> None:
    freed = lightgbm.Dataset(X, Y, group=GROUP, params={"verbose": -1}).construct()
    with pytest.raises(DataError, match="freed its raw data"):
        read(freed)
    with pytest.raises(DataError, match="no groups"):
        read(lightgbm.Dataset(X, Y))
    with pytest.raises(DataError, match="no labels"):
        read(lightgbm.Dataset(X, group=GROUP))
    with pytest.raises(DataError, match="holds str"):
        read(lightgbm.Dataset("train.txt", Y, group=GROUP))
    with pytest.raises(DataError, match="differs between the documents of query 1"):
        read(lightgbm.Dataset(X, Y, group=GROUP, weight=[1, 1, 2, 2]))
    with pytest.raises(DataError, match="no groups"):
        read(xgboost.DMatrix(X, Y))
    with pytest.raises(DataError, match="no labels"):
        read(xgboost.DMatrix(X, qid=[5, 6, 6, 6]))
    with pytest.raises(DataError, match="holds bins"):
        read(xgboost.QuantileDMatrix(X, Y, qid=[5, 6, 6, 6]))
