"""Files in a bucket of S3. Credentials, region and endpoint (AWS_ENDPOINT_URL) are found as Arrow does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from ranktune.solvers.core.errors import ParameterError

SCHEME = "s3://"


class Unreachable(Exception):
    """A bucket cannot be reached, read or written; says why, and what may be wrong."""


@contextmanager
def _reached() -> Iterator[None]:
    """Raise Unreachable for the errors of Arrow, but for that of a missing file: they have no number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise Unreachable(f"{error}. Are bucket, credentials, region and endpoint right?") from None


class Bucket:
    """Files by name below a prefix, s3://BUCKET/PREFIX. Methods raise Unreachable."""

    @_reached()
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if f"{parts.scheme}://" != SCHEME or not parts.netloc:
            raise ParameterError(f"{url!r} names no bucket: it must be s3://BUCKET/PREFIX.")
        from pyarrow.fs import FileSystem

        self.name, prefix = parts.netloc, parts.path.strip("/")
        self.prefix = f"{prefix}/" if prefix else ""
        self._start = f"{self.name}/{self.prefix}"
        self._files, _ = FileSystem.from_uri(f"{SCHEME}{self.name}?allow_delayed_open=true")  # one request for a file

    @_reached()
    def names(self) -> list[tuple[str, int, int]]:
        """Return the name, the time and the size of each file, by name."""
        from pyarrow.fs import FileSelector

        place = FileSelector(self._start.rstrip("/"), recursive=True, allow_not_found=True)
        found = [file for file in self._files.get_file_info(place) if file.is_file]
        if not found:
            self._check()
        return sorted((file.path.removeprefix(self._start), file.mtime_ns, file.size) for file in found)

    @_reached()
    def download(self, name: str, path: Path) -> None:
        """Write the content under name to a new file."""
        with self._files.open_input_file(self._start + name) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, 8 << 20)

    @_reached()
    def read(self, name: str) -> bytes | None:
        """Return the content under name, None if there is none."""
        try:
            with self._files.open_input_file(self._start + name) as source:
                content: bytes = source.read()
        except FileNotFoundError:
            self._check()
            return None
        return content

    @_reached()
    def write(self, name: str, content: bytes) -> None:
        """Write content under name: a reader sees all of it or nothing."""
        target = self._files.open_output_stream(self._start + name)
        target.write(content)
        target.close()  # not by a block, which would also close, and so keep, what an error cut short

    @_reached()
    def remove(self, name: str) -> None:
        """Remove the content under name, if there is any."""
        try:
            self._files.delete_file(self._start + name)
        except FileNotFoundError:
            self._check()

    def _check(self) -> None:
        """Raise OSError where the bucket itself is not there: Arrow says of its files only that there are none."""
        if self._files.get_file_info(self.name).type.name == "NotFound":
            raise OSError(f"there is no bucket {self.name!r}")
