"""Arrays in .npy files that grow row by row, and that are mapped where they are what was declared of them.

What is declared of an array is its type with the byte order, its shape, and its checksum, the CRC-32 of its bytes as in
zip files: it notices damage at 4 GB a second.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Json
from ranktune.solvers.core.errors import DataError

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
