"""What a finished study says: to use, to expect, its gain, what next; and what it must not say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from ranktune.command_line.options import exit_unless_better
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.selection.conclusion import gain_sentence
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.selection.rows import (
    MARGIN,
    Composition,
    Failure,
    Gain,
    TuningGain,
    alternatives,
    combined,
    is_as_good,
)
from ranktune.tuner.statistics.measured import Comparison, Interval
from tests.support.study_samples import concluded, row_of

OUTSIDE = "outside of 0.380 to 0.660"


def result(*rows: Any, **more: Any) -> Result:
    return concluded("s", leaderboard=rows or (row_of("RankSVM"), row_of("RidgeRanker", 1)), **more)


def said(found: Result) -> str:
    return " ".join((*found.conclusion.lines, *found.conclusion.details))


def test_the_chosen_model_with_its_parameters_and_its_file() -> None:
    chosen = row_of("RankSVM", params={"C": 0.123456}, bytes=1500.0)
    assert result(chosen).conclusion.use == "Use RankSVM (C=0.1235)."
    assert result(chosen).conclusion.next[0] == "Model: s/model.json (1.5 kB)"
    assert "no search engine can load it" in result(replace(chosen, needs_queries=True)).conclusion.use
    default = result(chosen, tuning=TuningGain("RankSVM", None, None))
    assert "Use RankSVM with its default settings: 19 further trials found nothing better." in default.conclusion.use
    assert "trial" not in replace(default, trials=1).conclusion.use


@pytest.mark.parametrize(
    ("test", "text"),
    [
        (0.5, "The test queries gave 0.500."),
        (
            0.7,
            "The test queries gave 0.700, outside of 0.380 to 0.660: they are easier than the rest. Plan with 0.480.",
        ),
        (
            0.2,
            "The test queries gave 0.200, outside of 0.380 to 0.660: they are harder than the rest. Plan with 0.200.",
        ),
    ],
)
def test_one_number_to_plan_with(test: float, text: str) -> None:
    found = result(expected_on_test=Interval(0.48, 0.38, 0.66), test_metrics={"ndcg@10": test})
    assert found.conclusion.expect == f"Expect ndcg@10 of 0.480 on new queries (0.430 to 0.530), by validation. {text}"


def test_without_test_queries_or_an_estimate_it_says_so() -> None:
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    assert result(test_metrics={}, estimate=unknown).conclusion.expect == (
        "What ndcg@10 to expect on new queries is not known. There are no test queries."
    )


def test_a_baseline_is_named_from_the_data() -> None:
    assert "such as baseline='column:bm25'." in result(baselines=("bm25",)).conclusion.gain
    assert 'such as baseline="column:a\'s".' in result(baselines=("a's",)).conclusion.gain


def test_evidence_is_combined_by_its_precision() -> None:
    """An interval of half the width counts four times."""
    found = combined(Interval(0.01, 0.0, 0.02), Interval(0.06, 0.04, 0.08), Interval(0.0, 0.0, 0.0), None)
    assert found is not None
    assert (found.mean, found.high - found.mean) == pytest.approx((0.02, 0.01 * 0.8**0.5))


def test_absence_of_evidence_is_no_advice() -> None:
    """Twelve queries cannot tell a model that is much worse; validation can."""
    unclear = row_of("BestFeature", 1, difference=Interval(-0.05, -0.2, 0.1), bytes=8.0)
    found = result(row_of("Blend"), unclear, test_queries=12)
    assert not is_as_good(unclear) and "smallest" not in found.alternatives and "as good (" not in said(found)
    assert "12 test queries are too few to tell it apart from BestFeature." in found.conclusion.next
    assert "no proof that they are as good: BestFeature" in said(found)
    worse = replace(unclear, validated=Interval(-0.13, -0.15, -0.11))
    assert not is_as_good(worse)
    close = replace(unclear, validated=Interval(0.0, -0.004, 0.004))
    assert is_as_good(close) and not is_as_good(close, margin=0.001) and MARGIN == 0.01
    assert alternatives((row_of("Blend"), close))["smallest"] == "BestFeature"
    assert any("BestFeature is shown to be as good" in line for line in result(row_of("Blend"), close).conclusion.next)
    assert not is_as_good(replace(close, verdict="worse"))


def test_how_many_queries_would_do() -> None:
    """200 (.05 ** 2 / .02 ** 2 - 1) = 1,050, to two digits."""
    (line,) = [line for line in result(queries=200).conclusion.next if "judged" in line]
    assert line == "About 1,100 more judged queries would tell ndcg@10 to within 0.02."


def test_a_higher_number_that_was_not_chosen_is_explained() -> None:
    assert "was not chosen" not in said(result()) and "Higher on test" not in said(result())
    better = row_of("LambdaMART", 1, vali=Interval(0.61, 0.6, 0.62), test=Interval(0.52, 0.5, 0.54))
    text = said(result(row_of("Blend"), better, set_aside="The best was set aside."))
    assert "LambdaMART has a higher vali (0.6100 against 0.5000), and was not chosen: cross-validation does not" in text
    assert (
        "The best was set aside." in text and "Higher on test, which takes no part in the choice: LambdaMART." in text
    )
    unserved = replace(better, is_served=False)
    assert "not chosen: a system that the study serves cannot load it" in said(result(row_of("RankSVM"), unserved))


def test_a_negative_gain_of_tuning_is_explained() -> None:
    def of(mean: float, low: float, high: float) -> str:
        return said(result(tuning=TuningGain("RankSVM", Interval(mean, low, high), 0.01 if high < 0.0 else 0.1)))

    assert "chance" not in of(0.01, -0.01, 0.03)
    assert "That can be chance; what validation chose" in of(-0.01, -0.03, 0.01)
    assert "on these test queries the defaults are better; what validation chose" in of(-0.02, -0.03, -0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_words_agree_with_the_interval_and_with_p(sign: float) -> None:
    """Better and worse need both: neither of them is said beside a p above 0.05, or an interval that holds 0."""
    ends = [(low, p, low > 0.0 and p <= 0.05) for low in (0.001, -0.001) for p in (0.0543, 0.0457)]
    for low, p, is_shown in ends:
        first, last = sorted((sign * low, sign * 0.04))
        measured = Comparison(0.02 * sign, first, last, p, p, p, 0.1, 9, 1, 3, queries=13)
        sentence = gain_sentence(Gain("column:bm25", "test", measured))
        assert sentence.startswith(f"It is {'better' if sign > 0 else 'worse'} than") == is_shown
        assert sentence.startswith("It is not shown to be better than") == (not is_shown)
        tuned = said(result(tuning=TuningGain("RankSVM", Interval(0.02 * sign, first, last), p)))
        assert ("the defaults are better" in tuned) == (is_shown and sign < 0)
        found = measured.as_dict()
        if is_shown and sign > 0:
            exit_unless_better(found)
        else:
            with pytest.raises(typer.Exit):
                exit_unless_better(found)


def test_failures_and_early_stopping_are_counted() -> None:
    failures = (Failure("", 3, "RankSVM", "no"), Failure("", None, "RankSVM", "not refitted"))
    text = said(result(stopped=10, failures=failures))
    assert "20 trials (9 evaluated in full, 10 stopped early, 1 failed)." in text
    assert "2 trials failed, the last (RankSVM) with: not refitted" in text


def test_the_best_composition_is_named_where_enough_were_tried() -> None:
    newton = Composition("pairwise_hinge + uniform + l2 + newton", 8, 6, Interval(0.02, 0.01, 0.03))
    sparse = Composition("softmax + l1 + owlqn", 12, 9, Interval(0.04, 0.03, 0.05))
    splits = [result(composition=each) for each in (newton, sparse, newton)]
    text = "12 configurations of Ranker, in 9 compositions, softmax + l1 + owlqn is best: by validation +0.0400 ("
    assert f"{text}+0.0300 to +0.0500) against the first." in said(splits[1])
    assert "configurations of Ranker" not in said(result(composition=replace(newton, tried=7)))
    assert "pairwise_hinge + uniform + l2 + newton is best." in said(result(composition=replace(newton, lead=None)))
    over = said(replace(splits[0], composition=None, folds=tuple(splits)))
    assert (
        "in 21 compositions, pairwise_hinge + uniform + l2 + newton on 2, softmax + l1 + owlqn on 1 folds is best"
        in over
    )
    assert "+0.0267" in over  # of equal widths the mean


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = concluded("s", splits=("Fold1", "Fold2"), tuning=TuningGain("RankSVM", Interval(0.1, 0.0, 0.2), 0.03))
    found.save(tmp_path / "result.json")
    assert load_result(tmp_path / "result.json") == found
    values = json.loads((tmp_path / "result.json").read_text())
    assert values["conclusion"]["use"] == found.conclusion.use
    (tmp_path / "newer.json").write_text(json.dumps(values | {"version": values["version"] + 1}))
    with pytest.raises(StudyError, match="of a newer RankTune"):
        load_result(tmp_path / "newer.json")
