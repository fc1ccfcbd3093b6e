"""Evidence: what is read is what was written, and the documents kept are those of the queries that matter."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.selection.evidence import (
    MAX_DOCUMENTS,
    MAX_EXAMPLES,
    Evidence,
    query_documents,
    read_evidence,
    select_queries,
    write_evidence,
)

HOSTILE = '<script>alert(1)</script>"\n\u202e'


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    values = np.array([[0.5, np.nan, 1.0], [0.25, np.nan, 0.0]])
    queries = Queries.from_arrays(np.zeros((4, 1)), [1, 0, 2, 0], qid=["a", "a", HOSTILE, HOSTILE])
    closely = query_documents(queries, [1], ["A", HOSTILE], [np.arange(4.0), -np.arange(4.0)])
    weights = np.array([0.5, 3.0, 1.0])
    written = Evidence(
        "test", ("A", HOSTILE), ("models/A.json", ""), ("1", "2", HOSTILE), {"map": values}, closely, weights
    )
    write_evidence(written, tmp_path / "evidence.npz")
    read = read_evidence(tmp_path / "evidence.npz")
    np.testing.assert_array_equal(read.values["map"], values)
    np.testing.assert_array_equal(read.weights, weights)
    write_evidence(replace(written, weights=None), tmp_path / "evidence.npz")
    assert read_evidence(tmp_path / "evidence.npz").weights is None
    assert (read.part, read.labels, read.models) == (written.part, written.labels, written.models)
    assert read.queries == written.queries
    assert read.closely == closely
    assert closely[0].query == HOSTILE
    assert closely[0].scores["A"] == (2.0, 3.0)
    assert closely[0].grades == (2.0, 0.0)


def test_the_worst_and_the_most_disputed_queries_are_looked_at() -> None:
    generator = np.random.default_rng(0)
    values = np.stack([generator.random(500), generator.random(500)])
    values[:, 7] = np.nan
    result = select_queries(values)
    assert len(result) == len(set(result)) == MAX_EXAMPLES
    assert 7 not in result
    assert int(np.nanargmin(values[0])) in result
    assert int(np.nanargmax(np.abs(values[0] - values[1]))) in result


def test_of_a_long_query_what_models_rank_first_is_kept() -> None:
    n = 5 * MAX_DOCUMENTS
    queries = Queries.from_arrays(np.zeros((n, 1)), np.zeros(n), qid=np.zeros(n), document_ids=np.arange(n))
    scores = [np.arange(n, dtype=float), -np.arange(n, dtype=float)]
    (one,) = query_documents(queries, [0], ["up", "down"], scores)
    assert len(one.documents) == MAX_DOCUMENTS
    assert {"0", str(n - 1)} <= set(one.documents)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", json.dumps({}).encode()])
def test_what_is_something_else_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "evidence.npz").write_bytes(content)
    with pytest.raises(StudyError, match=r"cannot read .*evidence\.npz"):
        read_evidence(tmp_path / "evidence.npz")
