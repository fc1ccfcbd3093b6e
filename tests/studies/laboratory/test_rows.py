"""Rows of the table: what a configuration reaches is what its ranker reaches, and rows are kept as they were."""

import json
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ranktune.solvers import GBDTRanker, RidgeRanker
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.task_table import STEPS, ConfigurationRow, Sizes, mean_value, pack
from ranktune.studies.benchmarks.tasks import CELLS, confirms, properties, task
from ranktune.studies.laboratory.__main__ import app
from ranktune.studies.laboratory.rows import METRIC, configurations, name_of, read_rows, row_of
from ranktune.tuner.evaluation.fitting import sample

NDCG = parse_metric(METRIC)


@pytest.fixture(scope="module")
def split() -> QuerySplit:
    """A small task."""
    return task("drawn", 3)


def test_a_boosted_row_is_the_ranker_that_validation_stops(split: QuerySplit) -> None:
    params = configurations(["GBDTRanker"], 0)[0]
    row = row_of(split, params, 1.0)
    assert split.vali is not None
    assert split.test is not None
    ranker = GBDTRanker(trees=5000, random_state=0, metric=METRIC).fit(split.train, vali=split.vali)
    assert row.checkpoints[-1].value == ranker.rounds_[0]
    expected = float(np.nanmean(NDCG.per_query(ranker.predict(split.test), split.test)))
    assert row.checkpoints[-1].test == pytest.approx(expected, abs=1e-9)
    assert max(point.vali for point in row.checkpoints) >= row.checkpoints[-1].vali
    seconds = [point.seconds for point in row.checkpoints]
    assert seconds == sorted(seconds)


def test_a_row_of_a_path_has_a_checkpoint_for_each_value(split: QuerySplit) -> None:
    params = configurations(["RidgeRanker"], 0)[0]
    row = row_of(split, params, 0.5)
    assert split.test is not None
    numbers = sample(np.arange(split.train.n_queries), round(split.train.n_queries / 2), 0)
    for point in row.checkpoints:
        ranker = RidgeRanker(alpha=point.value).fit(split.train.select(numbers))
        expected = float(np.nanmean(NDCG.per_query(ranker.predict(split.test), split.test)))
        assert point.test == pytest.approx(expected, abs=1e-6)


def test_a_failure_is_a_row(split: QuerySplit) -> None:
    params = {**configurations(["GBDTRanker"], 0)[0], "GBDTRanker.learning_rate": -1.0}
    row = row_of(split, params, 1.0)
    assert "learning_rate" in row.error
    assert row.checkpoints == ()


def test_packed_rows_are_read_as_they_were_but_for_test_queries(split: QuerySplit, tmp_path: Path) -> None:
    split = replace(split, name="shop")  # drawn tasks have no sizes: their seeds tell them
    first, other = (row_of(split, params, 0.5) for params in configurations(["RidgeRanker", "SVRRanker"], 0)[:2])
    pack([first, ConfigurationRow("a", "failed", 1.0, error="x"), other], tmp_path / "rows.npz")
    for row, read in zip((first, other), read_rows(tmp_path / "rows.npz"), strict=True):
        assert (read.key, len(read.checkpoints)) == (row.key, len(row.checkpoints))
        assert (
            read.sizes
            == row.sizes
            == ConfigurationRow.from_json(json.loads(json.dumps(row.as_json()))).sizes
            == Sizes.of(split)
        )
        for a, b in zip(read.checkpoints, row.checkpoints, strict=True):
            assert astuple(a) == pytest.approx(astuple(b), rel=1e-6)
        assert read.vali is not None
        np.testing.assert_allclose(read.vali, np.asarray(row.vali), atol=0.5 / STEPS)
        assert mean_value(read.test) == pytest.approx(mean_value(row.test), rel=1e-6)


def test_what_is_no_packed_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no rows to pack"):
        pack([ConfigurationRow("a", "failed", 1.0, error="x")], tmp_path / "rows.npz")
    (tmp_path / "other.npz").write_bytes(b"PK\x03\x04 other")
    for name in ("other.npz", "missing.npz"):
        with pytest.raises(DataError, match=f"{name}: not a packed table"):
            read_rows(tmp_path / name)


def test_more_draws_begin_with_those_of_fewer() -> None:
    few, many = (configurations(["GBDTRanker", "RidgeRanker"], count) for count in (2, 4))
    assert many[: len(few)] == few
    assert len({name_of(params) for params in many}) == len(many) == len(few) + 4


def test_drawn_tasks_are_of_every_form_and_size() -> None:
    every = [properties(seed) for seed in range(CELLS)]
    assert len({(kind.truth, kind.documents) for kind in every}) == CELLS
    assert [confirms(seed) for seed in (0, CELLS - 1, CELLS, 2 * CELLS)] == [False, False, True, False]


def test_the_table_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    command = ["table", "--keep", str(file), "--seeds", "8:9", "--draws", "0"]
    result = CliRunner().invoke(app, [*command, "--shares", "1"])
    assert result.exit_code == 0, result.output
    rows = read_rows(file)
    assert {row.task for row in rows} == {"drawn-8"}
    assert sorted({row.share for row in rows}) == [0.25, 0.5, 1.0]
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[:-1]))
    result = CliRunner().invoke(app, [*command, "--shares", "1"])
    assert f"{len(rows) - 1} rows are known, 1 are to be measured" in result.output
    again = read_rows(file)
    assert [row.key for row in again] == [row.key for row in rows]
    np.testing.assert_array_equal(again[-1].test, rows[-1].test)
