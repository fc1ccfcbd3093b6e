"""A bucket of a separate S3 server on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow.fs import FileSystem


@contextmanager
def s3_bucket(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[str]:
    """Serve a bucket, which the environment of this process and of those that it starts leads to."""
    server = pytest.importorskip("moto.server", reason="moto is not here")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    storage = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    storage.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*storage.get_host_and_port()))
        put(f"{name}/.made")
        yield f"s3://{name}"
    finally:
        storage.stop()


def put(place: str, content: bytes = b"") -> None:
    """Write BUCKET/KEY."""
    bucket, _, key = place.partition("/")
    files, _ = FileSystem.from_uri(f"s3://{bucket}?allow_bucket_creation=true")
    files.create_dir(bucket)
    with files.open_output_stream(f"{bucket}/{key}") as file:
        file.write(content)
