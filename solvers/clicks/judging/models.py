"""Click models by name. Importing this module imports no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.table import NamedTable, named

if TYPE_CHECKING:
    from ranktune.solvers.clicks.examination import Examination
    from ranktune.solvers.clicks.fitted import ClickModel

DEFAULT = "position-based"


@dataclass(frozen=True)
class Named:
    """A click model that a user chooses by name.

    help                what it is, in a line
    place               module:class in ranktune.solvers.clicks
    takes_propensities  whether it can be given examination that is known
    """

    help: str
    place: str
    takes_propensities: bool = False

    def make(self, propensities: Examination | None = None) -> ClickModel:
        """Return the model."""
        options = {"propensities": propensities} if self.takes_propensities else {}
        return cast("ClickModel", named(f"ranktune.solvers.clicks.{self.place}")(**options))


MODELS: NamedTable[Named] = NamedTable(
    "click model",
    {
        DEFAULT: Named(
            "examination by position times attraction, by EM",
            "position_based:PositionBased",
            takes_propensities=True,
        ),
        "joint": Named(
            "the same, where most pairs were seen a few times", "position_based:Joint", takes_propensities=True
        ),
        "trust-bias": Named("with clicks on what ranks high and does not attract", "position_based:TrustBias"),
        "coec": Named("clicks over expected clicks of the positions", "rates:COEC"),
        "ctr": Named("clicks over impressions, whatever the position", "rates:ClickRate"),
    },
    remedy="coec-lowest-rank of earlier releases is gone: use coec.",
)


def check_takes_propensities(name: str) -> None:
    """Raise ParameterError where given examination has no effect on a model."""
    if not MODELS.find(name).takes_propensities:
        able = ", ".join(other for other in MODELS if MODELS[other].takes_propensities)
        raise ParameterError(f"model={name!r} does not use propensities. Leave them out, or choose one of: {able}.")
