"""The names of the plans by which configurations are evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.table import NamedTable, TableEntry

if TYPE_CHECKING:
    from ranktune.tuner.evaluation.evaluate import EvaluationPlan

PLANS: NamedTable[type[EvaluationPlan[Any]]] = NamedTable(
    "plan",
    {
        "progressive": TableEntry("plans:Orders", "score each query before learning from it (online solvers)"),
        "split": TableEntry("plans:GivenSplit", "score on the given vali only"),
        "folds": TableEntry("plans:Folds", "cross-validation"),
        "final": TableEntry("plans:Final", "one fit to all queries, scored on test queries"),
    },
    package="ranktune.tuner.evaluation",
)
"""All kinds of plans; a stored one is of the first kind that takes it. A sample, and a final fit, are not stored."""
