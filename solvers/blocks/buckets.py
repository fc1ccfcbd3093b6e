"""Stored queries in a bucket of S3, which a worker downloads once into the cache of its user."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.files import draft_of, is_own_folder, private_folder
from ranktune.solvers.data.disk.stored import read_queries

SCHEME = "s3://"


def fetched(url: str) -> Path:
    """Return a folder with the stored queries at s3://BUCKET/PREFIX, downloaded unless the cache has them.

    The checksums of all arrays are compared after the download. Other content of the bucket gets another folder.
    Credentials, region and endpoint are found as boto3 does. Raises DataError where the queries cannot be read.
    """
    bucket, prefix = _parts(url)
    with _errors_named(url):
        client = _client()
        objects = sorted(_objects(client, bucket, prefix))
        if not objects:
            raise DataError(f"{url}: there is nothing. Give the prefix of the files of one stored data set.")
        digest = hashlib.blake2b(repr((url, objects)).encode(), digest_size=16).hexdigest()
        home = private_folder("blocks")
        folder = home / digest
        if not (folder.is_dir() and is_own_folder(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            _download(client, bucket, prefix, [name for name, _, _ in objects], folder)
    return folder


def _parts(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    if not (parts.netloc and parts.path.strip("/")):
        raise ParameterError(f"{url!r} names no stored data set: it must be s3://BUCKET/PREFIX.")
    return parts.netloc, f"{parts.path.strip('/')}/"


def _client() -> Any:
    try:
        import boto3
    except ImportError:
        raise ParameterError('s3://... needs boto3, which is not installed: pip install "ranktune[s3]".') from None
    return boto3.client("s3")


def _objects(client: Any, bucket: str, prefix: str) -> Iterator[tuple[str, str, int]]:
    """Yield the name below prefix, the tag and the size of each file."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", []):
            name = entry["Key"][len(prefix) :]
            if name != Path(name).name:
                raise DataError(
                    f"s3://{bucket}/{prefix} holds {name[:80]!r}, which is no file of a stored data set: give the "
                    "prefix of one, which ranktune.convert made."
                )
            yield name, str(entry["ETag"]), int(entry["Size"])


def _download(client: Any, bucket: str, prefix: str, names: list[str], folder: Path) -> None:
    """Download files into a new folder, as a whole or not at all."""
    fresh = draft_of(folder)
    fresh.mkdir(mode=0o700)
    try:
        for name in names:
            client.download_file(bucket, prefix + name, str(fresh / name))
        read_queries(fresh, check=True)
        try:
            os.rename(fresh, folder)
        except OSError:
            if not is_own_folder(folder):  # another process has downloaded it meanwhile
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def _errors_named(url: str) -> Iterator[None]:
    """Turn errors of the system and of boto3 into a DataError with the place and the remedy."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{url}: cannot be kept in the cache ({error}). RANKTUNE_CACHE names another folder.") from None
    except Exception as error:
        if not type(error).__module__.startswith(("botocore", "boto3")):
            raise
        raise DataError(f"{url}: {error}. Are bucket, credentials, region and endpoint right?") from None
