"""The days on which a study was watched, one file each in its folder: drift/2026-11-28.json."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.files.atomic import locked
from ranktune.tuner.splits.seals import read_sealed, write_sealed
from ranktune.tuner.study.home import writing

DAYS = "drift"
"""Folder in that of the study."""


def checked_day(day: str | None) -> str:
    """Return a day, by default today. Raises ParameterError where it is none."""
    try:
        return (date.today() if day is None else date.fromisoformat(day)).isoformat()
    except ValueError:
        raise ParameterError(f"day is '{day}'. Give a date such as 2026-11-28.") from None


def write_day(study: Path, day: str, content: Json) -> None:
    """Write what was found on a day into the folder of a study, in place of what was found on it before."""
    with writing(study):
        (study / DAYS).mkdir(exist_ok=True)
        with locked(study / DAYS):
            write_sealed(study / DAYS / f"{day}.json", json.dumps(content, indent=1))


def read_days(study: Path) -> list[Json]:
    """Return what was found on each day, in their order. Raises Damaged (a StudyError)."""
    return [read_sealed(path) for path in sorted((study / DAYS).glob("*.json"))]
