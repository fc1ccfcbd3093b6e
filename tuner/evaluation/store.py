"""Queries on disk as plain arrays, written once and mapped into every worker's memory.

A folder holds features.npy, or data.npy, indices.npy and indptr.npy of a CSR array, then grades.npy, starts.npy,
queries.json (ids and names), weights.npy where queries have weights, and documents.json (ids) where they are wanted.
Reading runs no code: arrays of numbers and JSON only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.data.queries import Queries

CSR_PARTS = ("data", "indices", "indptr")


def write_queries(queries: Queries, folder: Path, *, documents: bool = False) -> None:
    """Write queries into folder, which is created; ids that are neither text nor whole numbers become text.

    Ids of documents, of which there are many, are written only if documents says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if queries.is_sparse:
        for part in CSR_PARTS:
            np.save(folder / f"{part}.npy", getattr(queries.features, part))
    else:
        np.save(folder / "features.npy", queries.features)
    np.save(folder / "grades.npy", queries.grades)
    np.save(folder / "starts.npy", queries.starts)
    if queries.query_weights is not None:
        np.save(folder / "weights.npy", queries.query_weights)
    if documents and queries.document_ids is not None:
        ids = [_plain(value) for value in queries.document_ids.tolist()]
        (folder / "documents.json").write_text(json.dumps(ids))
    about = {
        "shape": list(queries.features.shape),
        "query_ids": [_plain(value) for value in queries.query_ids.tolist()],
        "feature_names": queries.feature_names,
    }
    (folder / "queries.json").write_text(json.dumps(about))


def read_queries(folder: Path) -> Queries:
    """Return the queries in folder with their arrays mapped, not read: pages load when touched, and are shared."""
    about = json.loads((folder / "queries.json").read_text())
    if (folder / "features.npy").exists():
        features: Any = _mapped(folder / "features.npy")
    else:
        parts = tuple(_mapped(folder / f"{part}.npy") for part in CSR_PARTS)
        features = sparse.csr_array(parts, shape=tuple(about["shape"]))
    documents = folder / "documents.json"
    names = about["feature_names"]
    weights = folder / "weights.npy"
    return Queries(
        features,
        np.load(folder / "grades.npy"),
        np.load(folder / "starts.npy"),
        _objects(about["query_ids"]),
        _objects(json.loads(documents.read_text())) if documents.exists() else None,
        feature_names=None if names is None else tuple(names),
        query_weights=np.load(weights) if weights.exists() else None,
    )


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _mapped(path: Path) -> NDArray[Any]:
    # Copy-on-write rather than read-only: numba would compile a second variant of each kernel for read-only arrays.
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else str(value)
