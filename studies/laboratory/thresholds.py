"""Which thresholds matter: those that a simulated study reads, half and twice as large, over the tasks of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.laboratory.known import KnownTask
from ranktune.studies.laboratory.simulating import SimulationPlan, changes, simulated
from ranktune.studies.laboratory.suggestions import DecisionRules, constants

READ = (
    "few_queries significant choice.ahead choice.per_solver choice.finalists search.startup_apart search.least_share "
    "search.few_fits search.before_boosting time.a_cell time.min_fits time.end_share time.margin time.refit time.fixed "
    "time.a_document time.a_query time.bag"
).split()
"""The thresholds that a simulated study decides by."""


def halved_and_doubled(name: str) -> list[str]:
    """Return the rules with half and with twice the value of a constant: whole numbers from 1, shares up to 1."""
    value = constants()[name]
    values = (value / 2, min(2 * value, 1.0) if value < 1.0 else 2 * value)
    return [f"{name}={max(round(each), 1) if isinstance(value, int) else each}" for each in values]


def varied(
    tasks: Sequence[KnownTask], plan: SimulationPlan, on_line: Callable[[str], None], names: Sequence[str] = READ
) -> BenchmarkTable:
    """Return what the same studies deliver by half and by twice each threshold, less what they deliver by it."""
    rules = [rule for name in names for rule in halved_and_doubled(name)]
    usual, *others = simulated(tasks, plan, [DecisionRules(), *map(DecisionRules.parse, rules)], on_line)
    rows: list[Row] = []
    for rule, studies in zip(rules, others, strict=True):
        gains, count = changes(usual, studies), sum(one.trials for one in usual)
        mean, error = float(gains.mean()), float(gains.std(ddof=1)) / len(gains) ** 0.5
        other = np.mean([one.test != before.test for one, before in zip(studies, usual, strict=True)])
        row: Row = {
            "rule": rule,
            "is": f"{constants()[rule.partition('=')[0]]:g}",
            "gain": f"{mean:+.5f}",
            "error": f"{error:.5f}",
            "trials": f"{sum(one.trials for one in studies) / count - 1.0:+.1%}",
            "other": f"{other:.1%}",
            "matters": abs(mean) > error,
        }
        rows.append(row)
    note = (
        "Gain: on test queries, over tasks, with its standard error. Trials: how many more. Other: studies that choose "
        "another model. Matters: the gain or loss is larger than its error."
    )
    return BenchmarkTable("half and twice of each threshold", rows, note)
