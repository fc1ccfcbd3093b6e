"""Metrics by the names of papers and other tools."""

import re

import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.metrics.presets import ALIASES, ERROR_RATES, MEASURES, PRESETS, TREC_EVAL

SPELLINGS = {
    "p@10": "precision@10",
    "P@10": "precision@10",
    "Prec@10:cut": None,
    "prec@10": "precision@10",
    "R@100": "recall@100",
    "RR": "mrr",
    "rr@10": "mrr@10",
    "AP": "map",
    "MAP": "map",
    "NDCG@10": "ndcg@10",
    "nDCG@10": "ndcg@10",
    "ERR@20": "err@20",
    "err@10:highest=4": "err@10",
    "RBP": "rbp",
    "rbp:p=0.80": "rbp",
    "AUC": "auc",
    "P_10": "precision@10:trec_eval",
    "P.10": "precision@10:trec_eval",
    "p_10:relevant=2": "precision@10:trec_eval,relevant=2",
    "P_10:ties=average": "precision@10:trec_eval,ties=average",
    "P_10:letor": "precision@10:letor",
    "recall_100": "recall@100:trec_eval",
    "ndcg_cut_10": "ndcg@10:trec_eval",
    "ndcg_cut.10": "ndcg@10:trec_eval",
    "map_cut_100": "map@100:trec_eval",
    "recip_rank": "mrr:trec_eval",
    "recip_rank@10": "mrr@10:trec_eval",
    "Rprec": "r-precision:trec_eval",
    "rprec:relevant=2": "r-precision:trec_eval,relevant=2",
    "R-Precision": "r-precision",
    "Rprec@5": None,
    "bpref": None,
    "P_0": None,
    "P_": None,
    "p": None,
    "ndcg_cut": None,
}


@pytest.mark.parametrize("written", SPELLINGS)
def test_names_as_people_write_them(written: str) -> None:
    expected = SPELLINGS[written]
    if expected is None:
        with pytest.raises(ParameterError):
            parse_metric(written)
        return
    metric = parse_metric(written)
    assert str(metric) == expected and parse_metric(expected) == metric


@pytest.mark.parametrize(("written", "meant"), [("ndcg_10", "ndcg@10"), ("NDCG10", "ndcg@10"), ("prec-5", "prec@5")])
def test_a_wrong_name_is_answered_with_the_nearest(written: str, meant: str) -> None:
    with pytest.raises(ParameterError, match=f"Did you mean '{meant}'"):
        parse_metric(written)


def test_every_name_has_a_meaning() -> None:
    assert not set(ALIASES) & set(MEASURES) and not set(ERROR_RATES) & set(MEASURES)
    assert {*ALIASES.values(), *ERROR_RATES.values()} <= set(MEASURES)
    assert set(TREC_EVAL.values()) <= set(PRESETS["trec_eval"])


def test_what_needs_documents_without_judgments_is_refused_with_what_to_take_instead() -> None:
    with pytest.raises(
        ParameterError, match=r"not judged, and here these have grade 0.* 'Rprec' or 'map:trec_eval'"
    ) as info:
        parse_metric("BPref")
    for instead in re.findall("'(.*?)'", str(info.value)):
        assert parse_metric(instead).preset == "trec_eval"


@pytest.mark.parametrize("written", ["domination_error", "domination-error", "ALL-PAIRS-ERROR"])
def test_error_rates_are_refused_with_the_metric_to_maximise(written: str) -> None:
    with pytest.raises(ParameterError, match=r"write '(domination|pairwise)', which is 1 minus it"):
        parse_metric(written)
