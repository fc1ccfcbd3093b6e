"""What the choice is compared with: the choice by the metric beside, and the best of the solvers' defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktune.tuner.statistics.measured import Interval

CLICKS = "clicks.json"
"""What the click log of a study has and lacks, in the folder of the study."""


@dataclass(frozen=True)
class Preference:
    """What clicks would have chosen where judgments chose, or judgments where clicks did, on the test queries.

    metric   the first metric beside the one that chose: of clicks, or of judgments
    best     the row that it would choose; "" without test queries
    beside   this row less the chosen one by that metric, paired by query; None where it is the chosen one
    own      the same by the metric that chose
    log      what the click log has and lacks
    """

    metric: str
    best: str
    beside: Interval | None
    own: Interval | None
    log: Mapping[str, Any]


@dataclass(frozen=True)
class TuningGain:
    """What tuning gained: the delivered model against the best of the solvers' defaults, on the test queries.

    default  the solver whose defaults are best by validation; over several splits that of most of them
    gain     the metric of the delivered model less that of the default, paired by query, with its interval; None
             where the delivered model is the default itself
    p_value  two-sided, of that gain
    """

    default: str
    gain: Interval | None
    p_value: float | None


def of_log(log: Mapping[str, Any], metric: str) -> str:
    """Return how much of the data a click log has, and what does not count."""
    clipped = log["clipped"][metric.partition("@")[0].partition(":")[0]]
    unknown = log["unknown"]
    left_out = f" {unknown:,} impressions at positions of unknown examination do not count." if unknown else ""
    return (
        f"The log has {log['searches_of_data']:,} searches of {log['queries_in_log']:,} of {log['queries']:,} queries; "
        f"{log['never_shown']:,} of their {log['documents']:,} documents were never shown, and count as not clicked. "
        f"{clipped:.1%} of the clicks have their weight clipped to {log['clip']:g}.{left_out}"
    )
