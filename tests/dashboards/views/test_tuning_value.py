"""The panel of the value of tuning: what it says of the gain on test."""

from collections.abc import Sequence
from dataclasses import replace

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.registry import build
from ranktune.tuner.selection.rows import TuningGain
from ranktune.tuner.statistics.measured import Interval
from tests.support.study_samples import concluded, keyed, study_data, trials_of

SOLVERS = ("LambdaRank", "RankSVM")
BUDGET = 30


def study_of(trials: Sequence[Trial]) -> StudyData:
    return study_data(trials, trials=BUDGET, sampler="thompson")


def panel_of(data: StudyData) -> Panel:
    return keyed(build("overview", data), "worth")


def test_a_finished_study_says_what_tuning_gained_on_test_and_none_where_it_did_not() -> None:
    data = study_of(trials_of(BUDGET))
    gain = TuningGain("RankSVM", Interval(0.0123, -0.001, 0.026), 0.07)
    finished = replace(data, result=concluded("s", tuning=gain))
    note = panel_of(finished).note
    assert note.startswith(
        "Gain of tuning on test: +0.0123 (-0.0010 to +0.0260) over the best of the solvers' defaults (RankSVM)."
    )
