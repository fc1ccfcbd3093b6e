"""Files of arrays: archives, .npz, some with a header of JSON values, and .npy files that grow row by row.

Equal content gives equal archives. An archive has a checksum for each member. All bytes of a member are compared with
it, and the length that its header declares with theirs, before an array is made. Reading runs no code.

An .npy file is mapped where it is what was declared of it: its type with the byte order, its shape, and its checksum,
the CRC-32 of its bytes as in zip files, which notices damage at 4 GB a second.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Json, JsonView
from ranktune.solvers.core.errors import Damaged, DataError

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


_REMEDY = "Convert the source again."


class GrowingArray:
    """An array that is written to a new .npy file by blocks of rows; `close` writes its length into the header."""

    def __init__(self, path: Path, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype, self.row_shape = np.dtype(dtype), row_shape
        self.n_rows = self.checksum = 0
        self._file = open(path, "wb")
        self._header_size = self._write_header()

    def append(self, rows: Array) -> None:
        """Write rows, of any type that can be cast to the array's. Raises OSError where that fails."""
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        assert rows.shape[1:] == self.row_shape
        content = rows.data.cast("B") if rows.size else memoryview(b"")
        self._file.write(content)
        self.checksum = zlib.crc32(content, self.checksum)
        self.n_rows += len(rows)

    def close(self, *, sync: bool = True) -> Json:
        """Write the header, and with sync all content through to the disk, and return what is declared of the array."""
        with self._file:
            self._file.seek(0)
            size = self._write_header()
            assert size == self._header_size  # numpy leaves room in a header for the length to grow
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
        return declared(self.dtype, (self.n_rows, *self.row_shape), self.checksum)

    def abandon(self) -> None:
        """Close the file, which will be removed."""
        self._file.close()

    def _write_header(self) -> int:
        shape = (self.n_rows, *self.row_shape)
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(self._file, header)
        return self._file.tell()


def write_array(
    path: Path, dtype: DTypeLike, row_shape: tuple[int, ...], blocks: Iterable[Array], *, sync: bool = False
) -> Json:
    """Write an array into a file, block by block, with sync through to the disk, and return what is declared of it."""
    array = GrowingArray(path, dtype, row_shape)
    try:
        for block in blocks:
            array.append(block)
        return array.close(sync=sync)
    finally:
        array.abandon()


def declared(dtype: np.dtype[np.generic], shape: tuple[int, ...], checksum: int | None = None) -> Json:
    """Return what is declared of an array, as JSON values."""
    return {"dtype": dtype.str, "shape": list(shape), "crc32": checksum}


def mapped(path: Path, wanted: Json | None = None) -> Array:
    """Return the array of a .npy file, mapped: its pages load when they are touched, and are shared.

    Raises DataError where it is no array, or not the one that was wanted by what was declared of it.

    Copy-on-write rather than read-only: numba would compile a second variant of each kernel for read-only arrays.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="c")
        size = path.stat().st_size - array.offset
        if not array.flags.c_contiguous or size != array.nbytes:
            raise ValueError
    except (OSError, ValueError, TypeError, SyntaxError, EOFError) as error:  # SyntaxError: of a damaged header
        what = "it is no array of numbers or text that was stored, or is cut off or longer"
        reason = error.strerror if isinstance(error, OSError) else what
        raise DataError(f"{path}: cannot be read ({reason}). {_REMEDY}") from None
    if wanted is not None and (array.dtype.str, list(array.shape)) != (wanted["dtype"], wanted["shape"]):
        dtype, shape = np.dtype(wanted["dtype"]), tuple(wanted["shape"])
        raise DataError(f"{path}: holds {array.dtype} of shape {array.shape}, not {dtype} of shape {shape}. {_REMEDY}")
    if not array.dtype.isnative:
        raise DataError(f"{path}: was written by a machine of the other byte order. Convert the source on this one.")
    return np.asarray(array)


def check_content(path: Path, array: Array, wanted: Json | None) -> None:
    """Raise DataError unless the bytes of the array have the declared checksum, if there is one."""
    if wanted is not None and wanted["crc32"] not in (None, zlib.crc32(array.reshape(-1).view(np.uint8).data)):
        raise DataError(f"{path}: is damaged: its content is not what was written. {_REMEDY}")
