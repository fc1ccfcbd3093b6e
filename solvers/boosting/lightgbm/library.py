"""LightGBM through its C interface, and features in its bins, which folds, samples and trials of one data set share.

Importing the Python package costs each process 1.80 s and 118 MB, since it imports scikit-learn and pandas; the shared
library alone costs 0.31 s and 43 MB. Source: "C API" in the documentation of LightGBM, LightGBM/c_api.h; the functions
used are the same in 4.6 and 4.7.

Bins depend on features alone. Those of queries that were selected from others (Queries.select) are the bins of the
queries that they come from, which are kept until those are gone.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Mapping
from ctypes import c_char_p, c_int, c_int32, c_int64, c_void_p
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ranktune.solvers.boosting.bins import shared_by
from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Array, Features, Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import release_freed
from ranktune.solvers.data.origins import Kept
from ranktune.solvers.data.queries import Queries

Parameters: TypeAlias = Mapping[str, object]

_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.int32): 2, np.dtype(np.int64): 3}
"""The codes of types in the interface."""

ZERO_THRESHOLD = 1e-35
"""Values up to it are 0 to LightGBM."""

MANY_DOCUMENTS = 100_000
"""Documents from which on freed memory is returned to the system after binning."""

_SIGNATURES: Mapping[str, tuple[type, ...]] = {
    "LGBM_DatasetCreateFromMat": (c_void_p, c_int, c_int32, c_int32, c_int, c_char_p, c_void_p, c_void_p),
    "LGBM_DatasetCreateFromCSR": (
        *(c_void_p, c_int, c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64),
        *(c_char_p, c_void_p, c_void_p),
    ),
    "LGBM_SampleIndices": (c_int32, c_char_p, c_void_p, c_void_p),
    "LGBM_DatasetCreateFromSampledColumn": (
        *(c_void_p, c_void_p, c_int32, c_void_p, c_int32, c_int32, c_int64, c_char_p, c_void_p),
    ),
    "LGBM_DatasetPushRows": (c_void_p, c_void_p, c_int, c_int32, c_int32, c_int32),
    "LGBM_DatasetGetSubset": (c_void_p, c_void_p, c_int32, c_char_p, c_void_p),
    "LGBM_DatasetSetField": (c_void_p, c_char_p, c_void_p, c_int, c_int),
    "LGBM_DatasetFree": (c_void_p,),
    "LGBM_BoosterCreate": (c_void_p, c_char_p, c_void_p),
    "LGBM_BoosterUpdateOneIter": (c_void_p, c_void_p),
    "LGBM_BoosterUpdateOneIterCustom": (c_void_p, c_void_p, c_void_p, c_void_p),
    "LGBM_BoosterGetNumPredict": (c_void_p, c_int, c_void_p),
    "LGBM_BoosterGetPredict": (c_void_p, c_int, c_void_p, c_void_p),
    "LGBM_BoosterSaveModelToString": (c_void_p, c_int, c_int, c_int, c_int64, c_void_p, c_void_p),
    "LGBM_BoosterFree": (c_void_p,),
}


class Data:
    """Features in bins, and for training the labels, lengths of queries and weights. The features are not kept."""

    def __init__(self, features: Features, params: Parameters) -> None:
        self._handle = c_void_p()
        where = ctypes.byref(self._handle)
        if not isinstance(features, np.ndarray):
            indices = np.ascontiguousarray(features.indices, dtype=np.int32)
            data, starts = np.ascontiguousarray(features.data), np.ascontiguousarray(features.indptr)
            counts = (len(starts), len(data), features.shape[1])
            numbers = (*_pointer(starts), indices.ctypes.data, *_pointer(data), *counts)
            _call("LGBM_DatasetCreateFromCSR", *numbers, _text(params), None, where)
        else:
            dense = np.ascontiguousarray(features)
            _call("LGBM_DatasetCreateFromMat", *_pointer(dense), *dense.shape, 1, _text(params), None, where)
        weakref.finalize(self, _library().LGBM_DatasetFree, self._handle)
        if features.shape[0] > MANY_DOCUMENTS:
            release_freed()  # the sample that gave the limits of the bins

    @classmethod
    def from_blocks(cls, blocks: Callable[[], Iterable[Array]], n_rows: int, params: Parameters) -> Data:
        """Return dense features in bins, the same as those of all rows at once, from two passes over blocks of rows.

        The first computes the limits of the bins from the sample that LightGBM draws; the second puts the rows into
        bins.
        """
        data = object.__new__(cls)
        data._handle = c_void_p()
        _create_from_sample(_sample(blocks(), n_rows, params), n_rows, params, data._handle)
        weakref.finalize(data, _library().LGBM_DatasetFree, data._handle)
        release_freed()
        first = 0
        for block in blocks():
            rows = np.ascontiguousarray(block)
            _call("LGBM_DatasetPushRows", data._handle, *_pointer(rows), *rows.shape, first)
            first += len(rows)
        return data

    def subset(self, rows: Ints, params: Parameters) -> Data:
        """Return a copy of the bins of some rows, ascending."""
        part = object.__new__(Data)
        part._handle = c_void_p()
        chosen = rows.astype(np.int32)
        _call(
            *("LGBM_DatasetGetSubset", self._handle, chosen.ctypes.data, len(chosen), _text(params)),
            ctypes.byref(part._handle),
        )
        weakref.finalize(part, _library().LGBM_DatasetFree, part._handle)
        return part

    def describe(
        self,
        labels: Floats,
        lengths: Ints,
        weights: Floats | None = None,
        scores: Floats | None = None,
        positions: Ints | None = None,
    ) -> None:
        """Set what trees are grown for: the label, weight, first score and position of each document, (n_documents,).

        lengths are the numbers of documents of the queries, (n_queries,).
        """
        self._set("label", labels.astype(np.float32))
        self._set("group", lengths.astype(np.int32))
        if weights is not None:
            self._set("weight", weights.astype(np.float32))
        if scores is not None:
            self._set("init_score", scores.astype(np.float64))
        if positions is not None:
            self._set("position", positions.astype(np.int32))

    def _set(self, name: str, values: Array) -> None:
        kind = _TYPES[values.dtype]
        _call("LGBM_DatasetSetField", self._handle, name.encode(), values.ctypes.data, len(values), kind)


class TreeBooster:
    """A booster that grows trees on data."""

    def __init__(self, data: Data, params: Parameters) -> None:
        self._data = data  # the booster keeps reading it
        self._handle = c_void_p()
        _call("LGBM_BoosterCreate", data._handle, _text(params), ctypes.byref(self._handle))
        weakref.finalize(self, _library().LGBM_BoosterFree, self._handle)

    def update(self) -> bool:
        """Grow one more tree; return whether no further split is possible."""
        over = c_int(0)
        _call("LGBM_BoosterUpdateOneIter", self._handle, ctypes.byref(over))
        return over.value == 1

    def update_by(self, gradient: Floats, curvature: Floats) -> bool:
        """Grow one more tree by derivatives for each document, (n_documents,); return as update does."""
        over, values = c_int(0), [np.ascontiguousarray(v, dtype=np.float32) for v in (gradient, curvature)]
        pointers = [v.ctypes.data for v in values]
        _call("LGBM_BoosterUpdateOneIterCustom", self._handle, *pointers, ctypes.byref(over))
        return over.value == 1

    def scores(self) -> Floats:
        """Return the scores of the training documents so far, (n_documents,)."""
        count = c_int64(0)
        _call("LGBM_BoosterGetNumPredict", self._handle, 0, ctypes.byref(count))
        scores = np.empty(count.value)
        _call("LGBM_BoosterGetPredict", self._handle, 0, ctypes.byref(count), scores.ctypes.data)
        return scores

    def text(self, first: int, count: int) -> str:
        """Return count trees, starting at number first, in the text format of LightGBM."""
        size, needed = 2**16, c_int64(0)
        while True:
            buffer = ctypes.create_string_buffer(size)
            _call(
                *("LGBM_BoosterSaveModelToString", self._handle, first, count, 0, size),
                *(ctypes.byref(needed), ctypes.addressof(buffer)),
            )
            if needed.value <= size:
                return buffer.value.decode()
            size = needed.value


@lru_cache
def _library() -> ctypes.CDLL:
    shared = libraries.shared("lightgbm")
    shared.LGBM_GetLastError.restype = c_char_p
    for name, types in _SIGNATURES.items():
        getattr(shared, name).argtypes = types
    return shared


def _call(name: str, *arguments: object) -> None:
    """Call a function of the interface. Raises DataError with the message of LightGBM where it fails."""
    library = _library()
    if getattr(library, name)(*arguments) != 0:
        message = library.LGBM_GetLastError().decode(errors="replace").strip()
        raise DataError(f"LightGBM cannot learn from these data: {message}.")


def _sample(blocks: Iterable[Array], n_rows: int, params: Parameters) -> Floats:
    """Return the rows that LightGBM draws to compute bins, ascending, of n_rows in blocks."""
    numbers, count = np.empty(n_rows, dtype=np.int32), c_int32(0)
    _call("LGBM_SampleIndices", n_rows, _text(params), numbers.ctypes.data, ctypes.byref(count))
    numbers, first, parts = numbers[: count.value], 0, []
    for block in blocks:
        a, b = np.searchsorted(numbers, [first, first + len(block)])
        parts.append(block[numbers[a:b] - first])
        first += len(block)
    return np.concatenate(parts).astype(np.float64)


def _create_from_sample(sample: Floats, n_rows: int, params: Parameters, handle: c_void_p) -> None:
    """Make an empty data set of n_rows, whose bins come from a sample of rows: its nonzero values, by column."""
    useful = (np.abs(sample) > ZERO_THRESHOLD) | np.isnan(sample)
    numbers = [np.flatnonzero(column).astype(np.int32) for column in useful.T]
    values = [np.ascontiguousarray(column[rows]) for column, rows in zip(sample.T, numbers, strict=True)]
    pointers = [np.array([v.ctypes.data for v in arrays], dtype=np.uintp) for arrays in (values, numbers)]
    counts = np.array([len(rows) for rows in numbers], dtype=np.int32)
    _call(
        *("LGBM_DatasetCreateFromSampledColumn", pointers[0].ctypes.data, pointers[1].ctypes.data, sample.shape[1]),
        *(counts.ctypes.data, len(sample), n_rows, n_rows, _text(params), ctypes.byref(handle)),
    )


def _pointer(values: Array) -> tuple[int, int]:
    return values.ctypes.data, _TYPES[values.dtype]


def _text(params: Parameters) -> bytes:
    """Return parameters in the text format of LightGBM."""
    texts = {name: ",".join(map(repr, v)) if isinstance(v, list) else str(v) for name, v in params.items()}
    return " ".join(f"{name}={value}" for name, value in texts.items()).encode()


MAX_KEPT = 2
"""The most data sets whose bins are kept in a process."""
MAX_KEPT_BYTES = 2**30
"""The most bytes of the bins of a data set that are kept; larger bins are made for each fit."""
DENSE_SAMPLE = 50_000
"""Documents that the limits of the bins of dense features are computed from; more take longer and are no better."""


KEPT: Kept[Data] = Kept(MAX_KEPT)
"""The bins of the last data sets."""


def rows_of(queries: Queries, numbers: Ints) -> Ints:
    """Return the rows of the queries of these numbers, (n,)."""
    rows: Ints = np.arange(queries.n_documents)[queries.documents_of(numbers)]
    return rows


def bins_of(queries: Queries, params: Parameters) -> tuple[Data, Ints | None]:
    """Return bins and the rows of queries in them; without rows, the bins are those of queries and not shared.

    The bins of sparse features are never shared: which of them are kept depends on the least size of a leaf.
    """
    origin, numbers = shared_by(queries)
    if queries.is_sparse or origin.n_documents * origin.n_features > MAX_KEPT_BYTES:
        return Data(queries.features, params), None
    of_bins = {name: value for name, value in params.items() if name in _OF_BINS} | {"min_data_in_leaf": 1}
    key = str(sorted(of_bins.items()))
    return KEPT.of(origin, key, lambda: Data(origin.features, of_bins)), rows_of(origin, numbers)


_OF_BINS = (
    *("max_bin", "min_data_in_bin", "bin_construct_sample_cnt", "data_random_seed", "use_missing", "is_enable_sparse"),
    *("feature_pre_filter", "force_col_wise", "force_row_wise", "verbosity"),
)
"""The parameters of LightGBM that bins depend on."""
