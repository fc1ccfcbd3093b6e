"""The finished study as a person sees it in the terminal."""

from dataclasses import replace
from typing import Any

from ranktune.dashboards.terminal.leaderboard import report
from ranktune.tuner.selection.results import Result
from tests.support.commands import printed
from tests.support.study_samples import concluded, row_of

ROWS = (row_of("RankSVM", 0), row_of("RidgeRanker", 1), row_of("BestFeature", 4, nonzeros=float("nan")))


def result(**more: Any) -> Result:
    return concluded("s", **{"leaderboard": ROWS} | more)


def shown(found: Result, width: int = 120, *, details: bool = False) -> str:
    return printed(report(found, details=details), width)


def test_rows_intervals_and_the_chosen_row() -> None:
    text = shown(result())
    assert "0.5000 [0.440, 0.560]" in text
    assert [line[0] for line in text.splitlines()[4:7]] == [">", " ", " "]
    assert [line.strip("> ").split()[0] for line in text.splitlines()[4:7]] == [row.solver for row in ROWS]


def test_names_are_text_not_markup() -> None:
    assert "[red]x[/red]" in shown(replace(result(), study="[red]x[/red]"))


def test_folds_are_listed() -> None:
    assert "Fold2" in shown(concluded("s", splits=("Fold1", "Fold2"))).partition("chosen model of each fold")[2]


def test_a_blend_has_no_score_of_trials() -> None:
    rows = (row_of("RankSVM"), row_of("Blend", 1, trials=0, vali=None))
    (line,) = [line for line in shown(result(leaderboard=rows)).splitlines() if line.split()[:1] == ["Blend"]]
    assert line.split()[1] == "-"
    assert line.split()[-1] == "-"


def test_a_ranking_without_a_model_has_no_size() -> None:
    rows = (row_of("RankSVM"), row_of("baseline", 1, bytes=float("nan")))
    assert "nan" not in shown(result(leaderboard=rows), 1000, details=True)
