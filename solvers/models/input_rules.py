"""What libraries do to the input of their models, which belongs to a model as its trees do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data.missing import with_absent_missing
from ranktune.solvers.data.queries import Queries


@dataclass(frozen=True)
class InputRules:
    """How a model takes its input.

    absent_is_missing  what rows of a sparse array or lines of a text leave out is missing (NaN), and not 0
    text               options by which a text is read
    """

    absent_is_missing: bool = False
    text: Mapping[str, Any] = field(default_factory=dict)


RULES: Mapping[str, InputRules] = {
    "LightGBM": InputRules(text={"dtype": np.float64}),  # it compares doubles, as 4.7 does
    "XGBoost": InputRules(absent_is_missing=True, text={"layout": "written"}),  # DMatrix of 3.2
    "CatBoost": InputRules(),  # single precision, and 0 for what is left out, as 1.2 has it
}
"""By the solver of a model, which is the name of the library where that is not RankTune."""


def rules_of(solver: str) -> InputRules:
    """Return how models of a solver take their input."""
    return RULES.get(solver, InputRules())


def as_taken(queries: Queries, solver: str, features: Ints) -> Queries:
    """Return queries as a model of a solver takes them, which uses these features."""
    return with_absent_missing(queries, features) if rules_of(solver).absent_is_missing else queries
