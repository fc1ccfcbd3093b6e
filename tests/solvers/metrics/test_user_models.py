"""ERR and RBP, AUC, and domination: their definitions, other tools, and tied scores by brute force."""

import itertools
import shutil
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from tests.support.metric_samples import one_query, orders, trec_format, value


def plain_err(grades: list[float], k: int, highest: float) -> float:
    """As Chapelle et al. print it: the sum over r of 1 / r times the product of 1 - R above, times R."""
    R = [(2.0**y - 1) / 2.0**highest for y in grades]
    return float(sum(np.prod([1 - p for p in R[:r]]) * R[r] / (r + 1) for r in range(min(k, len(R)))))


def plain_rbp(grades: list[float], k: int, p: float) -> float:
    return float((1 - p) * sum(p**r for r, y in enumerate(grades[:k]) if y >= 1))


def plain_domination(grades: list[float]) -> float:
    above = [r for r, y in enumerate(grades) if y > min(grades)]
    return float(np.mean([all(grades[j] >= grades[r] for j in range(r)) for r in above]))


def plain_auc(grades: list[float]) -> float:
    pairs = [(a, b) for a, b in itertools.permutations(range(len(grades)), 2) if grades[a] >= 1 > grades[b]]
    return float(np.mean([a < b for a, b in pairs]))


PLAIN: dict[str, Callable[[list[float]], float]] = {
    "err": lambda g: plain_err(g, len(g), 4),
    "err@2": lambda g: plain_err(g, 2, 4),
    "err@3:highest=10": lambda g: plain_err(g, 3, 10),
    "rbp": lambda g: plain_rbp(g, len(g), 0.8),
    "rbp@2:p=0.5": lambda g: plain_rbp(g, 2, 0.5),
    "domination": plain_domination,
    "auc": plain_auc,
}
small_query = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]), min_size=n, max_size=n),
    )
)


def has_nothing_to_measure(name: str, grades: list[float]) -> bool:
    relevant = [y >= 1 for y in grades]
    if name.startswith("err"):
        return max(grades) == 0
    if name == "domination":
        return len(set(grades)) == 1
    return not any(relevant) or (name == "auc" and all(relevant))


@settings(max_examples=40, deadline=None)
@given(small_query)
def test_ties_are_averaged_or_the_worst_or_the_best_of_all_orders(query: tuple[list[float], list[float]]) -> None:
    scores, grades = query
    for spelling, plain in PLAIN.items():
        if has_nothing_to_measure(spelling, grades):
            assert np.isnan(value(spelling, scores, grades))
            continue
        possible = [plain([grades[i] for i in order]) for order in orders(scores)]
        for ties, expected in (
            ("average", np.mean(possible)),
            ("pessimistic", min(possible)),
            ("optimistic", max(possible)),
        ):
            written = f"{spelling},ties={ties}" if ":" in spelling else f"{spelling}:ties={ties}"
            assert value(written, scores, grades) == pytest.approx(expected, rel=1e-12, abs=1e-14), written


@pytest.fixture(scope="module")
def queries() -> Queries:
    generator = np.random.default_rng(5)
    qid = np.repeat(np.arange(70), generator.integers(1, 90, 70))
    grades = generator.integers(0, 5, len(qid)) * (qid % 8 > 0) * (generator.random(len(qid)) < 0.5)
    ids = np.array([f"d{i}" for i in generator.permutation(len(qid))])
    return Queries.from_arrays(np.zeros((len(qid), 1)), grades, qid=qid, document_ids=ids)


def test_long_queries_with_ties_equal_the_mean_over_shuffled_orders(queries: Queries) -> None:
    """Orders are drawn at random: the mean of 100 of them is within five of its standard errors."""
    generator = np.random.default_rng(6)
    scores = np.round(generator.normal(size=queries.n_documents))
    for name in ("err", "err@7", "rbp", "domination", "auc"):
        expected = parse_metric(name).per_query(scores, queries)
        drawn = np.array(
            [parse_metric(name).per_query(scores + 0.4 * generator.random(len(scores)), queries) for _ in range(100)]
        )
        assert np.array_equal(np.isnan(drawn[0]), np.isnan(expected))
        known = ~np.isnan(expected)
        error = drawn[:, known].std(axis=0) / 10.0
        assert (np.abs(drawn[:, known].mean(axis=0) - expected[known]) <= 5.0 * error + 1e-12).all(), name


def test_auc_equals_scikit_learn(queries: Queries) -> None:
    scores = np.round(np.random.default_rng(7).normal(size=queries.n_documents), 1)
    for lowest in (1, 3):
        ours = parse_metric(f"auc:relevant={lowest}").per_query(scores, queries)
        for q, (a, b) in enumerate(itertools.pairwise(queries.starts)):
            relevant = queries.grades[a:b] >= lowest
            if relevant.all() or not relevant.any():
                assert np.isnan(ours[q])
            else:
                assert ours[q] == pytest.approx(roc_auc_score(relevant, scores[a:b]), abs=1e-12)


def test_ir_measures(queries: Queries) -> None:
    """Its RBP is cwl_eval's, of at most 1,000 documents; its ERR gdeval's, a Perl script that prints five decimals."""
    import ir_measures

    scores = np.random.default_rng(10).normal(size=queries.n_documents)
    qrels, run = trec_format(scores, queries)
    theirs = {"err@10": ir_measures.ERR @ 10, "err@20": ir_measures.ERR @ 20} if shutil.which("perl") else {}
    theirs |= {"rbp": ir_measures.RBP(rel=1), "rbp:p=0.5,relevant=3": ir_measures.RBP(rel=3, p=0.5)}
    theirs |= {"p@10": ir_measures.P @ 10, "ndcg_cut_10": ir_measures.nDCG @ 10, "AP": ir_measures.AP}
    result = {(row.query_id, str(row.measure)): row.value for row in ir_measures.iter_calc(theirs.values(), qrels, run)}
    for name, measure in theirs.items():
        ours = parse_metric(name).per_query(scores, queries)
        assert np.isfinite(ours).sum() > 50
        for q in np.flatnonzero(np.isfinite(ours)):
            precision = 5.001e-6 if name.startswith("err") else 1e-9
            assert ours[q] == pytest.approx(result[str(q), str(measure)], abs=precision), (name, q)


def test_grades_beyond_the_scale_are_refused() -> None:
    with pytest.raises(DataError, match=r"document 1 has grade 6: err has grades up to highest=4.*err@10:highest=6"):
        parse_metric("err@10").per_query(np.zeros(2), one_query([0, 6]))
    with pytest.raises(DataError, match="at least 0"):
        parse_metric("err").per_query(np.zeros(2), one_query([0, -1]))
    assert value("err:highest=6", [1, 0], [6, 0]) == 63 / 64
