"""The store of arrays and data of a study: a folder, or a bucket of S3 that several machines share."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.files import atomic_write
from ranktune.tuner.storage.retrying import fault_of_file

if TYPE_CHECKING:
    from optuna.artifacts import Boto3ArtifactStore


class Artifacts:
    """Bytes by name. Methods raise StudyError if the store cannot be reached, read or written."""

    def __init__(self, where: str | Path) -> None:
        """Open a folder, or s3://BUCKET/PREFIX (credentials, region and endpoint as boto3 finds them)."""
        self.where = str(where)
        self._folder: Path | None = None
        if "://" not in self.where:
            self._folder = Path(where)
            with _errors_named(self.where):
                self._folder.mkdir(parents=True, exist_ok=True)
            return
        parts = urlsplit(self.where)
        if parts.scheme != "s3" or not parts.netloc:
            raise ParameterError(
                f"artifacts={self.where!r}: it must be a folder that all machines see, or s3://BUCKET/PREFIX."
            )
        self._prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
        self._bucket = _bucket(parts.netloc)

    def write(self, name: str, content: bytes) -> None:
        """Write content under name durably: a reader sees all of it or nothing."""
        with _errors_named(self.where):
            if self._folder is None:
                self._bucket.write(self._prefix + name, io.BytesIO(content))
            else:
                atomic_write(self._folder / name, content)

    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        with _errors_named(self.where):
            if self._folder is not None:
                try:
                    return (self._folder / name).read_bytes()
                except FileNotFoundError:
                    return None
            from optuna.artifacts.exceptions import ArtifactNotFound

            try:
                with self._bucket.open_reader(self._prefix + name) as file:
                    content: bytes = file.read()
            except ArtifactNotFound:
                return None
        return content

    def probe(self) -> None:
        """Write an empty file and remove it."""
        name = f"probe-{uuid.uuid4()}"
        self.write(name, b"")
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove the content under name, if there is any."""
        with _errors_named(self.where):
            if self._folder is not None:
                (self._folder / name).unlink(missing_ok=True)
            else:
                self._bucket.remove(self._prefix + name)  # S3 does not say that there was none


def _bucket(name: str) -> Boto3ArtifactStore:
    """Return a bucket of S3; the environment may name another endpoint (AWS_ENDPOINT_URL)."""
    try:
        import boto3
    except ImportError:
        raise StudyError('s3://... needs boto3, which is not installed: pip install "ranktune[s3]".') from None
    from optuna.artifacts import Boto3ArtifactStore  # loads boto3 where that is installed

    return Boto3ArtifactStore(name, client=boto3.client("s3"))


@contextmanager
def _errors_named(where: str) -> Iterator[None]:
    """Turn errors of the system and of boto3 into a StudyError with the place and the remedy."""
    try:
        yield
    except OSError as error:
        fault = fault_of_file(error)
        cause = f"{fault.cause}. {fault.remedy}" if fault else f"{error}. May you write there?"
        raise StudyError(f"cannot use the arrays in {'its files' if fault else where}: {cause}") from None
    except Exception as error:
        if not type(error).__module__.startswith(("botocore", "boto3")):
            raise
        raise StudyError(
            f"cannot use the artifacts in {where}: {error}. Are bucket, credentials, region and endpoint right?"
        ) from None
