"""Builders of figures: what anybody's text and any number becomes."""

import html
import json
from typing import Any

import numpy as np
import pytest

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Frame, Panel, to_json
from tests.support.study_samples import HOSTILE, figure_of


@pytest.mark.parametrize("name", HOSTILE)
def test_names_come_out_without_markup(name: str) -> None:
    traces = [
        figures.scatter(name, [1], [2]),
        figures.bars(name, figures.distinct([name]), [1]),
        figures.band(name, [1], [0], [2], "#0072b2"),
        figures.heat_map(figures.distinct([name]), figures.distinct([name]), np.eye(1), name),
    ]
    shown = figures.figure(traces, figures.axis(name), figures.axis(name, categories=figures.distinct([name])))
    text = json.dumps(to_json(shown), allow_nan=False, ensure_ascii=False)
    assert "<" not in text
    assert ">" not in text
    assert "\u202e" not in text
    assert "\\u0000" not in text
    assert len(text) < 3000


def test_short_is_what_plain_looks_like() -> None:
    for name in HOSTILE:
        shown = figures.plain(name)
        if shown:
            assert figures.short(name) == html.unescape(shown)
    assert figures.short("<b>x</b> & y") == "<b>x</b> & y"
    assert figures.short("") == "(no name)"


def test_names_that_look_alike_get_numbers() -> None:
    names = ["a", "a", "a (2)", "x" * 500, "x" * 501, "", "\x00"]
    result = figures.distinct(names)
    assert len(set(result)) == len(names)
    assert result[0] == "a"


def test_numbers_are_rounded_and_never_nan() -> None:
    values: list[Any] = [1 / 3, np.nan, np.inf, None, np.float64(2), np.int64(7)]
    rounded = [0.333333, None, None, None, 2.0, 7]
    panel = Panel("key", "title", Frame(("value",), [[value] for value in values]), lambda _: {"data": [{"x": values}]})
    assert figure_of(panel)["data"][0]["x"] == [cell for (cell,) in panel.table.rows] == rounded


@pytest.mark.parametrize("seed", range(5))
def test_thinning_keeps_order_extremes_and_every_new_best(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=7000)
    values[generator.integers(7000, size=50)] = np.nan
    kept = figures.thinned(values, 800)
    assert len(kept) <= 1000
    assert (np.diff(kept) > 0).all()
    assert int(np.nanargmax(values)) in kept
    assert int(np.nanargmin(values)) in kept
    best = np.fmax.accumulate(values)
    steps = np.flatnonzero(np.diff(best, prepend=-np.inf) > 0)
    assert set(steps.tolist()) <= set(kept.tolist())


def test_thinning_leaves_few_values_and_nothing_known_alone() -> None:
    assert figures.thinned([3.0, None, 1.0]).tolist() == [0, 1, 2]
    assert len(figures.thinned([None] * 5000, 100)) <= 200
    assert len(figures.thinned([])) == 0


def test_a_value_axis_leaves_out_a_low_tail_only() -> None:
    assert figures.value_axis("y", [0.1, 0.2, 0.3, 0.4]) == (figures.axis("y"), "")
    assert figures.value_axis("y", [1.0, 1.0, 1.0, 1.0, 0.0]) == (figures.axis("y"), "")
    axis, note = figures.value_axis("y", [0.70, 0.71, 0.72, 0.73, 0.1, 0.2])
    assert axis["range"][0] > 0.2
    assert axis["range"][1] > 0.73
    assert note.startswith("2 values lie")
    axis, note = figures.value_axis("y", [0.70, 0.71, 0.72, 0.73, 0.1, 0.2], always=0.2)
    assert 0.1 < axis["range"][0] < 0.2
    assert note.startswith("One value lies")


@pytest.mark.parametrize(("low", "high"), [(0.003, 0.2), (1, 46), (12, 3e5), (5, 5), (1e-7, 1e-1), (2e-6, 4e-6)])
def test_ticks_cover_a_logarithmic_axis(low: float, high: float) -> None:
    result = figures.log_axis("x", low, high)
    assert result["tickvals"][0] <= low
    assert result["tickvals"][-1] >= high
    assert len(result["tickvals"]) == len(result["ticktext"]) <= 10
    assert [float(text.replace(",", "")) for text in result["ticktext"]] == pytest.approx(result["tickvals"])
