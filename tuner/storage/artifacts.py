"""The store of arrays and data of a study: a folder, or a bucket of S3 that several machines share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.core.files.buckets import SCHEME, Bucket, Unreachable
from ranktune.tuner.storage.retrying import fault_of_file


class Artifacts:
    """Bytes by name. Methods raise StudyError if the store cannot be reached, read or written."""

    def __init__(self, where: str | Path) -> None:
        """Open a folder, or s3://BUCKET/PREFIX (credentials, region and endpoint as Arrow finds them)."""
        self.where = str(where)
        if self.where.startswith(SCHEME):
            with self._named():
                self._place: Folder | Bucket = Bucket(self.where)
        elif "://" in self.where:
            raise ParameterError(
                f"artifacts={self.where!r}: it must be a folder that all machines see, or s3://BUCKET/PREFIX."
            )
        else:
            self._place = Folder(Path(where))
            with self._named():
                self._place.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write content under name durably: a reader sees all of it or nothing."""
        with self._named():
            self._place.write(name, content)

    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        with self._named():
            return self._place.read(name)

    def remove(self, name: str) -> None:
        """Remove the content under name, if there is any."""
        with self._named():
            self._place.remove(name)

    def probe(self) -> None:
        """Write an empty file and remove it."""
        name = f"probe-{uuid.uuid4()}"
        self.write(name, b"")
        self.remove(name)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn errors of the system and of the bucket into a StudyError with the place and the remedy."""
        try:
            yield
        except Unreachable as error:
            raise StudyError(f"cannot use the artifacts in {self.where}: {error}") from None
        except OSError as error:
            fault = fault_of_file(error)
            cause = f"{fault.cause}. {fault.remedy}" if fault else f"{error}. May you write there?"
            raise StudyError(f"cannot use the arrays in {'its files' if fault else self.where}: {cause}") from None


@dataclass(frozen=True)
class Folder:
    """Files by name in a folder, as `Bucket` has them."""

    path: Path

    def write(self, name: str, content: bytes) -> None:
        """Write content under name durably."""
        atomic_write(self.path / name, content)

    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        with suppress(FileNotFoundError):
            return (self.path / name).read_bytes()
        return None

    def remove(self, name: str) -> None:
        """Remove the content under name, if there is any."""
        (self.path / name).unlink(missing_ok=True)
