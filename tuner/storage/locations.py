"""Where the record of a study and its arrays are kept: in its folder, or where several machines reach them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import check_local, check_url, shown_url
from ranktune.tuner.study.home import PLACES, writing


@dataclass(frozen=True)
class Locations:
    """Where the record and the arrays of a study are.

    storage    URL of a PostgreSQL database, None for record.db in the study's folder
    artifacts  folder that all machines see, or s3://BUCKET/PREFIX, for the arrays of the record and for the data that
               workers on other machines fetch; None for the study's folder

    Raises ParameterError where they cannot be.
    """

    storage: str | None = None
    artifacts: str | None = None

    def __post_init__(self) -> None:
        """Check the URL."""
        if self.storage is not None:
            check_url(self.storage)

    def note(self, folder: Path) -> None:
        """Write them into a study's folder, but for the password.

        Raises StudyError where the study is kept elsewhere, and where nothing can be kept there.
        """
        before = Locations.noted(folder)
        if (folder / "study.json").exists() and before._shown() != self._shown():
            raise StudyError(
                f"study '{folder.name}' keeps its record in {before._told()}, not in {self._told()}. "
                "Choose another name (--name), or repeat where it began."
            )
        self._check(folder)
        if self == Locations():
            return
        temporary = folder / f"{PLACES}.new"
        noted = json.dumps({"storage": self._shown()[0], "artifacts": self.artifacts})
        with writing(folder):
            temporary.write_text(noted, encoding="utf-8")
            temporary.replace(folder / PLACES)

    @classmethod
    def noted(cls, folder: Path, storage: str | None = None) -> Self:
        """Return what note wrote. The password comes from storage, or from RANKTUNE_STORAGE, if it is the same URL."""
        try:
            found = json.loads((folder / PLACES).read_text(encoding="utf-8"))
            url, artifacts = found["storage"], found["artifacts"]
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StudyError(f"cannot read {folder / PLACES}: {error}. Remove it, and give --storage again.") from None
        for known in (storage, os.environ.get("RANKTUNE_STORAGE")):
            if known and url and shown_url(known) == url:
                url = known
                break
        return cls(url, artifacts)

    def _check(self, folder: Path) -> None:
        """Find out now what would otherwise end the study once its data are prepared."""
        if self.storage is None:
            check_local(folder / "record.db")
        if self.artifacts is not None:
            Artifacts(self.artifacts).probe()

    def _shown(self) -> tuple[str | None, str | None]:
        return None if self.storage is None else shown_url(self.storage), self.artifacts

    def _told(self) -> str:
        storage, artifacts = self._shown()
        return (storage or "its folder") + (f" with arrays in {artifacts}" if artifacts else "")


def record_name(study: str, split: str) -> str:
    """Return the name of the Optuna study of a split."""
    return "/".join(filter(None, (study, split)))
