"""What is done to a file: its content is damaged, or it is swapped, removed, closed to readers or made a folder."""

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

SWAPPED, GONE, FOLDER, NO_PERMISSION = "swapped", "gone", "a folder", "no permission"


def _block(content: bytes, generator: np.random.Generator, fill: Callable[[int], bytes]) -> bytes:
    """Return content with one of its blocks of at most 512 bytes replaced."""
    first = int(generator.integers(max(len(content), 1))) // 512 * 512
    size = len(content[first : first + 512])
    return content[:first] + fill(size) + content[first + size :]


def _changed(content: bytes, generator: np.random.Generator, *, bits: int) -> bytes:
    """Return content with one byte of which one bit, or several, are another."""
    if not content:
        return b"\x01"
    changed = bytearray(content)
    changed[int(generator.integers(len(content)))] ^= 1 << int(generator.integers(8)) if bits == 1 else 0x5A
    return bytes(changed)


CONTENTS: Mapping[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "cut off": lambda content, generator: content[: int(generator.integers(max(len(content), 1)))],
    "empty": lambda content, generator: b"",
    "zeros": lambda content, generator: bytes(len(content)),
    "block of zeros": lambda content, generator: _block(content, generator, bytes),
    "block of garbage": lambda content, generator: _block(content, generator, generator.bytes),
    "one bit": lambda content, generator: _changed(content, generator, bits=1),
    "one byte": lambda content, generator: _changed(content, generator, bits=8),
    "garbage": lambda content, generator: generator.bytes(max(len(content), 1)),
    "garbage appended": lambda content, generator: content + generator.bytes(int(generator.integers(1, 600))),
}
"""What is done to the content of a file."""
HARMS = (*CONTENTS, SWAPPED, GONE, FOLDER, NO_PERMISSION)


def is_possible(harm: str) -> bool:
    """Return whether this process can do a harm: permissions do not bind an administrator."""
    return harm != NO_PERMISSION or _permissions_bind()


@cache
def _permissions_bind() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0)
        return not os.access(file.name, os.R_OK)


def do(harm: str, path: Path, seed: int, other: Path | None) -> bool:
    """Harm the file at path; other is the file of another study. Return whether anything changed."""
    if harm in CONTENTS:
        before = path.read_bytes()
        after = CONTENTS[harm](before, np.random.default_rng(seed))
        path.write_bytes(after)
        return after != before
    if harm == SWAPPED:
        if other is None or other.read_bytes() == path.read_bytes():
            return False
        path.write_bytes(other.read_bytes())
    elif harm == NO_PERMISSION:
        path.chmod(0)
    else:
        path.unlink()
        if harm == FOLDER:
            path.mkdir()
    return True
