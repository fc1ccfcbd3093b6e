"""Passes from day to day: each configuration learns on as alone, nothing grows, and a killed day can be resumed."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.one_pass import tuning
from ranktune.tuner.one_pass import tuning as checkpoint
from ranktune.tuner.one_pass.result import Look
from ranktune.tuner.one_pass.tuning import OnePassTuning
from tests.support.pass_samples import linear_queries

METRIC, QUERIES, COUNT = parse_metric("ndcg@5"), 200, 6


def day_of(day: int) -> Queries:
    return linear_queries(QUERIES, day)


def days_in(folder: Path, days: int, looks: list[Look] | None = None) -> Iterator[OnePassTuning]:
    """Passes of one day after the other, yielded before they run."""
    before = None
    for day in range(days):
        path = folder / f"{day}.npz"
        yield (one := OnePassTuning(day_of(day), METRIC, (), COUNT, 4, 0, path, looks=looks, after=before))
        one.run()
        one.save()
        before = path


def test_configurations_learn_on_as_they_would_alone(tmp_path: Path) -> None:
    passes = list(days_in(tmp_path, 3, [Look(QUERIES, QUERIES // 2, COUNT, fresh=False)]))
    last = [entry for entry in passes[-1].run().entries if not entry.end]
    assert {entry.earlier for entry in last} >= {0, 2 * QUERIES}
    assert {entry.solver for entry in last if entry.earlier == 2 * QUERIES} == {"ElasticRank", "SOLAR1"}
    for entry in last:
        assert (entry.joined, entry.queries) == (0, QUERIES)
        if entry.earlier == 2 * QUERIES:  # the others have the scales of the first day, which they have not seen
            alone = entry.configuration.ranker()
            scores = [alone.progressive(day_of(day)) for day in range(3)]
            weights = passes[-1].learners.weights()[passes[-1].learners.numbers.index(entry.number)]
            np.testing.assert_allclose(weights, alone.coef_, rtol=1e-4, atol=1e-6)
            assert entry.mean == pytest.approx(np.nanmean(METRIC.per_query(scores[-1], day_of(2))), abs=1e-4)


def test_nothing_grows_from_day_to_day(tmp_path: Path) -> None:
    peaks, files, seen = list[int](), list[int](), set[int]()
    for day, one in enumerate(days_in(tmp_path, 12)):
        assert len(one.learners.numbers) == COUNT
        new = set(one._entries) - seen
        assert len(new) == (COUNT if day == 0 else COUNT - len(set(one._entries) & seen)), "numbers are not used again"
        tracemalloc.start()
        one.run()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        seen |= set(one._entries)
        files.append(sum(array.nbytes for array in one.learners.arrays().values()) + len(one._entries))
    assert max(peaks[5:]) <= 1.1 * max(peaks[1:4]) and max(files[5:]) <= 1.1 * max(files[1:4])


def test_a_day_that_was_killed_ends_as_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, _ = days_in(tmp_path, 2)
    today, states = tmp_path / "today.npz", [tmp_path / "1.npz", tmp_path / "0.npz", None]

    def begun(path: Path | None, state: Path | None, looks: float = np.inf) -> OnePassTuning:
        """A pass that is interrupted at that look."""

        def interrupting(line: str) -> None:
            nonlocal looks
            looks -= "before learning" in line
            if looks == 0:
                raise KeyboardInterrupt

        return OnePassTuning(day_of(2), METRIC, (), COUNT, 4, 0, path, interrupting, after=state)

    monkeypatch.setattr(tuning, "BLOCK_ROWS", 64)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE_OF_WRITING", 1e9)
    whole = begun(None, states[0]).run()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            begun(today, states[0], 1).run()
        assert today.exists()
        for other in states[1:]:
            with pytest.raises(StudyError, match="another pass: its after is"):
                begun(today, other)
    resumed = begun(today, states[0]).run()
    assert resumed.as_dict() == whole.as_dict()
    np.testing.assert_array_equal(resumed.best_model.weights, whole.best_model.weights)


def test_a_day_that_was_learned_already_or_other_solvers_are_refused(tmp_path: Path) -> None:
    *_, _ = days_in(tmp_path, 1)
    with pytest.raises(StudyError, match="learned from these data already"):
        OnePassTuning(day_of(0), METRIC, (), COUNT, 4, 0, after=tmp_path / "0.npz")
    with pytest.raises(StudyError, match="its solvers is"):
        OnePassTuning(day_of(1), METRIC, ("SOLAR1",), COUNT, 4, 0, after=tmp_path / "0.npz")
