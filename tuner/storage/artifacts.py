"""Where arrays and data of a study are kept, for several machines to share: a folder, or a bucket of S3 or its like."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from optuna.artifacts import Boto3ArtifactStore, FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.storage.retrying import fault_of_file


class Artifacts:
    """A place for arrays of bytes by name. Raises StudyError where it cannot be reached, read or written."""

    def __init__(self, where: str | Path) -> None:
        """Open a folder, or s3://BUCKET/PREFIX (credentials, region and endpoint as boto3 finds them)."""
        self.where = str(where)
        self._prefix, self._folder = "", None if "://" in self.where else Path(where)
        self._store: Any
        if self._folder is not None:
            with _told(self.where):
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
        """Keep content durably under name: whoever reads sees all of it or none."""
        with _told(self.where):
            if self._folder is None:
                self._store.write(self._prefix + name, io.BytesIO(content))
                return
            self._store.write(f"{name}.new", io.BytesIO(content))
            with open(self._folder / f"{name}.new", "rb+") as file:
                os.fsync(file.fileno())
            os.replace(self._folder / f"{name}.new", self._folder / name)

    def read(self, name: str) -> bytes | None:
        """Return what is kept under name, None where nothing is."""
        with _told(self.where):
            try:
                with self._store.open_reader(self._prefix + name) as file:
                    content: bytes = file.read()
            except ArtifactNotFound:
                return None
        return content

    def probe(self) -> None:
        """Write something and remove it."""
        name = f"probe-{uuid.uuid4()}"
        self.write(name, b"")
        self.remove(name)

    def remove(self, name: str) -> None:
        """Forget what is kept under name, if anything is."""
        with _told(self.where), suppress(ArtifactNotFound, FileNotFoundError):
            self._store.remove(self._prefix + name)


def _client() -> Any:
    """Return a client of S3; the environment may name another endpoint (AWS_ENDPOINT_URL)."""
    try:
        import boto3
    except ImportError:
        raise StudyError('s3://... needs boto3, which is not installed: pip install "ranktune[s3]".') from None
    return boto3.client("s3")


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Turn errors of the system and of boto3 into one that names the place and the remedy."""
    try:
        yield
    except OSError as error:
        fault = fault_of_file(error)
        told = f"{fault.cause}. {fault.remedy}" if fault else f"{error}. May you write there?"
        raise StudyError(f"cannot use the arrays in {'its files' if fault else where}: {told}") from None
    except Exception as error:
        if not type(error).__module__.startswith(("botocore", "boto3")):
            raise
        raise StudyError(
            f"cannot use the artifacts in {where}: {error}. Are bucket, credentials, region and endpoint right?"
        ) from None
