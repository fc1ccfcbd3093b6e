"""Digests of queries by content, and of files: the proof that stored files are what was written.

Ids do not identify a query: unrelated files count their queries from 1, and joined data may hold a query twice under
different ids. Digests are equal for equal documents and grades, in any order; sketches are nearly equal for documents
that are nearly equal.

A folder that is written once has a file of the digests of all its files, written last, which are compared before the
files are used. A file that is replaced has a digest of its own in digests/NAME beside it. That is removed before the
file is replaced and written afterwards: wherever a process ends in between, the file is as it was or as it shall be,
and unproven. Files of older releases are unproven too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Features, Floats, Ints, Matrix, dense
from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.atomic import Content, atomic_write, sync_file, sync_folder
from ranktune.solvers.data.columns.grammar import bits_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.values import csr_of

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Array, Json


Bits: TypeAlias = NDArray[np.uint64]

NOTHING = 0
"""The digest of queries whose documents all have one grade."""
BLOCK = 1 << 16
"""Values that are processed together: what is computed of them stays in the processor's cache."""
SKETCH, SAMPLE = 3, 10_000
"""Waves of a sketch, and documents that give the scale of features."""
FAR = 1024.0
"""How many times their differences values are from 0 that are measured from their median."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_LAST = np.uint64(1 << 29)
"""A float64 whose bits are a multiple of this is a float32."""
DIGESTS = "digests.json"
FOLDER = "digests"
_ATTEMPTS = 3


def distinct(queries: Queries) -> Ints:
    """Return the number of the content of each query, (n_queries,), counted from 0 in order of first occurrence.

    Each query whose documents all have one grade counts as distinct.
    """
    numbers: dict[int, int] = {}
    result = np.empty(queries.n_queries, dtype=np.int64)
    for place, digest in enumerate(query_digests(queries)):
        result[place] = numbers.setdefault(-1 - place if digest == NOTHING else digest, len(numbers))
    return result


def given_columns(queries: Queries) -> tuple[str, ...] | None:
    """Return the columns that queries were given by; of categories and dates those of the table.

    None where they have no names.
    """
    names, encoding = queries.feature_names, queries.encoding
    if names is None or encoding is None or queries.contents is None:
        return None if names is None else tuple(sorted(names))
    return tuple(sorted({*encoding.sources(names).values()}))


def query_digests(queries: Queries, columns: Sequence[str] | None = None) -> list[int]:
    """Return 64 bits for each query, the same for the same documents and grades in any order; NOTHING for one grade.

    Without columns features count by their places. Else columns of these names do, in any order and as far as float32
    holds them, and those of categories and dates as they were given, so that other queries of the table do not matter.
    """
    wanted = frozenset(columns or ())
    if columns is None:
        by_place = np.random.default_rng(0).integers(0, 2**63, queries.n_features, dtype=np.uint64) * 2 + 1
        rows = _row_digests(queries.features, by_place, _as_bits)
    else:
        rows = _row_digests(queries.features, _keys(queries.feature_names or (), wanted), _rounded)
        if queries.contents is not None and queries.encoding is not None:
            rows += (_mixed(queries.contents) * _keys(queries.encoding.columns, wanted)).sum(axis=1, dtype=np.uint64)
    bits = _mixed(rows * _ODD + _mixed(_as_bits(queries.grades)) + _ODD)
    digests = np.add.reduceat(bits, queries.starts[:-1])
    lowest = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    digests[np.maximum.reduceat(queries.grades, queries.starts[:-1]) == lowest] = NOTHING
    result: list[int] = digests.tolist()
    return result


class Scale(NamedTuple):
    """What values of each feature are measured from, and how large their differences are, (n_features,) each."""

    origin: Floats
    size: Floats


def sketches(queries: Queries, scale: Scale) -> Floats:
    """Return a few numbers for each query, (n_queries, SKETCH + 1), that differ by little where all values do.

    They are its number of documents, and means over them of waves: the cosine of a random direction times the features,
    which are linear from their origin up to about their size, and logarithmic above.
    """
    generator = np.random.default_rng(1)
    directions = generator.normal(size=(queries.n_features, SKETCH)) / np.sqrt(queries.n_features)
    of_grade, phase = generator.normal(size=(2, SKETCH))
    waves = np.outer(queries.grades, of_grade) + phase
    rows = max(BLOCK // queries.n_features, 1) if isinstance(queries.features, np.ndarray) else queries.n_documents
    for a in range(0, queries.n_documents, rows):
        block = queries.features[a : a + rows]
        if isinstance(block, np.ndarray):
            waves[a : a + rows] += _squeezed(block, *scale) @ directions
        else:
            values = _squeezed(block.data, scale.origin[block.indices], scale.size[block.indices])
            waves += csr_of(values, block.indices, block.indptr, queries.n_features) @ directions
    lengths = queries.lengths[:, None]
    return np.hstack([np.add.reduceat(np.cos(waves), queries.starts[:-1], axis=0) / lengths, lengths])


def scale_of(parts: Sequence[Features]) -> Scale:
    """Return the scale of the features of all parts: how large values are that are not 0, measured from 0.

    Values that are all far from 0 beside their differences, by more than FAR times, are measured from their median.
    """
    samples = [matrix[:: max(matrix.shape[0] // SAMPLE, 1)] for matrix in parts]
    size = np.max([_typical(sample) for sample in samples], axis=0)
    origin, full = np.zeros_like(size), size > 0.0
    for matrix in parts:
        if not isinstance(matrix, np.ndarray):  # what is not stored is 0
            full &= np.bincount(matrix.indices, minlength=matrix.shape[1]) == matrix.shape[0]
    columns = np.flatnonzero(full)
    values = [dense(sample[:, columns]).astype(np.float64) for sample in samples]
    middle = np.median(np.concatenate(values), axis=0)
    with np.errstate(over="ignore"):
        spread = np.max([_typical(matrix - middle) for matrix in values], axis=0)
    far = (spread > 0.0) & (FAR * spread < size[columns])
    origin[columns[far]], size[columns[far]] = middle[far], FAR * spread[far]
    return Scale(origin, size)


def _typical(sample: Features) -> Floats:
    """Return about how large the values of each column are that are not 0, (n_features,).

    A mean of roots is ruled neither by few huge values nor by noise around 0.
    """
    counts = np.asarray((sample != 0.0).sum(axis=0), dtype=np.float64).ravel()
    roots = abs(sample) ** 0.25 if isinstance(sample, np.ndarray) else abs(sample).power(0.25)
    sums = np.nan_to_num(np.asarray(roots.sum(axis=0), dtype=np.float64).ravel())
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0) ** 4


def _squeezed(values: Matrix, origin: Floats, size: Floats) -> Floats:
    """Return values on their scale, missing and huge ones as numbers."""
    with np.errstate(over="ignore"):
        parts = np.divide(values - origin, size, out=np.zeros(values.shape), where=size > 0.0)
        np.arcsinh(parts, out=parts)
    return np.nan_to_num(parts, copy=False, nan=-np.pi, posinf=np.e**6, neginf=-(np.e**6))


def _keys(names: Iterable[str], wanted: Container[str]) -> Bits:
    """Return a number for each column by its name, 0 for one that is not wanted."""
    return np.array([bits_of(name) | 1 if name in wanted else 0 for name in names], dtype=np.uint64)


def _row_digests(features: Features, of_column: Bits, bits_of_values: Callable[[Matrix], Bits]) -> Bits:
    """Return 64 bits for each row: a sum over its values that are not zero, so dense and sparse rows agree."""
    n_rows, n_features = int(features.shape[0]), int(features.shape[1])
    if not isinstance(features, np.ndarray):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)  # sums wrap around, and so do their differences
        np.cumsum(_mixed(bits_of_values(features.data)) * of_column[features.indices], out=running[1:])
        return np.asarray(running[features.indptr[1:]] - running[features.indptr[:-1]])
    digests = np.empty(n_rows, dtype=np.uint64)
    rows = max(BLOCK // max(n_features, 1), 1)
    for a in range(0, n_rows, rows):
        bits = _mixed(bits_of_values(features[a : a + rows]))
        digests[a : a + rows] = (bits * of_column).sum(axis=1, dtype=np.uint64)
    return digests


def _as_bits(values: Matrix) -> Bits:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0 makes -0.0 zero


def _rounded(values: Matrix) -> Bits:
    """Return the bits of values as float32 holds them, missing ones as 0."""
    return (_as_bits(np.nan_to_num(values)) + _LAST // 2) // _LAST * _LAST


def _mixed(bits: Bits) -> Bits:
    """Return bits with every bit spread over all others; 0 stays 0."""
    half: Bits = (bits ^ (bits >> np.uint64(32))) * _ODD
    mixed: Bits = half ^ (half >> np.uint64(29))
    return mixed


def seal(folder: Path) -> None:
    """Write the files of a folder and of its subfolders through to the disk, and their digests into the folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / DIGESTS]
    digests = {path.relative_to(folder).as_posix(): file_digest(path, sync=True) for path in files}
    for parent in {path.parent for path in files}:
        sync_folder(parent)
    atomic_write(folder / DIGESTS, json.dumps(digests, indent=0))


def reseal(folder: Path, name: str) -> None:
    """Replace the digest of one file, which was written anew."""
    digests = _digests(folder) | {name: file_digest(folder / name, sync=True)}
    atomic_write(folder / DIGESTS, json.dumps(digests, indent=0))


def proven(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a folder. Raises Damaged, which names the first that has another one."""
    digests = _digests(folder)
    for name, digest in digests.items():
        if fault := _fault(folder / name, digest):
            raise Damaged(fault)
    return digests


def _digests(folder: Path) -> dict[str, str]:
    try:
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        if not isinstance(digests, dict) or not digests:
            raise ValueError("it holds no digests")
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot read {folder / DIGESTS}: {getattr(error, 'strerror', None) or error}.") from None
    return {str(name): str(digest) for name, digest in digests.items()}


def file_digest(path: Path, *, sync: bool = False) -> str:
    """Return the digest of a file, which is written through to the disk with sync."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if sync:
        sync_file(path)
    return digest


def _fault(path: Path, digest: str) -> str:
    """Return how a file is not what has that digest, "" where it is."""
    try:
        return "" if file_digest(path) == digest else f"{path} is damaged: it is not what was written there."
    except FileNotFoundError:
        return f"{path} is missing."
    except OSError as error:
        raise Damaged(f"cannot read {path}: {error.strerror}.") from None


def write_sealed(path: Path, content: Content) -> None:
    """Write a file atomically, and its digest. Raises OSError."""
    with sealing(path):
        atomic_write(path, content)


@contextmanager
def sealing(path: Path) -> Iterator[None]:
    """Let the block write the file at path, and then write its digest. Raises OSError."""
    seal = _seal_of(path)
    seal.unlink(missing_ok=True)
    yield
    seal.parent.mkdir(exist_ok=True)
    atomic_write(seal, f"{file_digest(path)}\n")


def remove_sealed(path: Path) -> None:
    """Remove a file and its digest, if they are there. Raises OSError."""
    _seal_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def is_written(path: Path) -> bool:
    """Return whether the file at path was written, even if it is gone since."""
    return path.exists() or _seal_of(path).exists()


def check_sealed(path: Path) -> None:
    """Raise Damaged where the file at path is gone, or is not what was written there."""
    for attempt in range(_ATTEMPTS):
        expected = _digest_of(path)
        fault = "" if expected is None else _fault(path, expected)
        if not fault:
            return
        if attempt and _digest_of(path) == expected:  # else it is being replaced at this moment
            raise Damaged(fault)


def read_sealed(path: Path) -> Any:
    """Return the JSON in a file, None where there is none. Raises Damaged where it is not what was written there."""
    check_sealed(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot read {path}: {error}.") from None


def read_sealed_arrays(path: Path) -> tuple[Json, dict[str, Array]]:
    """Return the header and the arrays of a sealed archive. Raises Damaged where it is not what was written."""
    from ranktune.solvers.core.files.archives import read_headed  # loads numpy, which a list of studies does without

    check_sealed(path)
    return read_headed(path)


def _seal_of(path: Path) -> Path:
    return path.parent / FOLDER / path.name


def _digest_of(path: Path) -> str | None:
    """Return the digest of a file, None where it has none."""
    try:
        return _seal_of(path).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"cannot read {_seal_of(path)}: {error.strerror}.") from None
