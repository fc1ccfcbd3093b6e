"""Metrics: brute force over tie orders, other libraries, laws, spelling, and what bad input gets."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktune.solvers import metric_kernels
from ranktune.solvers.errors import DataError, ParameterError
from ranktune.solvers.gains import discounts, gains
from ranktune.solvers.judgements import Judgements
from ranktune.solvers.metric_kernels import rank
from ranktune.solvers.metric_presets import MEASURES, PRESETS
from ranktune.solvers.metrics import Metric, parse_metric
from ranktune.solvers.queries import Queries

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
EVERY += ("precision@2", "precision@4:short=cut", "recall@3", "wta", "pairwise", "kendall")
BY_TIES = tuple(spelling for spelling in EVERY if spelling not in ("pairwise", "kendall"))


def one_query(grades: Any) -> Judgements:
    grades = np.asarray(grades, dtype=float)
    return Judgements(grades, np.array([0, len(grades)]))


def value(spelling: str, scores: Any, grades: Any) -> float:
    return float(parse_metric(spelling).per_query(np.asarray(scores, dtype=float), one_query(grades))[0])


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
    "wta": lambda g: float(g[0] == max(g)),
}


def orders(scores: list[float]) -> list[tuple[int, ...]]:
    """Every order of the documents that the scores allow, each as likely as the others."""
    return [
        o
        for o in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(o))
    ]


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
    with pytest.raises(DataError, match="document_ids="):
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
    judged = Judgements(grades, starts)
    kendall = parse_metric("kendall").per_query(scores, judged)
    pairwise = parse_metric("pairwise").per_query(scores, judged)
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


@pytest.mark.parametrize("ties", ["average", "pessimistic", "input"])
@pytest.mark.parametrize("name", ["ndcg@3", "ndcg", "mean-ndcg", "map", "map@5", "mrr", "wta", "pairwise"])
def test_the_perfect_ranking_gets_one(name: str, ties: str, random_queries: Queries) -> None:
    if name == "pairwise" and ties == "input":
        return
    values = parse_metric(f"{name}:ties={ties}").per_query(random_queries.grades, random_queries)
    assert np.isnan(values).any() and np.allclose(values[~np.isnan(values)], 1.0, rtol=0, atol=1e-12)


def test_pessimistic_average_and_optimistic_are_in_that_order(random_queries: Queries, tied_scores: np.ndarray) -> None:
    for name in ("ndcg@5", "map", "mrr", "precision@3", "recall@3", "wta", "pairwise", "mean-ndcg"):
        low, middle, high = (
            parse_metric(f"{name}:ties={t},empty=0").per_query(tied_scores, random_queries)
            for t in ("pessimistic", "average", "optimistic")
        )
        assert (low <= middle + 1e-12).all() and (middle <= high + 1e-12).all() and (low < high).any()


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


# --- rules ---


def test_queries_without_anything_to_rank_are_skipped_or_counted() -> None:
    judged = Judgements(np.array([0.0, 0, 0, 2, 1]), np.array([0, 3, 5]))
    scores = np.arange(5.0)
    for name in ("ndcg@2", "dcg", "mean-ndcg", "map", "mrr", "precision@1", "recall@1", "wta", "pairwise", "kendall"):
        assert np.isnan(parse_metric(name).per_query(scores, judged)).tolist() == [True, False]
        assert parse_metric(f"{name}:empty=0").per_query(scores, judged)[0] == 0.0
        assert parse_metric(f"{name}:empty=1").per_query(scores, judged)[0] == 1.0
        with pytest.raises(DataError, match="empty=0"):
            parse_metric(name).mean(scores[:3], one_query([0, 0, 0]))


def test_short_queries() -> None:
    assert value("ndcg@3", [2, 1], [1, 0]) == 1.0
    assert value("ndcg@3:short=0", [2, 1], [1, 0]) == 0.0
    assert value("ndcg@2:short=0", [2, 1], [1, 0]) == 1.0
    assert value("precision@4", [2, 1], [1, 0]) == 1 / 4
    assert value("precision@4:short=cut", [2, 1], [1, 0]) == 1 / 2
    assert value("precision@4:short=0", [2, 1], [1, 0]) == 0.0


def test_gain_discount_and_relevance_are_what_they_say() -> None:
    assert value("dcg:gain=linear", [3, 2, 1], [0.5, 2.0, 0.0]) == pytest.approx(0.5 + 2 / np.log2(3))
    assert value("dcg:discount=letor", [3, 2, 1], [1, 1, 1]) == pytest.approx(1 + 1 + 1 / np.log2(3))
    assert value("precision@3:relevant=2", [3, 2, 1], [1, 2, 3]) == pytest.approx(2 / 3)
    assert value("mrr:relevant=2.5", [3, 2, 1], [1, 2, 3]) == pytest.approx(1 / 3)


def test_all_scores_equal_have_no_correlation_but_are_not_skipped() -> None:
    assert value("kendall", [1, 1, 1], [0, 1, 2]) == 0.0


def test_judgements_are_remembered_while_the_queries_live(random_queries: Queries) -> None:
    assert Judgements.of(random_queries) is Judgements.of(random_queries)
    assert Judgements.of(random_queries).ideal("exp2", "log2", 10) is Judgements.of(random_queries).ideal(
        "exp2", "log2", 10
    )
    same = random_queries.select(np.arange(random_queries.n_queries))
    assert Judgements.of(same) is not Judgements.of(random_queries)


def test_data_mapped_from_files_do_not_compile_the_kernels_again(tmp_path: Path, random_queries: Queries) -> None:
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
    called += ("reciprocal_ranks", "pair_counts", "dense_levels")
    compiled = {name: len(getattr(metric_kernels, name).nopython_signatures) for name in called}
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


# --- bad input ---


@pytest.mark.parametrize(
    ("spelling", "grades", "message"),
    [
        ("ndcg", [0, 31], "exp2.*at most 30.*gain=linear"),
        ("ndcg", [0, -1], "exp2.*at least 0.*Add"),
        ("dcg:gain=linear", [0, -1], "linear.*at least 0"),
        ("ndcg@5", [0, 0.5], "exp2.*whole.*gain=linear"),
    ],
)
def test_grades_that_the_gain_cannot_take(spelling: str, grades: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        value(spelling, [1, 2], grades)


def test_grades_that_are_fine() -> None:
    assert value("ndcg", [1, 2], [0, 30]) == 1.0
    assert value("ndcg:gain=linear", [1, 2], [0.25, 31]) == 1.0
    assert value("pairwise", [1, 2], [-0.5, 1e300]) == 1.0


@pytest.mark.parametrize(
    "scores", [np.array([1.0, np.nan]), np.zeros(3), np.zeros((2, 1))], ids=["nan", "long", "column"]
)
def test_scores_that_cannot_be_ranked(scores: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"scores have shape|NaN"):
        parse_metric("ndcg").per_query(scores, one_query([0, 1]))


def test_judgements_refuse_grades_that_are_not_finite_and_wrong_starts() -> None:
    with pytest.raises(DataError, match="finite"):
        one_query([0, np.nan])
    for starts in ([0, 3], [0, 0, 2], [1, 2], [0]):
        with pytest.raises(DataError, match="starts"):
            Judgements(np.zeros(2), np.array(starts))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "'ndcg'"),
        ("", "Known"),
        ("ndcg@0", "at least 1"),
        ("ndcg@-3", "whole number"),
        ("ndcg@", "whole number"),
        ("ndcg@1.5", "whole number"),
        ("precision", "precision@10"),
        ("pairwise@3", "takes no cutoff"),
        ("ndcg@10:leter", "'letor'"),
        ("kendall:letor", "no named convention"),
        ("mrr:letor", "ranklib"),
        ("ndcg:empty=0,letor", "letor"),
        ("ndcg:gian=linear", "'gain'"),
        ("ndcg:gain=linaer", "'linear'"),
        ("map:gain=linear", "no option 'gain'"),
        ("ndcg:empty=0,empty=1", "twice"),
        ("ndcg:short=0", "cutoff"),
        ("map:relevant=nan", "grade"),
        ("map:relevant=high", "grade"),
        ("pairwise:ties=input", "Known: average"),
    ],
)
def test_spellings_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_metric(text)


@pytest.mark.parametrize("bad", [None, 3, b"ndcg"])
def test_only_text_is_parsed(bad: Any) -> None:
    with pytest.raises(ParameterError, match="not a metric"):
        parse_metric(bad)


@pytest.mark.parametrize("at", [0, -1, 2.5, True, "3"])
def test_cutoffs_that_cannot_be(at: Any) -> None:
    with pytest.raises(ParameterError, match="at least 1"):
        Metric("ndcg", at)


# --- spelling ---


def every_metric() -> st.SearchStrategy[Metric]:
    def options(name: str, at: int | None, preset: str | None) -> st.SearchStrategy[Metric]:
        usable = {o: v for o, v in MEASURES[name].options.items() if at is not None or o not in ("short", "norm")}
        values = {
            o: st.none() | (st.sampled_from(v) if v else st.sampled_from(["1", "2", "0.5"])) for o, v in usable.items()
        }
        return st.fixed_dictionaries(values).map(lambda chosen: Metric(name, at, preset, **chosen))

    def cutoffs(name: str) -> st.SearchStrategy[Metric]:
        cutoff = MEASURES[name].cutoff
        at: st.SearchStrategy[int | None] = st.none() if cutoff == "none" else st.integers(1, 10**6)
        at = st.one_of(at, st.none()) if cutoff == "optional" else at
        preset = st.sampled_from([None, *(p for p in PRESETS if name in PRESETS[p])])
        return st.tuples(at, preset).flatmap(lambda pair: options(name, *pair))

    return st.sampled_from(sorted(MEASURES)).flatmap(cutoffs)


@settings(max_examples=200, deadline=None)
@given(every_metric())
def test_str_and_parse_are_inverse(metric: Metric) -> None:
    again = Metric.parse(str(metric))
    assert again == metric and hash(again) == hash(metric) and str(again) == str(metric)
    assert pickle.loads(pickle.dumps(metric)) == metric


def test_one_spelling_for_one_value() -> None:
    for text in ("NDCG@10", " ndcg@10 ", "ndcg@010", "ndcg@10:gain=exp2,ties=average", "ndcg@10:"):
        assert str(parse_metric(text)) == "ndcg@10"
    assert str(parse_metric("ndcg@10:letor,short=0,ties=input")) == "ndcg@10:letor"
    assert str(parse_metric("ndcg@10:empty=0,gain=linear")) == "ndcg@10:gain=linear,empty=0"
    assert str(parse_metric("mean_ndcg")) == "mean-ndcg"
    assert str(parse_metric("map:relevant=2.0")) == "map:relevant=2"
    assert parse_metric("ndcg@10:letor") != parse_metric("ndcg@10")
    assert parse_metric(Metric("ndcg", 10)) == Metric("ndcg", np.int64(10))  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ndcgmap@:,=0123 letorxyz-_é", max_size=20))
def test_any_text_is_a_metric_or_a_parameter_error(text: str) -> None:
    try:
        metric = parse_metric(text)
    except ParameterError as error:
        assert str(error)
    else:
        assert parse_metric(str(metric)) == metric


def test_gains_and_discounts() -> None:
    assert gains(np.array([0.0, 1, 2, 3])).tolist() == [0, 1, 3, 7]
    assert gains(np.array([0.0, 1.5]), "linear").tolist() == [0, 1.5]
    assert discounts(3).tolist() == pytest.approx([1, 1 / np.log2(3), 0.5])
    assert discounts(4, "letor").tolist() == pytest.approx([1, 1, 1 / np.log2(3), 0.5])
    assert len(discounts(0)) == 0
    with pytest.raises(ParameterError, match="'linear'"):
        gains(np.zeros(1), "liner")
    with pytest.raises(ParameterError, match="'letor'"):
        discounts(1, "leto")
