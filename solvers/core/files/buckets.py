"""Files in a bucket of S3. Credentials, region and endpoint (AWS_ENDPOINT_URL) are found as boto3 does."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ranktune.solvers.core.errors import ParameterError

SCHEME = "s3://"


class Unreachable(Exception):
    """A bucket cannot be reached, read or written; says why, and what may be wrong."""


@contextmanager
def _reached() -> Iterator[None]:
    """Raise Unreachable for the errors of boto3."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("botocore", "boto3")):
            raise
        raise Unreachable(f"{error}. Are bucket, credentials, region and endpoint right?") from None


class Bucket:
    """Files by name below a prefix, s3://BUCKET/PREFIX. Methods raise Unreachable."""

    @_reached()
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if f"{parts.scheme}://" != SCHEME or not parts.netloc:
            raise ParameterError(f"{url!r} names no bucket: it must be s3://BUCKET/PREFIX.")
        try:
            import boto3
        except ImportError:
            raise ParameterError('s3://... needs boto3, which is not installed: pip install "ranktune[s3]".') from None
        self.name, prefix = parts.netloc, parts.path.strip("/")
        self.prefix = f"{prefix}/" if prefix else ""
        self._client: Any = boto3.client("s3")

    @_reached()
    def names(self) -> list[tuple[str, str, int]]:
        """Return the name, the tag and the size of each file, by name."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.prefix)
        entries = [entry for page in pages for entry in page.get("Contents", [])]
        return sorted((e["Key"].removeprefix(self.prefix), str(e["ETag"]), int(e["Size"])) for e in entries)

    @_reached()
    def download(self, name: str, path: Path) -> None:
        """Write the content under name to a new file."""
        self._client.download_file(self.name, self.prefix + name, str(path))

    @_reached()
    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        try:
            content: bytes = self._client.get_object(Bucket=self.name, Key=self.prefix + name)["Body"].read()
        except self._client.exceptions.NoSuchKey:
            return None
        return content

    @_reached()
    def write(self, name: str, content: bytes) -> None:
        """Write content under name: a reader sees all of it or nothing."""
        self._client.upload_fileobj(io.BytesIO(content), self.name, self.prefix + name)

    @_reached()
    def remove(self, name: str) -> None:
        """Remove the content under name, if there is any."""
        self._client.delete_object(Bucket=self.name, Key=self.prefix + name)
