"""Parameters that many solvers have by the same names: what each means, must be, and what a search tries of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.checks import check_not_negative, check_random_state
from ranktune.solvers.core.parameters import Param
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.metrics.presets import AUTO, GAINS

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker


L1 = Param(
    "Strength of ``sum |w|``: weights become exactly zero.", low=1e-6, high=1e-1, log=True, check=check_not_negative
)
L2 = Param("Strength of ``1/2 sum w^2``.", low=1e-5, high=1.0, log=True, check=check_not_negative)

AT = Param("Cutoff of the metric.", low=1, high=50, log=True)
GAIN = Param(
    'The gain of a grade in NDCG: "exp2" 2^grade - 1, for whole grades from 0 to 30; "linear" the grade, at least 0; '
    '"auto" is "exp2" if the grades of the call allow it, else the grade less the lowest.',
    choices=(AUTO, *sorted(GAINS)),
    searched=(),
)
TEMPERATURE = Param(
    "Divides the gains before the softmax; near 0 only the best documents of a query count.",
    low=0.1,
    high=10.0,
    log=True,
)

ETA0 = Param("Rate of the first step, whatever the size of the gradient under AdaGrad.", low=1e-2, high=1.0, log=True)
ITERATIONS = Param("Number of full gradient steps.", low=10, high=300, log=True)
PASSES = Param("How often each query is visited.", low=1, high=10)
THRESHOLD = Param(
    '"psgd" drops weights below it, "tgd" shrinks those up to it.',
    low=1e-4,
    high=1.0,
    log=True,
    check=check_not_negative,
)
TOL = Param("Stop when the gradient's norm is at most tol times its norm at zero weights.")
MAX_ITERATIONS = Param("Iterations at most; reaching them warns (RankTuneWarning) and keeps the best weights.")

SCALING = Param(
    "As if features were divided by their standard deviation about the means of the queries, by their largest range "
    "within a query, or not at all. Features that are constant in every query get 0.",
    choices=tuple(reversed(SCALINGS)),
    searched=("standard", "minmax"),
)
LIST_SCALING = SCALING.but(
    python='"list", of solvers that learn query by query: by their range within each query, so that predict needs qid '
    "or group, and the model cannot be exported.",
    choices=(*SCALING.choices, "list"),
)

RANDOM_ORDER = Param(
    "Seed of the order of the queries in each pass; None keeps their order.",
    check=lambda _, value: check_random_state(value, "the queries are visited in their order"),
)


def _check_metric(_name: str, spelling: str) -> None:
    from ranktune.solvers.metrics.metrics import parse_metric

    if spelling != "auto":
        parse_metric(spelling)


METRIC = Param(
    'The metric to maximise, such as "map"; "auto" is ndcg@10, or pairwise accuracy if a grade is negative.',
    check=_check_metric,
)


class PathParameter:
    """A path_parameter that depends on other parameters: a class has the usual name, a ranker its name, or None."""

    def __init__(self, usual: str, of: Callable[[Any], str | None]) -> None:
        self._usual, self._of = usual, of

    def __get__(self, ranker: BaseRanker | None, owner: type | None = None) -> str | None:
        """Return the name for the class, or for a ranker with its parameters."""
        return self._usual if ranker is None else self._of(ranker)
