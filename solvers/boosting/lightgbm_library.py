"""LightGBM by its C interface: what growing trees takes, and nothing of its Python package.

Importing that package imports scikit-learn and pandas, which costs every process most of a second and 100 MB, more than
most models take; the shared library inside it is there in a hundredth of that. Source: "C API" in LightGBM's
documentation, LightGBM/c_api.h; the functions used are the same in 4.6 and 4.7.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int32, c_int64, c_void_p
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.core.errors import DataError

Parameters: TypeAlias = Mapping[str, Any]

_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.int32): 2, np.dtype(np.int64): 3}
"""The interface's numbers for types."""

_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "LGBM_DatasetCreateFromMat": (c_void_p, c_int, c_int32, c_int32, c_int, c_char_p, c_void_p, c_void_p),
    "LGBM_DatasetCreateFromCSR": (
        *(c_void_p, c_int, c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64),
        *(c_char_p, c_void_p, c_void_p),
    ),
    "LGBM_DatasetGetSubset": (c_void_p, c_void_p, c_int32, c_char_p, c_void_p),
    "LGBM_DatasetSetField": (c_void_p, c_char_p, c_void_p, c_int, c_int),
    "LGBM_DatasetFree": (c_void_p,),
    "LGBM_BoosterCreate": (c_void_p, c_char_p, c_void_p),
    "LGBM_BoosterUpdateOneIter": (c_void_p, c_void_p),
    "LGBM_BoosterSaveModelToString": (c_void_p, c_int, c_int, c_int, c_int64, c_void_p, c_void_p),
    "LGBM_BoosterFree": (c_void_p,),
}


class Data:
    """Features in bins, with what is learnt from them. The features themselves are not kept."""

    def __init__(self, features: Features, labels: Floats, lengths: Ints, weights: Floats | None, told: Parameters):
        """Put features into bins, as told, and note the label (n_documents,) and weight of each document.

        lengths are the documents of each query, (n_queries,).
        """
        self._handle = c_void_p()
        where = ctypes.byref(self._handle)
        if not isinstance(features, np.ndarray):
            indices = np.ascontiguousarray(features.indices, dtype=np.int32)
            data, starts = np.ascontiguousarray(features.data), np.ascontiguousarray(features.indptr)
            counts = (len(starts), len(data), features.shape[1])
            numbers = (*_pointer(starts), indices.ctypes.data, *_pointer(data), *counts)
            _call("LGBM_DatasetCreateFromCSR", *numbers, _text(told), None, where)
        else:
            dense = np.ascontiguousarray(features)
            _call("LGBM_DatasetCreateFromMat", *_pointer(dense), *dense.shape, 1, _text(told), None, where)
        weakref.finalize(self, _library().LGBM_DatasetFree, self._handle)
        self._note("label", labels.astype(np.float32))
        self._note("group", lengths.astype(np.int32))
        if weights is not None:
            self._note("weight", weights.astype(np.float32))

    def subset(self, rows: Ints, lengths: Ints, told: Parameters) -> Data:
        """Return the same bins of some rows, rising, which are queries of these lengths."""
        part = object.__new__(Data)
        part._handle = c_void_p()
        chosen = rows.astype(np.int32)
        _call(
            *("LGBM_DatasetGetSubset", self._handle, chosen.ctypes.data, len(chosen), _text(told)),
            ctypes.byref(part._handle),
        )
        weakref.finalize(part, _library().LGBM_DatasetFree, part._handle)
        part._note("group", lengths.astype(np.int32))
        return part

    def _note(self, name: str, values: NDArray[Any]) -> None:
        kind = _TYPES[values.dtype]
        _call("LGBM_DatasetSetField", self._handle, name.encode(), values.ctypes.data, len(values), kind)


class Booster:
    """Trees in growth."""

    def __init__(self, data: Data, told: Parameters) -> None:
        self._data = data  # which the booster goes on reading
        self._handle = c_void_p()
        _call("LGBM_BoosterCreate", data._handle, _text(told), ctypes.byref(self._handle))
        weakref.finalize(self, _library().LGBM_BoosterFree, self._handle)

    def update(self) -> bool:
        """Grow one tree more; return whether there was nothing left to learn."""
        over = c_int(0)
        _call("LGBM_BoosterUpdateOneIter", self._handle, ctypes.byref(over))
        return over.value == 1

    def text(self, first: int, count: int) -> str:
        """Return count trees from number first on in LightGBM's own format."""
        room, needed = 2**16, c_int64(0)
        while True:
            buffer = ctypes.create_string_buffer(room)
            _call(
                *("LGBM_BoosterSaveModelToString", self._handle, first, count, 0, room),
                *(ctypes.byref(needed), ctypes.addressof(buffer)),
            )
            if needed.value <= room:
                return buffer.value.decode()
            room = needed.value


@lru_cache
def _library() -> Any:
    shared = libraries.shared("lightgbm")
    shared.LGBM_GetLastError.restype = c_char_p
    for name, types in _SIGNATURES.items():
        getattr(shared, name).argtypes = types
    return shared


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the interface. Raises DataError with what LightGBM says where it fails."""
    library = _library()
    if getattr(library, name)(*arguments) != 0:
        said = library.LGBM_GetLastError().decode(errors="replace").strip()
        raise DataError(f"LightGBM cannot learn from these data: {said}.")


def _pointer(values: NDArray[Any]) -> tuple[int, int]:
    return values.ctypes.data, _TYPES[values.dtype]


def _text(told: Parameters) -> bytes:
    """Return parameters as LightGBM reads them."""
    shown = {name: ",".join(map(repr, v)) if isinstance(v, list) else str(v) for name, v in told.items()}
    return " ".join(f"{name}={value}" for name, value in shown.items()).encode()
