"""The finished study as a person sees it."""

from typing import Any

from ranktune.dashboards.records.choice import tuning_gained
from ranktune.dashboards.terminal.leaderboard import compositions, report
from tests.support.commands import printed


def row(solver: str, vali: float, p_holm: float | None, **other: Any) -> dict[str, Any]:
    verdict = "chosen" if p_holm is None else "not told apart" if p_holm > 0.05 else "worse"
    base = {
        "solver": solver, "params": {"C": 0.123456}, "vali": vali, "vali_interval": [vali - 0.1, vali + 0.1],
        "again": None, "test": 0.5, "test_interval": [0.45, 0.55], "p_holm": p_holm, "nonzeros": 29.0,
        "verdict": verdict, "bytes": 348.0, "microseconds": 0.004,
        "seconds": 0.1, "trials": 5,
    }  # fmt: skip
    return base | other


def shown(result: dict[str, Any], width: int = 120) -> str:
    return printed(report(result), width)


def result(**other: Any) -> dict[str, Any]:
    rows = [row("RankSVM", 0.6, None), row("RidgeRanker", 0.55, 0.4), row("BestFeature", 0.3, 0.001, nonzeros=None)]
    base = {
        "study": "s", "metric": "ndcg@10", "leaderboard": rows, "best": rows[0] | {"test_metrics": {"ndcg@10": 0.5}},
        "estimate": 0.52, "estimate_interval": [0.42, 0.62], "expected_on_test_interval": [0.38, 0.66],
        "alternatives": {"smallest": "RidgeRanker", "fastest": "RankSVM", "knee": "BestFeature"},
        "trials": 30, "failures": [], "seconds": 75.0, "model": "runs/s/model.json",
    }  # fmt: skip
    return base | other


def test_rows_intervals_and_conclusion() -> None:
    text = shown(result())
    assert "0.5000 [0.450, 0.550]" in text
    assert "Chosen by validation: RankSVM (C=0.1235)." in text
    assert "Not significantly different (Holm, 0.05): RidgeRanker." in text
    assert "Among these and the chosen model, RidgeRanker is the smallest, RankSVM the fastest." in text
    assert "Expected ndcg@10 by validation, corrected for selection: 0.5200 (0.420 to 0.620)." in text
    assert "the interval expected by validation" not in text
    assert "30 trials in 1 min 15 s. Model: runs/s/model.json" in text
    first_words = [line.strip("> ").split()[0] for line in text.splitlines() if line.endswith("5  ")]
    assert first_words == ["RankSVM", "RidgeRanker", "BestFeature"]


def test_the_chosen_row_is_marked_and_a_higher_number_is_explained() -> None:
    assert [line[0] for line in shown(result()).splitlines()[4:7]] == [">", " ", " "]
    assert "was not chosen" not in shown(result()) and "Higher on test" not in shown(result())
    blend, better = row("Blend", 0.6, None), row("LambdaMART", 0.61, 0.4, test=0.52)
    text = " ".join(shown(result(leaderboard=[blend, better], set_aside="The best was set aside.")).split())
    assert "LambdaMART has a higher vali (0.6100 against 0.6000), and was not chosen: cross-validation does not" in text
    assert "The best was set aside. Higher on test, which takes no part in the choice: LambdaMART." in text
    again = [row("RankSVM", 0.6, None, again=0.55), row("ListNet", 0.61, 0.4, again=0.54)]
    assert "ListNet has a higher vali, and was not chosen: again decides" in shown(result(leaderboard=again), 200)
    unserved = [row("RankSVM", 0.6, None), row("ListNet", 0.61, 0.4, is_served=False)]
    assert "not chosen: a system that the study serves cannot load it" in shown(result(leaderboard=unserved), 200)
    assert "each fold chose by its own" in shown(
        result(leaderboard=[blend, better], folds=[{"name": "f", "best": blend}])
    )


def test_a_negative_gain_of_tuning_is_explained() -> None:
    def said(gain: float, low: float, high: float) -> str:
        return tuning_gained({"tuning": {"default": "RankSVM", "gain": gain, "gain_interval": [low, high]}})

    assert "did not help" not in said(0.01, -0.01, 0.03)
    assert "the interval holds 0, the defaults are as good; what validation chose" in said(-0.01, -0.03, 0.01)
    assert "on these test queries the defaults are better; what validation chose" in said(-0.02, -0.03, -0.01)


def test_a_narrow_terminal_gets_the_columns_that_fit() -> None:
    rows = [row | {"again": 0.5} for row in result()["leaderboard"]]
    heads = {width: shown(result(leaderboard=rows), width).splitlines()[2].split() for width in (120, 80, 60)}
    assert heads[120][0] == "solver" and heads[120][-1] == "trials"
    assert heads[80] == ["solver", "vali", "again", "test", "[95%]", "p", "Holm", "features"]
    assert heads[60] == ["solver", "vali", "test", "[95%]", "p", "Holm"]
    assert all(len(line) <= 80 for line in shown(result(), 80).splitlines())
    assert "RankSVM       0.6000" in shown(result(), 80) and "0.5000 [0.450, 0.550]" in shown(result(), 80)


def test_a_column_without_values_is_left_out() -> None:
    assert shown(result(), 80).splitlines()[2].split() == [
        *["solver", "vali", "test", "[95%]", "p", "Holm", "features", "trials"]
    ]


def test_names_are_text_not_markup() -> None:
    assert "[red]x[/red]" in shown(result(study="[red]x[/red]"))


def test_without_test_queries_it_says_so() -> None:
    bare = row("RankSVM", 0.6, None, test=None, test_interval=None)
    text = shown(result(leaderboard=[bare], best=bare | {"test_metrics": {}}))
    assert "There are no test queries" in text


def test_failures_are_listed() -> None:
    text = shown(result(failures=[{"solver": "A", "error": "x"}, {"solver": "B", "error": "ValueError: no"}]))
    assert "2 trials failed, the last (B) with: ValueError: no" in text


def test_folds_are_listed() -> None:
    folds = [{"name": f"Fold{k}", "best": row("RankSVM", 0.6, None)} for k in (1, 2)]
    text = shown(result(folds=folds))
    assert "chosen model of each fold" in text
    assert "Fold2" in text


def test_a_test_value_outside_of_its_interval_is_remarked() -> None:
    assert "below the interval expected by validation (0.600 to 0.700)" in shown(
        result(expected_on_test_interval=[0.6, 0.7], estimate=0.65)
    )


def test_a_blend_has_no_score_of_trials() -> None:
    rows = [row("RankSVM", 0.6, None), row("Blend", 0.6, 0.4, trials=0) | {"vali": None, "vali_interval": None}]
    (line,) = [line for line in shown(result(leaderboard=rows)).splitlines() if line.split()[:1] == ["Blend"]]
    assert line.split()[1] == "-"
    assert line.split()[-1] == "-"


def test_how_trials_ended_where_not_all_were_evaluated_in_full() -> None:
    failures = [
        {"split": "", "number": 3, "solver": "RankSVM", "error": "no"},
        {"split": "", "number": None, "solver": "RankSVM", "error": "not refitted"},  # no trial
    ]
    assert "30 trials (19 evaluated in full, 10 stopped early, 1 failed) in" in shown(
        result(stopped=10, failures=failures)
    )
    assert "30 trials (18 evaluated in full, 12 stopped early) in" in shown(result(stopped=12))


def test_what_ranker_was_composed_of_is_counted_over_folds() -> None:
    newton = {"loss": "pairwise_hinge", "pair_weight": "uniform", "penalty": "l2", "optimizer": "newton", "l2": 0.1}
    sparse = {"loss": "softmax", "penalty": "l1", "optimizer": "owlqn", "l1": 0.1}
    splits = [{"leaderboard": [{"solver": "RankSVM", "params": {}}, {"solver": "Ranker", "params": row}]} for row in
              (newton, sparse, newton)]  # fmt: skip
    assert compositions(splits[1]) == "Ranker does best composed of softmax + l1 + owlqn."
    assert compositions({"folds": splits}) == (
        "Ranker does best composed of pairwise_hinge + uniform + l2 + newton on 2, softmax + l1 + owlqn on 1 folds."
    )
    assert compositions({"leaderboard": [{"solver": "RankSVM", "params": {}}]}) == ""


def test_the_gain_of_tuning_is_that_on_test_or_none() -> None:
    gain = {"default": "RankSVM", "gain": -0.002, "gain_interval": [-0.004, 0.001], "p_value": 0.3}
    text = shown(result(tuning=gain))
    assert "Gain of tuning on test: -0.0020 (-0.0040 to +0.0010) over the best of the solvers' defaults" in text
    assert "Gain of tuning: none" in shown(result(tuning=gain | {"gain": None, "gain_interval": None}))
    assert "Gain of tuning" not in shown(result())
