"""All data sets together: ranks and their tests against SciPy and published values, and laws of our lead."""

from typing import Any

import numpy as np
import pytest
import scipy

from ranktune.studies.benchmarks.turnkey.libraries import METRIC
from ranktune.studies.benchmarks.turnkey.results import FAR, OVER_CALLS, critical_difference, together

TOOLS = ("ranktune", "lightgbm-optuna", "catboost", "flaml")


def rows(values: Any, tools: Any = TOOLS) -> list[dict[str, Any]]:
    """Return the means of tools on data sets, (data sets, tools)."""
    return [
        {"data": f"d{n}", "rival": tool, METRIC: value}
        for n, of_data in enumerate(values)
        for tool, value in zip(tools, of_data, strict=True)
    ]


def test_ranks_are_those_of_counting_and_friedman_is_that_of_scipy() -> None:
    values = np.round(np.random.default_rng(1).random((9, 4)), 1)  # some are equal
    table, _ = together(rows(values))
    found: dict[Any, Any] = {row["tool"]: row for row in table.rows}
    for k, tool in enumerate(TOOLS):
        higher = (values > values[:, [k]]).sum(axis=1)
        equal = (values == values[:, [k]]).sum(axis=1)
        assert found[tool]["mean rank"] == pytest.approx(float(np.mean(higher + (equal + 1) / 2)))
        assert found[tool]["mean"] == pytest.approx(values[:, k].mean())
    p_value = scipy.stats.friedmanchisquare(*values.T).pvalue
    assert f"p = {p_value:.2g}." in table.note and f"{critical_difference(9, 4):.2f}." in table.note


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    for tools, q in {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 10: 3.164}.items():
        expected = q * np.sqrt(tools * (tools + 1) / (6 * 14))
        assert critical_difference(14, tools) == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(("lift", "met"), [(0.0, False), (0.02, True)])
def test_our_lead_is_over_the_best_peers(lift: float, met: bool) -> None:
    values = np.array([[0.50, 0.40, 0.49, 0.52], [0.70, 0.60, 0.71, 0.50], [0.30, 0.30, 0.302, 0.10]])
    values[:, 0] += lift
    _, table = together(rows(values), 40.0)
    (lead,) = table.rows
    best = values[:, 1:].max(axis=1)
    assert (lead["tool"], lead["best single peer"]) == ("ranktune", "catboost")
    assert lead["lead over it"] == lead[OVER_CALLS] == pytest.approx(values[:, 0].mean() - values[:, 2].mean())
    assert lead["less best of each"] == pytest.approx((values[:, 0] - best).mean())
    assert lead["far below"] == ", ".join(f"d{n}" for n in range(3) if best[n] - values[n, 0] > FAR)
    assert lead["met"] == met and lead["wanted"]


def test_data_that_a_tool_did_not_run_are_left_out() -> None:
    values = np.random.default_rng(2).random((4, 4))
    every = rows(values)
    table, _ = together([row for row in every if (row["data"], row["rival"]) != ("d2", "flaml")])
    assert "Left out: d2." in table.note and table.title.startswith("3 data sets")
    assert not [*together(rows(values[:1])), *together(rows(values[:, :1], TOOLS[:1]))]
