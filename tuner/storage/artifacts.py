"""The store of arrays and data of a study: a folder, or a bucket of S3 that several machines share."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from optuna.artifacts import Boto3ArtifactStore, FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.files import atomic_write
from ranktune.tuner.storage.retrying import fault_of_file


class Artifacts:
    """Bytes by name. Methods raise StudyError if the store cannot be reached, read or written."""

    def __init__(self, where: str | Path) -> None:
        """Open a folder, or s3://BUCKET/PREFIX (credentials, region and endpoint as boto3 finds them)."""
        self.where = str(where)
        self._prefix, self._folder = "", None if "://" in self.where else Path(where)
        self._store: FileSystemArtifactStore | Boto3ArtifactStore
        if self._folder is not None:
            with _errors_named(self.where):
                self._folder.mkdir(parents=True, exist_ok=True)
            self._store = FileSystemArtifactStore(self._folder)
            return
        parts = urlsplit(self.where)
        if parts.scheme != "s3" or not parts.netloc:
            raise ParameterError(
                f"artifacts={self.where!r}: it must be a folder that all machines see, or s3://BUCKET/PREFIX."
            )
        self._prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
        self._store = Boto3ArtifactStore(parts.netloc, client=_client())

    def write(self, name: str, content: bytes) -> None:
        """Write content under name durably: a reader sees all of it or nothing."""
        with _errors_named(self.where):
            if self._folder is None:
                self._store.write(self._prefix + name, io.BytesIO(content))
            else:
                atomic_write(self._folder / name, content)

    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        with _errors_named(self.where):
            try:
                with self._store.open_reader(self._prefix + name) as file:
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
        with _errors_named(self.where), suppress(ArtifactNotFound, FileNotFoundError):
            self._store.remove(self._prefix + name)


def _client() -> Any:
    """Return a client of S3; the environment may name another endpoint (AWS_ENDPOINT_URL)."""
    try:
        import boto3
    except ImportError:
        raise StudyError('s3://... needs boto3, which is not installed: pip install "ranktune[s3]".') from None
    return boto3.client("s3")


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
