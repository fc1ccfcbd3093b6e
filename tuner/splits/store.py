"""Queries and validation plans on disk, written once and mapped into the memory of every worker.

A folder of queries holds features.npy, or data.npy, indices.npy and indptr.npy of a CSR array, then grades.npy,
starts.npy, queries.json (ids, feature names, whether values are missing, how columns became features), weights.npy,
document_weights.npy and baseline.npy where there are weights and scores of a baseline, and documents.json (ids) on
demand. A folder of a problem holds the development queries and an npz file for each plan. Reading runs no code: the
files are arrays and JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.core.arrays import Features
from ranktune.solvers.data.encoding import Encoding
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.archive import located
from ranktune.tuner.splits.memory import uncounted
from ranktune.tuner.splits.plans import PLAN, Plan, load_plan, save_plan

CSR_PARTS = ("data", "indices", "indptr")


def write_problem(development: Queries, plans: Mapping[str, Plan], folder: Path) -> None:
    """Write the development queries and the validation plans where every worker can map them."""
    write_queries(development, folder)
    for name, plan in plans.items():
        save_plan(plan, folder / f"{name}.npz")


@lru_cache(maxsize=2)
def read_development(folder: str) -> Queries:
    """Return the development queries of a problem, mapped once a process."""
    with uncounted():
        return read_queries(located(folder))


@lru_cache(maxsize=4)
def read_plan(folder: str, name: str) -> Plan:
    """Return a plan of a problem, an empty one if it has none of that name."""
    with uncounted():
        return load_plan(located(folder) / f"{name}.npz")


def read_training(folder: str) -> Queries:
    """Return the training queries of a problem whose plan is one given split."""
    plan = read_plan(folder, PLAN)
    assert isinstance(plan, tuple)
    return read_development(folder).select(plan[0].train)


def write_queries(queries: Queries, folder: Path, *, documents: bool = False) -> None:
    """Write queries into a new folder; ids that are neither text nor whole numbers become text.

    The ids of documents are written only if `documents` is true, since there are many.
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
    if queries.document_weights is not None:
        np.save(folder / "document_weights.npy", queries.document_weights)
    if queries.baseline is not None:
        np.save(folder / "baseline.npy", queries.baseline)
    if documents and queries.document_ids is not None:
        (folder / "documents.json").write_text(json.dumps(_as_json(queries.document_ids)))
    about = {
        "shape": list(queries.features.shape),
        "query_ids": _as_json(queries.query_ids),
        "feature_names": queries.feature_names,
        "has_missing": queries.has_missing,
        "monotone": None if queries.monotone is None else queries.monotone.tolist(),
        "encoding": None if queries.encoding is None else queries.encoding.as_json(),
    }
    (folder / "queries.json").write_text(json.dumps(about))


def read_queries(folder: Path) -> Queries:
    """Return the queries in folder with their arrays mapped, not read: pages load when touched, and are shared."""
    about = json.loads((folder / "queries.json").read_text())
    if (folder / "features.npy").exists():
        features: Features = _mapped(folder / "features.npy")
    else:
        parts = tuple(_mapped(folder / f"{part}.npy") for part in CSR_PARTS)
        features = sparse.csr_array(parts, shape=tuple(about["shape"]))
    documents = folder / "documents.json"
    names = about["feature_names"]
    weights, document_weights = folder / "weights.npy", folder / "document_weights.npy"
    baseline, signs = folder / "baseline.npy", about.get("monotone")
    return Queries(
        features,
        np.load(folder / "grades.npy", allow_pickle=False),
        np.load(folder / "starts.npy", allow_pickle=False),
        _objects(about["query_ids"]),
        _objects(json.loads(documents.read_text())) if documents.exists() else None,
        feature_names=None if names is None else tuple(names),
        query_weights=np.load(weights, allow_pickle=False) if weights.exists() else None,
        has_missing=about.get("has_missing", False),
        document_weights=np.load(document_weights) if document_weights.exists() else None,
        monotone=None if signs is None else np.array(signs, dtype=np.int64),
        baseline=np.load(baseline) if baseline.exists() else None,
        encoding=None if about.get("encoding") is None else Encoding.from_json(about["encoding"]),
    )


def _objects(values: Iterable[object]) -> NDArray[np.object_]:
    return np.fromiter(values, dtype=np.object_)


def _mapped(path: Path) -> NDArray[np.generic]:
    # Copy-on-write rather than read-only: numba would compile a second variant of each kernel for read-only arrays.
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def _as_json(ids: NDArray[np.generic]) -> list[int | str]:
    return [value if isinstance(value, (int, str)) else str(value) for value in ids.tolist()]
