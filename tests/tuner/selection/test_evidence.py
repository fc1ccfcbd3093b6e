"""Evidence: what is read is what was written, and the documents kept are those of the queries that matter. What a
study keeps of its models' explanations is what their functions find, and takes no more than its time."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.contributions import contribution_spread, linear_terms
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps
from ranktune.tuner.selection.evidence import (
    EXPLANATIONS,
    MAX_DOCUMENTS,
    MAX_EXAMPLES,
    Evidence,
    query_documents,
    read_evidence,
    read_explanations,
    select_queries,
    write_evidence,
    write_explanations,
)
from ranktune.tuner.selection.results import Result
from tests.support.engine_samples import graded

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


def test_a_study_keeps_explanations_of_its_choice(result: Result) -> None:
    folder = Path(result.folder)
    actual = read_explanations(folder / EXPLANATIONS)
    assert (actual.label, actual.part, actual.metric) == (result.best.solver, "test", "ndcg@10")
    assert (actual.queries, actual.total) == (30, 30)
    losses = {one.feature: one.loss.mean for one in actual.importance}
    assert set(list(losses)[:2]) == {"feature 1", "feature 2"}  # those of the truth
    assert list(losses.values()) == sorted(losses.values(), reverse=True)
    model, test = load_model(result.model), graded(30, 2)
    assert set(actual.spreads) == {row.solver for row in result.leaderboard}
    worst = read_evidence(folder / "evidence.npz").closely[0]
    own = next(one for one in actual.closely if one.query == worst.query)
    one = test.select([int(worst.query)])
    scores = model.predict(one)
    assert list(own.scores) == pytest.approx([sorted(scores, reverse=True)[rank - 1] for rank in own.ranks])
    assert list(own.ranks[:9]) == list(range(1, 10))
    best = one.grades[np.argsort(-scores)].argmax() + 1
    assert own.ranks[9] == (10 if best <= 10 else best)
    assert own.mean == pytest.approx(scores.mean())
    for score, row in zip(own.scores, own.contributions, strict=True):
        assert sum(row) == pytest.approx(score - own.mean, abs=1e-9)
    assert len(actual.effects) == 5
    assert all(np.diff(effect.values).min() > 0.0 for effect in actual.effects)


@pytest.mark.parametrize("kind", ["linear", "stumps"])
def test_the_spread_is_the_deviation_of_contributions_within_a_query(kind: str) -> None:
    weights, X = np.array([1.0, 0.0, 0.0, 3.0, 0.0]), np.random.default_rng(1).normal(size=(100, 5))
    queries = Queries.from_arrays(X, X[:, 0] > 0.0, group=[10] * 10)
    linear = LinearModel(-weights, "RankSVM")
    model: LinearModel | TreeModel = linear
    contributions = -weights * X
    if kind == "stumps":
        model = TreeModel(stumps([0, 3], [0.0, 0.5], [1.0, 3.0]), 5, "RankBoost")
        contributions = weights * (X > [0.0, 0.0, 0.0, 0.5, 0.0])
    else:
        assert linear_terms(linear, queries).shape == (queries.n_documents, 2)
    variances = [part.var(axis=0) for part in np.split(contributions, queries.starts[1:-1])]
    actual = contribution_spread(model, queries, np.random.default_rng(0), 1.0)
    np.testing.assert_allclose(actual, np.sqrt(np.mean(variances, axis=0)), rtol=0, atol=1e-12)
    assert np.isnan(contribution_spread(model, queries, np.random.default_rng(0), 0.0)).all()


def test_the_spread_of_many_features_takes_memory_for_one_query() -> None:
    n_features = 100_000
    X = sparse.csr_array(sparse.random_array((400, n_features), density=1e-4, rng=np.random.default_rng(0)))
    queries = Queries.from_arrays(X, np.arange(400) % 2, qid=np.arange(400) // 2)
    model = LinearModel(np.ones(n_features), "RankSVM")
    tracemalloc.start()
    try:
        spread = contribution_spread(model, queries, np.random.default_rng(0), 1e6)
        assert tracemalloc.get_traced_memory()[1] < 20 * 8 * n_features < queries.n_queries * 8 * n_features
    finally:
        tracemalloc.stop()
    assert np.count_nonzero(spread) == len(np.unique(X.indices))


def test_what_is_written_is_read_back(result: Result, tmp_path: Path) -> None:
    actual = read_explanations(Path(result.folder) / EXPLANATIONS)
    write_explanations(actual, tmp_path / EXPLANATIONS)
    assert read_explanations(tmp_path / EXPLANATIONS) == actual
    empty = replace(actual, importance=(), effects=(), spreads={}, closely=())
    write_explanations(empty, tmp_path / EXPLANATIONS)
    assert read_explanations(tmp_path / EXPLANATIONS) == empty


DAMAGES: dict[str, Any] = {
    "label": 3,
    "queries": -1,
    "repeats": 1.5,
    "importance": [{"feature": "a", "loss": {"mean": "x", "low": 0, "high": 0}}],
    "effects": [{"feature": "a", "values": [1.0], "shares": [], "effects": [1.0]}],
    "spreads": {"a": {"linear": {"b": 1.0}}},
    "closely": [{"query": "q"}],
}


@pytest.mark.parametrize("name", [*DAMAGES, "not json", "absent"])
def test_damaged_files_are_refused(name: str, result: Result, tmp_path: Path) -> None:
    path = tmp_path / EXPLANATIONS
    content = json.loads((Path(result.folder) / EXPLANATIONS).read_text())
    content |= {name: DAMAGES[name]} if name in DAMAGES else {}
    path.write_text("{" if name == "not json" else json.dumps(content))
    if name == "absent":
        path.unlink()
    with pytest.raises(StudyError, match="cannot read"):
        read_explanations(path)
