import json

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources.summary import MOST_GRADES, summarise

X = np.array([[1, 0, 5, 0], [2, 0, 5, 0], [0, 0, 5, 0], [3, 0, 5, 1], [4, 0, 5, 0], [4, 0, 5, 0]], dtype=np.float32)
GRADES, QID = [0, 2, 1, 0, 0, 2], [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_figures_of_a_small_set(kind: type) -> None:
    summary = summarise(Queries.from_arrays(kind(X), GRADES, qid=QID))
    assert (summary["queries"], summary["documents"], summary["features"]) == (3, 6, 4)
    assert (summary["shortest"], summary["median"], summary["longest"]) == (1, 2.0, 3)
    assert summary["grades"] == {"0": 3, "1": 1, "2": 2} and summary["distinct_grades"] == 3
    assert summary["sparsity"] == pytest.approx(1 - np.count_nonzero(X) / X.size)
    assert summary["constant_features"] == [2, 3]
    assert summary["queries_without_relevant"] == 1
    assert summary["queries_with_one_grade"] == 2
    assert summary["dtype"] == "float32"
    assert summary["layout"] == ("dense" if kind is np.asarray else "sparse")
    assert summary["megabytes"] > 0


def test_constant_features_are_named() -> None:
    queries = Queries.from_arrays(X, GRADES, qid=QID, feature_names=["a", "b", "c", "d"])
    assert summarise(queries)["constant_features"] == ["b", "c"]


def test_the_dictionary_is_json() -> None:
    figures = summarise(Queries.from_arrays(X, [0, 0.5, 1, 0, 0, 2], qid=QID))
    assert json.loads(json.dumps(figures)) == figures
    assert figures["grades"] == {"0": 3, "0.5": 1, "1": 1, "2": 1}
    assert figures["constant_features"] == [2, 3]


def test_many_grades_are_cut_to_the_commonest() -> None:
    grades = np.repeat(np.arange(200.0), np.where(np.arange(200) % 4 == 0, 3, 1))
    queries = Queries.from_arrays(np.ones((len(grades), 1)), grades, group=[len(grades)])
    summary = summarise(queries)
    assert summary["distinct_grades"] == 200
    assert len(summary["grades"]) == MOST_GRADES
    assert all(count == 3 and int(grade) % 4 == 0 for grade, count in summary["grades"].items())
