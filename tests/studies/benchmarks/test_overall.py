"""All data sets together: ranks and their tests against SciPy and published values, and laws of our lead."""

from typing import Any

import numpy as np
import pytest
import scipy

from ranktune.studies.benchmarks.turnkey.overall import FAR, critical_difference, friedman, overall
from ranktune.studies.benchmarks.turnkey.peers import METRIC

TOOLS = ("ranktune", "ranktune-catboost", "catboost", "flaml")


def rows(values: Any, tools: Any = TOOLS) -> list[dict[str, Any]]:
    """Return the means of tools on data sets, (data sets, tools)."""
    return [
        {"data": f"d{n}", "rival": tool, METRIC: value}
        for n, of_data in enumerate(values)
        for tool, value in zip(tools, of_data, strict=True)
    ]


def test_ranks_are_those_of_counting_and_friedman_is_that_of_scipy() -> None:
    values = np.round(np.random.default_rng(1).random((9, 4)), 1)  # some are equal
    found = overall(rows(values))
    assert found is not None
    for k, tool in enumerate(TOOLS):
        higher = (values > values[:, [k]]).sum(axis=1)
        equal = (values == values[:, [k]]).sum(axis=1)
        assert found.ranks[tool] == pytest.approx(float(np.mean(higher + (equal + 1) / 2)))
        assert found.means[tool] == pytest.approx(values[:, k].mean())
    assert found.p_value == pytest.approx(scipy.stats.friedmanchisquare(*values.T).pvalue)
    assert found.critical == critical_difference(9, 4)


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    for tools, q in {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 10: 3.164}.items():
        expected = q * np.sqrt(tools * (tools + 1) / (6 * 14))
        assert critical_difference(14, tools) == pytest.approx(expected, rel=5e-4)


def test_equal_tools_do_not_differ() -> None:
    assert friedman(np.full((5, 3), 2.0)) == 1.0
    found = overall(rows(np.full((5, 4), 0.5)))
    assert found is not None and found.p_value == 1.0 and set(found.ranks.values()) == {2.5}
    assert [(lead.over_single, lead.over_best, lead.far_below) for lead in found.leads] == [(0.0, 0.0, [])] * 2


def test_our_lead_is_over_peers_alone() -> None:
    values = np.array([[0.50, 0.60, 0.49, 0.52], [0.70, 0.60, 0.71, 0.50], [0.30, 0.30, 0.302, 0.10]])
    found = overall(rows(values))
    assert found is not None
    ours, own = found.leads
    assert (ours.tool, own.tool, ours.single, own.single) == (*TOOLS[:2], "catboost", "catboost")
    best = values[:, 2:].max(axis=1)
    for k, lead in enumerate(found.leads):
        assert lead.over_single == pytest.approx(values[:, k].mean() - values[:, 2].mean())
        assert lead.over_best == pytest.approx((values[:, k] - best).mean())
        assert lead.over_best <= lead.over_single
        assert lead.far_below == [f"d{n}" for n in range(3) if best[n] - values[n, k] > FAR]
    assert (ours.far_below, own.far_below) == (["d0", "d1"], ["d1"])


def test_data_that_a_tool_did_not_run_are_left_out() -> None:
    values = np.random.default_rng(2).random((4, 4))
    every = rows(values)
    found = overall([row for row in every if (row["data"], row["rival"]) != ("d2", "flaml")])
    assert found is not None and (found.data, found.left_out) == (["d0", "d1", "d3"], ["d2"])
    assert found.means["catboost"] == pytest.approx(values[[0, 1, 3], 2].mean())
    assert overall(rows(values[:1])) is None and overall(rows(values[:, :1], TOOLS[:1])) is None
    two = overall(rows(values[:, [0, 3]], ("ranktune", "flaml")))
    assert two is not None and two.p_value is None and two.critical == critical_difference(4, 2)
