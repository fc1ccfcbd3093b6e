"""Arrays in .npy files that grow row by row, and that are mapped only after their headers were checked.

The checksum of an array is the CRC-32 of its bytes, as in zip files: it notices damage at 4 GB a second.
"""

from __future__ import annotations

import math
import os
import zlib
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Json
from ranktune.solvers.core.errors import DataError

_CHUNK = 1 << 22
_REMEDY = "Convert the source again."


class Declared(NamedTuple):
    """What a folder says of one of its arrays."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    checksum: int | None = None

    def as_json(self) -> Json:
        """Return the declaration as JSON values; the type names the byte order."""
        return {"dtype": self.dtype.str, "shape": list(self.shape), "crc32": self.checksum}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Return what as_json gave. Raises ValueError, KeyError or TypeError for anything else."""
        shape = tuple(value["shape"])
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError(f"an array has shape {value['shape']}")
        dtype = np.dtype(str(value["dtype"]))
        if dtype.hasobject or dtype.fields is not None:
            raise ValueError(f"an array is of type {value['dtype']}")
        checksum = value["crc32"]
        return cls(dtype, shape, None if checksum is None else int(checksum))

    @property
    def n_bytes(self) -> int:
        """The size of the array without its header."""
        return math.prod(self.shape) * self.dtype.itemsize


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

    def close(self, *, sync: bool = True) -> Declared:
        """Write the header, and with sync all content through to the disk, and return what the array is."""
        with self._file:
            self._file.seek(0)
            size = self._write_header()
            assert size == self._header_size  # numpy leaves room in a header for the length to grow
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
        return Declared(self.dtype, (self.n_rows, *self.row_shape), self.checksum)

    def abandon(self) -> None:
        """Close the file, which will be removed."""
        self._file.close()

    def _write_header(self) -> int:
        shape = (self.n_rows, *self.row_shape)
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(self._file, header)
        return self._file.tell()


def header_of(path: Path) -> tuple[Declared, int]:
    """Return what the header of a .npy file declares, and its size. Raises DataError where there is none."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
            if is_fortran or dtype.hasobject:
                raise ValueError
            return Declared(dtype, shape), file.tell()
    except (OSError, ValueError, TypeError, SyntaxError, EOFError) as error:  # SyntaxError: of a damaged header
        reason = error.strerror if isinstance(error, OSError) else "it is no array of numbers or text that was stored"
        raise DataError(f"{path}: cannot be read ({reason}). {_REMEDY}") from None


def mapped(path: Path, declared: Declared) -> Array:
    """Return the array of a .npy file, mapped: its pages load when they are touched, and are shared.

    Raises DataError where the file is not what was declared: another type, byte order, shape or size.

    Copy-on-write rather than read-only: numba would compile a second variant of each kernel for read-only arrays.
    """
    if not declared.dtype.isnative:
        raise DataError(f"{path}: was written by a machine of the other byte order. Convert the source on this one.")
    header, offset = header_of(path)
    if (header.shape, header.dtype) != (declared.shape, declared.dtype):
        raise DataError(
            f"{path}: holds {header.dtype} of shape {header.shape}, not {declared.dtype} of shape {declared.shape}. "
            f"{_REMEDY}"
        )
    size = path.stat().st_size - offset
    if size != declared.n_bytes:
        raise DataError(
            f"{path}: holds {size} bytes instead of {declared.n_bytes}: it is cut off or damaged. {_REMEDY}"
        )
    if size == 0:
        return np.empty(declared.shape, dtype=declared.dtype)
    return np.asarray(np.memmap(path, dtype=declared.dtype, mode="c", offset=offset, shape=declared.shape))


def check_content(path: Path, array: Array, declared: Declared) -> None:
    """Raise DataError unless the bytes of the array have the declared checksum, if there is one."""
    if declared.checksum is None:
        return
    content, checksum = array.reshape(-1).view(np.uint8).data, 0
    for first in range(0, len(content), _CHUNK):
        checksum = zlib.crc32(content[first : first + _CHUNK], checksum)
    if checksum != declared.checksum:
        raise DataError(f"{path}: is damaged: its content is not what was written. {_REMEDY}")
