"""From the files of a click log to what it says of rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ranktune.solvers.clicks.judging.gains import ClickGains
from ranktune.solvers.clicks.propensities import given_propensities
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.errors import DataError


def open_gains(
    logs: Sequence[str | Path], columns: Mapping[str, str], propensities: Mapping[int, float] | str | Path | None
) -> tuple[ClickLog, ClickGains]:
    """Return a log, and the gains of its documents.

    Raises DataError where it cannot be read or is too small for a click model, ParameterError for a role or a
    propensity that cannot be.
    """
    known = None if propensities is None else given_propensities(propensities)
    try:
        log = ClickLog.open(*logs, columns=columns)
        return log, ClickGains.of(log, known)
    except DataError as error:
        raise DataError(str(error).replace(" columns={", " click_columns={")) from None
