"""What a record says of a trial in the attributes that Optuna keeps for its users, with a digest of all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.names import former_names

if TYPE_CHECKING:
    from ranktune.solvers.core.space import Value

NUMBER, SECONDS, NONZEROS, VARIANCE, MEANS, ERROR, WARNINGS = (
    "number", "seconds", "nonzeros", "variance", "means", "error", "warnings",
)  # fmt: skip
MICROSECONDS, BYTES, COST, WORKER, RESTARTS = "microseconds", "bytes", "cost", "worker", "restarts"
STOPPED, PARTIAL, PARTS, PATH, BULK = "stopped", "partial_variance", "parts", "path", "bulk"
LEARNING_CURVE, UNFINISHED = "learning_curve", "unfinished"
ORIGIN, EXPECTED_GAIN, LEAD = "origin", "expected_gain", "lead"
"""Why a trial was tried, what it was then expected to gain over the best, and what it gained where it became that."""
GIVEN, FIRST, AGAIN, CONTINUED = "given", "first configuration", "repeated", "continued"
ORIGINS = (GIVEN, FIRST, AGAIN, CONTINUED, "quasi-random", "draw", "improvement", "mean of draws")
"""The origins of trials: given by the user, of the portfolio of a solver, begun again of an earlier study or run, a
model that continues, and what the sampler suggests. Of samplers of other libraries it is their name."""
DIGEST = "sha256"
"""The attribute that holds the digest of a trial: SQLite has no checksums of its own. Trials of older releases, and
those that another tool wrote, have none."""


def trial_digest(
    state: str, value: float | None, parameters: Mapping[str, Value], attributes: Mapping[str, object]
) -> str:
    """Return the digest of what a trial says: its state, value, parameters and other attributes."""
    plain = {name: _plain(value) for name, value in parameters.items()}
    others = {name: value for name, value in attributes.items() if name != DIGEST}
    text = json.dumps([state, value, plain, others], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Value) -> Value:
    """Return a number as float: whether it is whole is not stored."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def check_trial(
    state: str, value: float | None, parameters: Mapping[str, Value], attributes: Mapping[str, object]
) -> None:
    """Raise Damaged for a trial that is not what was written, by this version or an earlier one with other names."""
    ways = (parameters, former_names(parameters))
    written = attributes.get(DIGEST)
    if DIGEST in attributes and written not in [trial_digest(state, value, way, attributes) for way in ways]:
        raise Damaged(
            f"trial {attributes.get('number')} of the record is damaged: it is not what was written there. Restore the "
            "record from a backup, or begin a study of another name."
        )
