"""Metrics: brute force over tie orders, other libraries, laws, and what is remembered between calls."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics import kernels as metric_kernels
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.kernels import rank
from ranktune.solvers.metrics.metrics import parse_metric
from tests.support.metric_samples import orders, value

EVERY: tuple[str, ...] = (
    "ndcg@3",
    "ndcg",
    "dcg@2",
    "dcg",
    "mean-ndcg",
    "mean-ndcg@3",
    "map",
    "map@2",
    "map@3:norm=all",
    "mrr",
    "mrr@2",
)
EVERY += ("precision@2", "precision@4:short=cut", "recall@3", "r-precision", "wta", "pairwise", "kendall")
BY_TIES = tuple(spelling for spelling in EVERY if spelling not in ("pairwise", "kendall"))
EVERY += ("err", "err@3:highest=6", "rbp", "rbp@3:p=0.5", "auc", "domination")


# --- the definitions, for one query whose documents are already in order ---


def plain_dcg(grades: list[float], k: int) -> float:
    return float(sum((2**y - 1) / np.log2(r + 1) for r, y in enumerate(grades[:k], start=1)))


def plain_ndcg(grades: list[float], k: int) -> float:
    return plain_dcg(grades, k) / plain_dcg(sorted(grades, reverse=True), k)


def plain_ap(grades: list[float], k: int, norm: str = "top") -> float:
    hits = [r for r, y in enumerate(grades, start=1) if y >= 1]
    total = sum(i / r for i, r in enumerate(hits, start=1) if r <= k)
    return total / (len(hits) if norm == "all" else min(k, len(hits)))


PLAIN: dict[str, Callable[[list[float]], float]] = {
    "ndcg@3": lambda g: plain_ndcg(g, 3),
    "ndcg": lambda g: plain_ndcg(g, len(g)),
    "dcg@2": lambda g: plain_dcg(g, 2),
    "dcg": lambda g: plain_dcg(g, len(g)),
    "mean-ndcg": lambda g: float(np.mean([plain_ndcg(g, m) for m in range(1, len(g) + 1)])),
    "mean-ndcg@3": lambda g: float(np.mean([plain_ndcg(g, m) for m in range(1, min(3, len(g)) + 1)])),
    "map": lambda g: plain_ap(g, len(g)),
    "map@2": lambda g: plain_ap(g, 2),
    "map@3:norm=all": lambda g: plain_ap(g, 3, "all"),
    "mrr": lambda g: max(1 / r for r, y in enumerate(g, start=1) if y >= 1),
    "mrr@2": lambda g: max([1 / r for r, y in enumerate(g[:2], start=1) if y >= 1], default=0.0),
    "precision@2": lambda g: sum(y >= 1 for y in g[:2]) / 2,
    "precision@4:short=cut": lambda g: sum(y >= 1 for y in g[:4]) / min(4, len(g)),
    "recall@3": lambda g: sum(y >= 1 for y in g[:3]) / sum(y >= 1 for y in g),
    "r-precision": lambda g: float(np.mean([y >= 1 for y in g[: sum(y >= 1 for y in g)]])),
    "wta": lambda g: float(g[0] == max(g)),
}


small_query = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 4.0]), min_size=n, max_size=n),
    )
)


@settings(max_examples=60, deadline=None)
@given(small_query)
def test_ties_are_averaged_over_all_their_orders(query: tuple[list[float], list[float]]) -> None:
    scores, grades = query
    assert set(PLAIN) == set(BY_TIES)
    if max(grades) == 0:
        assert all(np.isnan(value(spelling, scores, grades)) for spelling in BY_TIES)
        return
    allowed = [[grades[i] for i in order] for order in orders(scores)]
    for spelling, plain in PLAIN.items():
        got = value(spelling, scores, grades)
        if spelling == "wta" and len(set(grades)) == 1:
            assert np.isnan(got)
        else:
            assert got == pytest.approx(np.mean([plain(order) for order in allowed]), rel=1e-12, abs=1e-14), spelling


@settings(max_examples=40, deadline=None)
@given(small_query)
def test_every_tie_rule_is_the_order_it_names(query: tuple[list[float], list[float]]) -> None:
    scores, grades = query
    grades[0] = 1.0
    n = range(len(scores))
    rules = {
        "input": sorted(n, key=lambda i: (-scores[i], i)),
        "reverse": sorted(n, key=lambda i: (-scores[i], -i)),
        "pessimistic": sorted(n, key=lambda i: (-scores[i], grades[i])),
        "optimistic": sorted(n, key=lambda i: (-scores[i], -grades[i])),
    }
    for rule, order in rules.items():
        for spelling, plain in PLAIN.items():
            if spelling == "wta" and len(set(grades)) == 1:
                continue
            written = f"{spelling},ties={rule}" if ":" in spelling else f"{spelling}:ties={rule}"
            expected = plain([grades[i] for i in order])
            assert value(written, scores, grades) == pytest.approx(expected, rel=1e-12, abs=1e-14), written


def test_document_ids_break_ties_greatest_first_after_rounding_to_float32() -> None:
    queries = Queries.from_arrays(np.zeros((3, 1)), [0, 1, 0], document_ids=["d1", "d3", "d2"])
    metric = parse_metric("mrr:ties=docid")
    assert metric.mean(np.zeros(3), queries) == 1.0
    assert metric.mean(np.array([1.0 + 1e-12, 1.0, 1.0 + 2e-12]), queries) == 1.0  # equal as float32
    assert metric.mean(np.array([0.0, 0.0, 1.0]), queries) == 0.5
    numbered = Queries.from_arrays(np.zeros((2, 1)), [0, 1], document_ids=[10, 9])
    assert metric.mean(np.zeros(2), numbered) == 1.0  # ids are compared as text
    with pytest.raises(DataError, match="these documents have none"):
        metric.mean(np.zeros(2), Queries.from_arrays(np.zeros((2, 1)), [0, 1]))


@settings(max_examples=60, deadline=None)
@given(small_query)
def test_pairwise_accuracy_equals_brute_force(query: tuple[list[float], list[float]]) -> None:
    scores, grades = query
    pairs = [(a, b) for a, b in itertools.permutations(range(len(grades)), 2) if grades[a] > grades[b]]
    for ties, tied in (("average", 0.5), ("pessimistic", 0.0), ("optimistic", 1.0)):
        got = value(f"pairwise:ties={ties}", scores, grades)
        if not pairs:
            assert np.isnan(got)
            continue
        right = [1.0 if scores[a] > scores[b] else tied * (scores[a] == scores[b]) for a, b in pairs]
        assert got == pytest.approx(np.mean(right), rel=1e-14)


@pytest.mark.parametrize("spread", [0.3, 3.0, 1e6])
def test_kendall_and_pairwise_equal_scipy_and_counting_on_long_queries(spread: float) -> None:
    generator = np.random.default_rng(int(spread))
    lengths = np.array([2, 17, 300, 33])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = np.round(generator.normal(size=starts[-1]) * spread)
    grades = np.round(scores / spread + generator.normal(size=starts[-1]), 1)  # negative and fractional are fine here
    judgements = Judgements(grades, starts)
    kendall = parse_metric("kendall").per_query(scores, judgements)
    pairwise = parse_metric("pairwise").per_query(scores, judgements)
    for q, (a, b) in enumerate(itertools.pairwise(starts)):
        s, y = scores[a:b], grades[a:b]
        tau = stats.kendalltau(s, y).statistic if len(set(s)) > 1 else 0.0
        assert kendall[q] == pytest.approx(tau, abs=1e-12)
        better = y[:, None] > y[None, :]
        right = (s[:, None] > s[None, :]) + 0.5 * (s[:, None] == s[None, :])
        assert pairwise[q] == pytest.approx(right[better].mean(), rel=1e-12)


# --- laws, on longer random queries ---


@pytest.fixture(scope="module")
def random_queries() -> Queries:
    generator = np.random.default_rng(7)
    lengths = generator.integers(1, 120, 40)
    grades = generator.integers(0, 5, lengths.sum()).astype(float)
    qid = np.repeat(np.arange(40), lengths)
    grades[qid % 7 == 3] = 0.0
    return Queries.from_arrays(np.zeros((len(qid), 1)), grades, qid=qid)


@pytest.fixture(scope="module")
def tied_scores(random_queries: Queries) -> np.ndarray:
    return np.round(np.random.default_rng(8).normal(size=random_queries.n_documents), 1)


@pytest.mark.parametrize(
    "spelling", [*EVERY, "ndcg@10:letor", "map@60", "ndcg@50:ties=pessimistic", "map:ties=threshold"]
)
class TestEveryMetric:
    def test_only_the_order_of_scores_matters(
        self, spelling: str, random_queries: Queries, tied_scores: np.ndarray
    ) -> None:
        metric = parse_metric(spelling)
        before = metric.per_query(tied_scores, random_queries)
        assert np.array_equal(
            before, metric.per_query(np.exp(3.0 * tied_scores) - 50.0, random_queries), equal_nan=True
        )

    def test_is_within_its_bounds_and_moves_with_the_scores(
        self, spelling: str, random_queries: Queries, tied_scores: np.ndarray
    ) -> None:
        metric = parse_metric(spelling)
        values = metric.per_query(tied_scores, random_queries)
        assert values.shape == (random_queries.n_queries,)
        known = values[~np.isnan(values)]
        assert len(known) > 30 - (metric.name == "kendall")
        assert (known >= (-1 if metric.name == "kendall" else 0)).all()
        assert metric.name == "dcg" or (known <= 1).all()
        assert metric.mean(tied_scores, random_queries) == pytest.approx(known.mean(), rel=1e-14)
        assert metric.mean(random_queries.grades, random_queries) > metric.mean(-random_queries.grades, random_queries)

    def test_scores_with_infinities_are_scores(self, spelling: str, random_queries: Queries) -> None:
        metric = parse_metric(spelling)
        scores = np.where(random_queries.grades > 2, np.inf, np.where(random_queries.grades > 1, 0.0, -np.inf))
        finite = np.where(random_queries.grades > 2, 1.0, np.where(random_queries.grades > 1, 0.0, -1.0))
        expected = metric.per_query(finite, random_queries)
        assert np.array_equal(metric.per_query(scores, random_queries), expected, equal_nan=True)


@pytest.mark.parametrize("spelling", [*EVERY, "map:ties=threshold", "ndcg@40", "map@50"])
def test_the_order_of_documents_within_a_query_does_not_matter(
    spelling: str, random_queries: Queries, tied_scores: np.ndarray
) -> None:
    generator = np.random.default_rng(9)
    starts = random_queries.starts
    shuffled = np.concatenate([a + generator.permutation(b - a) for a, b in itertools.pairwise(starts)])
    metric = parse_metric(spelling)
    expected = metric.per_query(tied_scores, random_queries)
    got = metric.per_query(tied_scores[shuffled], Judgements(random_queries.grades[shuffled], starts))
    assert np.allclose(got, expected, rtol=1e-12, atol=0, equal_nan=True)


def test_cutoffs_on_both_sides_of_the_sorting_methods_agree_with_numpy() -> None:
    generator = np.random.default_rng(3)
    lengths = np.array([1, 15, 16, 17, 32, 33, 64, 65, 257, 1000])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores, tiebreak = (
        np.round(generator.normal(size=starts[-1]), 1),
        generator.integers(0, 3, starts[-1]).astype(float),
    )
    for k in (1, 5, 32, 33, 1000):
        plain, broken = rank(scores, np.zeros(0), starts, k), rank(scores, tiebreak, starts, k)
        for a, b in itertools.pairwise(starts):
            top = min(k, b - a)
            assert np.array_equal(plain[a : a + top], a + np.argsort(-scores[a:b], kind="stable")[:top])
            assert np.array_equal(broken[a : a + top], a + np.lexsort((-tiebreak[a:b], -scores[a:b]))[:top])


# --- what is remembered and compiled ---


def test_judgements_are_remembered_while_the_queries_live(random_queries: Queries) -> None:
    assert Judgements.of(random_queries) is Judgements.of(random_queries)
    assert Judgements.of(random_queries).ideal("exp2", "log2", 10) is Judgements.of(random_queries).ideal(
        "exp2", "log2", 10
    )
    same = random_queries.select(np.arange(random_queries.n_queries))
    assert Judgements.of(same) is not Judgements.of(random_queries)


def test_data_mapped_from_files_do_not_recompile_the_kernels(tmp_path: Path, random_queries: Queries) -> None:
    scores = np.random.default_rng(11).normal(size=random_queries.n_documents)
    for name, array in (("grades", random_queries.grades), ("starts", random_queries.starts), ("scores", scores)):
        np.save(tmp_path / f"{name}.npy", array)
    grades, starts, mapped = (np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("grades", "starts", "scores"))
    for spelling in EVERY:
        metric = parse_metric(spelling)
        expected = metric.per_query(scores, random_queries)
        assert np.array_equal(metric.per_query(mapped, Judgements(grades, starts)), expected, equal_nan=True)
        assert np.array_equal(metric.per_query(scores[::-1][::-1], random_queries), expected, equal_nan=True)
    called: tuple[str, ...] = ("_select", "_sort", "discounted_sums", "mean_normalised_sums", "precision_sums")
    called += ("reciprocal_ranks", "pair_counts", "expected_reciprocal_ranks", "dominating_counts")
    compiled = {name: len(getattr(metric_kernels, name).machine.nopython_signatures) for name in called}
    assert compiled == dict.fromkeys(called, 1)


def test_metrics_of_the_same_queries_do_not_disturb_each_other(
    random_queries: Queries, tied_scores: np.ndarray
) -> None:
    more = ["ndcg@3:gain=linear", "ndcg@3:discount=letor", "ndcg@5", "map:relevant=2", "mrr:ties=reverse"]
    shared = Judgements(random_queries.grades, random_queries.starts)
    for spelling in [*EVERY, *more, *EVERY]:
        alone = Judgements(random_queries.grades, random_queries.starts)
        metric = parse_metric(spelling)
        got, expected = metric.per_query(tied_scores, shared), metric.per_query(tied_scores, alone)
        assert np.array_equal(got, expected, equal_nan=True), spelling
