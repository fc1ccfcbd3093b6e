"""Whatever is declared of a parameter is checked before anything is learned, for every solver alike."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.checks import RandomState, check_finite
from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.registry import SOLVERS

BAD: Mapping[Any, tuple[Any, ...]] = {
    bool: ("no", 1.5),
    int: (-1, 0, 2.5, "9", True),
    float: (-1.0, np.nan, np.inf, "1"),
    str: ("nonsense", 3),
    RandomState: (-1, 1.0, "seed"),
}
"""What no parameter of a type may be, whatever its range."""
BEYOND: tuple[tuple[str, Mapping[str, tuple[Any, ...]]], ...] = (
    ("AdaRank", {"validation": (1.0,), "metric": ("dcg",)}),
    ("CatBoostRanker", {"depth": (17,), "bins": (255,), "row_share": (0.0,), "l2": (1.1e30,)}),
    ("GBDTRanker", {"row_share": (0.0, 1.1), "learning_rate": (0.0, 1.1), "feature_share": (0.0, 1.1)}),
    ("LambdaMART", {"leaves": (1, 131_073), "bins": (1, 256), "query_share": (0.0, 1.1), "validation": (1.0,)}),
    ("PAMIR", {"C": (0.0,)}),
    ("PairwisePegasos", {"alpha": (0.0,)}),
    ("Prank", {"grades": ((1.0,), (1.0, np.nan)), "pair_order": ("worse",)}),
    ("RandomForestRanker", {"row_share": (1.0,)}),
    ("RankBoost", {"thresholds": (1, 257), "validation": (1.5,), "metric": ("dcg",)}),
    ("SymmetricGBDT", {"depth": (13,), "row_share": (0.0, 1.1), "feature_share": (0.0,), "bins": (1, 256)}),
    ("XGBoostRanker", {"depth": (31,), "bins": (1, 256), "min_weight": (1.1e30,), "row_share": (0.0, 1.1)}),
)
"""What single parameters may not be."""


def cases() -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    for name in SOLVERS:
        for field in declared(SOLVERS[name]) if is_dataclass(SOLVERS[name]) else ():
            if bad := BAD.get(field.kind, BAD.get(field.type)):
                yield name, field.name, bad[1:] if field.setting.check is check_finite else bad
    for name, parameters in BEYOND:
        yield from ((name, parameter, bad) for parameter, bad in parameters.items() if name in SOLVERS)


@pytest.mark.parametrize(("solver", "parameter", "bad"), list(cases()))
def test_what_a_parameter_may_not_be_is_refused_before_the_data_are_read(
    solver: str, parameter: str, bad: tuple[Any, ...]
) -> None:
    for value in bad:
        with pytest.raises(ParameterError, match=f"^{parameter}=|metric"):
            SOLVERS[solver](**{parameter: value}).fit(None)
