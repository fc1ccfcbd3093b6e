"""Metrics: what the options of a spelling mean, what bad input gets, and how a metric is spelled."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.metrics.presets import MEASURES, PRESETS
from tests.support.metric_samples import one_query, value

# --- rules ---


def test_queries_without_anything_to_rank_are_skipped_or_counted() -> None:
    judgements = Judgements(np.array([0.0, 0, 0, 2, 1]), np.array([0, 3, 5]))
    scores = np.arange(5.0)
    for name in (
        "ndcg@2",
        "dcg",
        "mean-ndcg",
        "map",
        "mrr",
        "precision@1",
        "recall@1",
        "r-precision",
        "wta",
        "pairwise",
        "kendall",
        "err",
        "rbp",
        "domination",
    ):
        assert np.isnan(parse_metric(name).per_query(scores, judgements)).tolist() == [True, False]
        assert parse_metric(f"{name}:empty=0").per_query(scores, judgements)[0] == 0.0
        assert parse_metric(f"{name}:empty=1").per_query(scores, judgements)[0] == 1.0
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


# --- bad input ---


@pytest.mark.parametrize(
    ("spelling", "grades", "message"),
    [
        ("ndcg:gain=exp2", [0, 31], "exp2.*at most 30.*gain=linear"),
        ("ndcg:letor", [0, 31], "exp2.*at most 30.*gain=linear"),
        ("ndcg", [0, -1], "grade -1.*at least 0.*Add"),
        ("dcg:gain=linear", [0, -1], "at least 0"),
    ],
)
def test_grades_that_the_gain_cannot_take(spelling: str, grades: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        value(spelling, [1, 2], grades)


def test_grades_that_are_fine() -> None:
    assert value("ndcg", [1, 2], [0, 30]) == 1.0
    assert value("ndcg:gain=linear", [1, 2], [0.25, 31]) == 1.0
    assert value("ndcg:gain=exp2", [1, 2], [0.25, 3.5]) == 1.0
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
            o: st.none() | st.sampled_from(v or (["0.9", "0.5"] if o == "p" else ["1", "2", "0.5"]))
            for o, v in usable.items()
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
    parsed = parse_metric(str(metric))
    assert parsed == metric and hash(parsed) == hash(metric) and str(parsed) == str(metric)
    assert pickle.loads(pickle.dumps(metric)) == metric


def test_one_spelling_for_one_value() -> None:
    for text in ("NDCG@10", " ndcg@10 ", "ndcg@010", "ndcg@10:gain=auto,ties=average", "ndcg@10:"):
        assert str(parse_metric(text)) == "ndcg@10"
    assert str(parse_metric("ndcg@10:letor,short=0,ties=input")) == "ndcg@10:letor"
    assert str(parse_metric("ndcg@10:empty=0,gain=linear")) == "ndcg@10:gain=linear,empty=0"
    assert str(parse_metric("mean_ndcg")) == "mean-ndcg"
    assert str(parse_metric("map:relevant=2.0")) == "map:relevant=2"
    assert str(parse_metric("ndcg@10:gain=exp2")) == "ndcg@10:gain=exp2"
    assert str(parse_metric("ndcg@10:letor,gain=exp2")) == "ndcg@10:letor"
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
