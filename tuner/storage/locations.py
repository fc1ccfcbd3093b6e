"""Locations of the record of a study and of its arrays: its folder, or a database and a store for several machines."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.tuner.splits.seals import read_sealed, write_sealed
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import check_local, check_url, shown_url
from ranktune.tuner.study.home import PLACES, StudyFolder, writing


@dataclass(frozen=True)
class Locations:
    """Where the record and the arrays of a study are.

    Attributes
    ----------
    storage : str or None
        URL of a PostgreSQL database, None for record.db in the study's folder.
    artifacts : str or None
        A folder that all machines see, or s3://BUCKET/PREFIX, for the arrays of the record and the data that workers
        on other machines fetch; None for the study's folder.

    Raises
    ------
    ParameterError
        The URL is wrong.
    """

    storage: str | None = None
    artifacts: str | None = None

    def __post_init__(self) -> None:
        """Check the URL."""
        if self.storage is not None:
            check_url(self.storage)

    def save(self, folder: Path) -> None:
        """Write the locations into a study's folder, without the password.

        Raises StudyError if the study has other locations, or if they cannot be used.
        """
        before = Locations.load(folder)
        if StudyFolder(folder).has_begun and before._shown() != self._shown():
            raise StudyError(
                f"study '{folder.name}' keeps its record in {before._described()}, not in {self._described()}. "
                "Choose another name (name=), or repeat where it began."
            )
        self._check(folder)
        if self == Locations():
            return
        with writing(folder):
            write_sealed(folder / PLACES, json.dumps({"storage": self._shown()[0], "artifacts": self.artifacts}))

    @classmethod
    def load(cls, folder: Path, storage: str | None = None) -> Self:
        """Return saved locations. The password comes from `storage` or RANKTUNE_STORAGE, if that is the same URL."""
        try:
            saved = read_sealed(folder / PLACES) or {"storage": None, "artifacts": None}
            url, artifacts = saved["storage"], saved["artifacts"]
        except (Damaged, KeyError, TypeError) as error:
            raise StudyError(f"{folder / PLACES}: {error} Remove it, and give storage= again.") from None
        for address in (storage, os.environ.get("RANKTUNE_STORAGE")):
            if address and url and shown_url(address) == url:
                url = address
                break
        return cls(url, artifacts)

    def _check(self, folder: Path) -> None:
        """Fail now rather than after the data are prepared."""
        if self.storage is None:
            check_local(folder / "record.db")
        if self.artifacts is not None:
            Artifacts(self.artifacts).probe()

    def _shown(self) -> tuple[str | None, str | None]:
        return None if self.storage is None else shown_url(self.storage), self.artifacts

    def _described(self) -> str:
        storage, artifacts = self._shown()
        return (storage or "its folder") + (f" with arrays in {artifacts}" if artifacts else "")


def record_name(study: str, split: str) -> str:
    """Return the name of the Optuna study of a split."""
    return "/".join(filter(None, (study, split)))
