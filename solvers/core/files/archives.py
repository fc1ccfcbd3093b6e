"""Archives of arrays, .npz, with a header of JSON values where there is one. Equal content gives equal bytes.

An archive has a checksum for each member. All bytes of a member are compared with it, and the length that its header
declares with theirs, before an array is made. Reading runs no code.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Json, JsonView
from ranktune.solvers.core.errors import Damaged

UNREADABLE = (
    ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, SyntaxError, ArithmeticError, RuntimeError,
    zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
"""What reading damaged archives and arrays may raise."""


def write_archive(arrays: Mapping[str, Array], header: JsonView | None = None, *, small: bool = False) -> bytes:
    """Return an archive of arrays, after the header if there is one; with small it is compressed."""
    if header is not None:
        arrays = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED) as archive:
        for name, values in arrays.items():  # np.savez takes no names such as "file"
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return packed.getvalue()


@contextmanager
def readable(source: Path | bytes) -> Iterator[None]:
    """Raise Damaged where the block, which reads an archive, finds what was not written there."""
    try:
        yield
    except Damaged:
        raise
    except UNREADABLE as error:
        name = "the archive" if isinstance(source, bytes) else source
        raise Damaged(f"cannot read {name}: {type(error).__name__}: {error}.") from None


def read_members(source: Path | bytes, most: float = math.inf) -> dict[str, bytes]:
    """Return name -> content of the members of an archive, of so many bytes at most. Raises Damaged."""
    with readable(source), zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        members = archive.infolist()
        if archive.comment or any(member.comment for member in members):
            raise ValueError("it has comments, which may hide members")
        if len({*archive.namelist()}) < len(members) or min((member.header_offset for member in members), default=0):
            raise ValueError("it is cut off, or has a member twice")
        if sum(member.file_size for member in members) > most:
            raise ValueError("it is too large when unpacked")
        return {member.filename: archive.read(member) for member in members}


def read_archive(source: Path | bytes, most: float = math.inf) -> dict[str, Array]:
    """Return name -> array of an archive, of so many bytes at most. Raises Damaged."""
    with readable(source):
        return {name.removesuffix(".npy"): _array(content) for name, content in read_members(source, most).items()}


def read_headed(source: Path | bytes, most: float = math.inf) -> tuple[Json, dict[str, Array]]:
    """Return the header of an archive, which is its first member, and its arrays. Raises Damaged."""
    arrays = read_archive(source, most)
    with readable(source):
        header: Json = json.loads(arrays.pop(next(iter(arrays), "")).tobytes())  # whose name older releases chose
        return header, arrays


def _array(content: bytes) -> Array:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or not dtype.itemsize or size != len(content) - file.tell():
        raise ValueError(f"an array claims to be {dtype} of shape {shape}, in {len(content) - file.tell()} bytes")
    return np.ndarray(shape, dtype, content, file.tell(), order="F" if is_fortran else "C").copy()
