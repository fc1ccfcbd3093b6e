"""Files that are refused, in words."""

from pathlib import Path

import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.sources.catalogue import read


def assert_refused(path: Path, content: str | bytes | bytearray, words: str) -> None:
    """Write a file, and assert that the error of reading it matches a pattern."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=words):
        read(path)
