"""The benchmarks of days: how the truth moves, and a small stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers import RidgeRanker
from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.benchmarks.days import stream
from ranktune.studies.benchmarks.days.generated import MOVES, SHARES, World, normal_pool, turn_of
from ranktune.studies.benchmarks.tables import Table


def test_the_truth_moves_as_its_name_says() -> None:
    turns = {move: [turn_of(move, day, 10) for day in range(10)] for move in MOVES}
    assert turns["none"] == [0.0] * 10 and turns["sudden"] == [0.0] * 5 + [1.0] * 5
    assert np.allclose(np.diff(turns["slow"]), 1 / 9) and turns["slow"][-1] == 1.0
    assert turns["seasonal"][0] == turns["seasonal"][7] == 0.0 and max(turns["seasonal"]) > 0.9


def test_a_day_has_new_documents_whose_grades_keep_their_shares_and_follow_the_truth() -> None:
    generator = np.random.default_rng(0)
    world = World.of(normal_pool(generator), 0)
    days = [world.day(turn, 400, generator) for turn in (0.0, 0.0, 1.0)]
    rows = [{row.tobytes() for row in np.asarray(day.features)} for day in days]
    assert len(rows[0] & rows[1]) < 0.02 * len(rows[0])
    for day in days:
        assert np.bincount(day.grades.astype(int)) / day.n_documents == pytest.approx(SHARES, abs=0.03)
    others = [world.day(turn, 400, generator, judging=True) for turn in (0.0, 1.0)]
    linear = [RidgeRanker().fit(day).score(other) for day, other in zip(days[1:], others, strict=True)]
    assert linear[0] > 0.85 > linear[1] + 0.05, "the truth is linear on the first day, and not at the end"


@pytest.mark.thorough
def test_a_small_stream(tmp_path: Path) -> None:
    def run() -> list[Table]:
        return stream.main(
            days=5, every=2, move=["sudden"], seeds=1, queries=60, test=100, trials=2, solver=["RidgeRanker"],
            keep=tmp_path / "streams.jsonl",
        )  # fmt: skip

    table, by_day = run()
    (row,) = table.rows
    means = {way: float(str(row[way])) for way in stream.WAYS}
    assert means[stream.ONCE] < means[stream.FULL] and means[stream.ONCE] < means[stream.DAILY]
    assert [each["day"] for each in by_day.rows] == [2, 4]
    assert means[stream.REFIT] == pytest.approx(np.mean([float(str(each[stream.REFIT])) for each in by_day.rows]))
    kept = (tmp_path / "streams.jsonl").read_bytes()
    assert run() == [table, by_day] and (tmp_path / "streams.jsonl").read_bytes() == kept, "it is not run again"
    with pytest.raises(ParameterError, match="sudden"):
        stream.main(move=["suden"])
