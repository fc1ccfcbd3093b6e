"""Feature rows that arrive in blocks, joined to one array: dense or sparse, whichever is smaller.

A block holds entries (row, column, value). Dense takes 4 bytes a cell (float32), sparse 8 bytes an entry; solvers
are faster on dense rows of the same size, so data is dense where at least a quarter of the cells are written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints, Matrix, dense
from ranktune.solvers.core.compiled import SMALL, compiled
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.options import Layout
from ranktune.solvers.data.readers.parsing.parse_buffers import Columns
from ranktune.solvers.data.values import csr_of, widened

DENSE_SHARE = 0.25


class RowCollector:
    """Collects rows; each block is held dense or sparse, by the share of values written so far.

    Dense blocks are written to their place in one array while it has room for them, so that rows are not copied at the
    end. Pages of the array that are never written take no memory, so it may be longer than needed.
    """

    def __init__(self, layout: Layout, dtype: DTypeLike, n_features: int | None = None) -> None:
        self.layout, self.dtype, self.n_features = layout, np.dtype(dtype), n_features
        self.n_rows = self.n_entries = self.width = 0
        self._blocks: list[Features] = []
        self._array: Matrix | None = None
        self._in_array = 0

    def add(self, values: Floats, columns: Columns, ends: Ints, width: int, expected: int = 0) -> None:
        """Add len(ends) rows, columns counted from 0 and rising in a row, below width. The arrays are copied.

        expected is an estimate of the final number of rows, 0 where there is none.
        """
        self.n_rows += len(ends)
        self.n_entries += len(values)
        self.width = max(self.width, width)
        if self._is_dense(self.width):
            block = self._zeros(len(ends), width, expected)
            (scatter if self.n_entries > SMALL else _place)(values, columns, ends, block)
            self._blocks.append(block)
            return
        self._blocks.append(csr_block(values, columns, ends, width, self.dtype, keeps_zeros=self.layout == "written"))

    def joined(self, n_features: int) -> Features:
        """Return all rows, (n_rows, n_features), n_features at least width; the collection is empty afterwards."""
        try:
            return self._dense(n_features) if self._is_dense(n_features) else self._sparse(n_features)
        except MemoryError:
            need = self.n_rows * n_features * self.dtype.itemsize >> 20
            raise DataError(
                f"{self.n_rows} documents of {n_features} features do not fit in memory ({need} MB dense). "
                'Pass layout="sparse".'
            ) from None

    def _is_dense(self, n_features: int) -> bool:
        return is_dense(self.layout, self.n_entries, self.n_rows, n_features)

    def _zeros(self, n_rows: int, width: int, expected: int) -> Matrix:
        """Return zeros for n_rows more rows: a part of the one array, where it holds all rows so far and has room."""
        if not self._blocks and expected:
            try:
                self._array = np.zeros((max(expected, n_rows), self.n_features or width), dtype=self.dtype)
            except MemoryError:
                self._array = None
        end = self._in_array + n_rows
        if self._array is None or end != self.n_rows or end > len(self._array) or width > self._array.shape[1]:
            return np.zeros((n_rows, width), dtype=self.dtype)
        self._in_array = end
        return self._array[end - n_rows : end]

    def _dense(self, n_features: int) -> Features:
        if self._array is not None and self._in_array == self.n_rows and self._array.shape[1] == n_features:
            return self._array[: self.n_rows]
        whole = np.zeros((self.n_rows, n_features), dtype=self.dtype)
        at = 0
        self._blocks.reverse()
        while self._blocks:
            block = self._blocks.pop()  # each block is freed once it is copied
            whole[at : at + block.shape[0], : block.shape[1]] = dense(block)
            at += block.shape[0]
        return whole

    def _sparse(self, n_features: int) -> Features:
        matrix = sparse.vstack([widened(block, n_features, True) for block in self._blocks], format="csr")
        self._blocks = []
        matrix.has_canonical_format = True
        return matrix


@compiled
def scatter(values: Floats, columns: Columns, ends: Ints, out: Matrix) -> None:
    """Write the values of each row to their columns of out, (n_rows, n_features), which holds zeros."""
    k = 0
    for row in range(len(ends)):
        while k < ends[row]:
            out[row, columns[k]] = values[k]
            k += 1


def _place(values: Matrix, columns: Columns, ends: Ints, out: Matrix) -> None:
    """Do the same without a kernel."""
    out[np.repeat(np.arange(len(out)), np.diff(ends, prepend=0)), columns] = values


def is_dense(layout: Layout, n_entries: int, n_rows: int, n_features: int) -> bool:
    """Return whether rows of which n_entries values are written are held dense."""
    if layout != "auto":
        return layout == "dense"
    return n_entries >= DENSE_SHARE * n_rows * n_features


def csr_block(
    values: Floats, columns: Columns, ends: Ints, width: int, dtype: DTypeLike, *, keeps_zeros: bool = False
) -> sparse.csr_array:
    """Return rows of so many columns as a CSR array; zeros that are written are left out unless they are kept."""
    nonzero = values != 0.0
    if not (keeps_zeros or nonzero.all()):
        values, columns, ends = values[nonzero], columns[nonzero], np.concatenate([[0], np.cumsum(nonzero)])[ends]
    return csr_of(values.astype(dtype), columns.astype(np.int32), np.concatenate([[0], ends]), width)
