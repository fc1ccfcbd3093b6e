"""Stored queries in a bucket of S3, which a worker downloads once into the cache of its user."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.files.buckets import SCHEME, Bucket, Unreachable
from ranktune.solvers.core.files.private import kept, private_folder
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.disk.writer import INDEX


def fetched(source: str | Path) -> Path:
    """Return a folder of stored queries; those at s3://BUCKET/PREFIX are downloaded unless the cache has them.

    The checksums of all arrays are compared after the download. Other content of the bucket gets another folder.
    Raises DataError where the queries cannot be read.
    """
    url = str(source)
    if not url.startswith(SCHEME):
        return Path(source)
    try:
        bucket = Bucket(url)
        if not bucket.prefix:
            raise ParameterError(f"{url!r} names no stored data set: it must be s3://BUCKET/PREFIX.")
        files = bucket.names()
        if not files:
            raise DataError(f"{url}: there is nothing. Give the prefix of the files of one stored data set.")
        for name, _, _ in files:
            if name != Path(name).name:
                raise DataError(
                    f"{url} holds {name[:80]!r}, which is no file of a stored data set: give the prefix of one, which "
                    "ranktune.convert made."
                )
        about = bucket.read(INDEX)  # with the checksums of all arrays
        digest = hashlib.blake2b(repr((url, files, about)).encode(), digest_size=16).hexdigest()
        return kept(private_folder("blocks") / digest, Path, lambda folder: _download(bucket, files, folder))
    except Unreachable as error:
        raise DataError(f"{url}: {error}") from None
    except OSError as error:
        raise DataError(f"{url}: cannot be kept in the cache ({error}). RANKTUNE_CACHE names another folder.") from None


def _download(bucket: Bucket, files: list[tuple[str, int, int]], folder: Path) -> None:
    """Download files into a new folder."""
    for name, _, _ in files:
        bucket.download(name, folder / name)
    read_queries(folder, check=True)
