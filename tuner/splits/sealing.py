"""Digests of single files of a study, each in digests/NAME beside the file, by which damage to it is noticed.

A digest is removed before its file is replaced and written afterwards: wherever a process ends in between, the file is
as it was or as it shall be, and unproven. Files of studies of older releases are unproven too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.files import Content, atomic_write
from ranktune.tuner.splits.proof import Damaged, file_digest, read_archive

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Array, Json

FOLDER = "digests"
_ATTEMPTS = 3


def write_sealed(path: Path, content: Content) -> None:
    """Write a file atomically, and its digest. Raises OSError."""
    with sealing(path):
        atomic_write(path, content)


def write_sealed_arrays(path: Path, header: Json, arrays: Mapping[str, Array]) -> None:
    """Write a header of JSON values and arrays atomically, and their digest. Raises OSError."""
    import numpy as np

    text, packed = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), io.BytesIO()
    np.savez_compressed(packed, header=text, **arrays)  # type: ignore[arg-type]
    write_sealed(path, packed.getvalue())


def read_sealed_arrays(path: Path) -> tuple[Json, dict[str, Array]]:
    """Return what write_sealed_arrays wrote. Raises Damaged where it is gone, or is not what was written there."""
    check_sealed(path)
    arrays = read_archive(path)
    try:
        header: Json = json.loads(arrays.pop(next(iter(arrays))).tobytes())  # which an older release named otherwise
    except (ValueError, RecursionError, StopIteration) as error:
        raise Damaged(f"cannot read {path}: {type(error).__name__}: {error}.") from None
    return header, arrays


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
        expected = _known(path)
        if expected is None:
            return
        try:
            actual = file_digest(path)
        except FileNotFoundError:
            actual = ""
        except OSError as error:
            raise Damaged(f"cannot read {path}: {error.strerror}.") from None
        if actual == expected:
            return
        if _known(path) == expected and attempt:  # else it is being replaced at this moment
            raise Damaged(f"{path} is {'damaged: it is not what was written there' if actual else 'missing'}.")


def read_sealed(path: Path) -> Any:
    """Return the JSON in a file, None where there is none. Raises Damaged where it is not what was written there."""
    check_sealed(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot read {path}: {error}.") from None


def _seal_of(path: Path) -> Path:
    return path.parent / FOLDER / path.name


def _known(path: Path) -> str | None:
    """Return the digest of a file, None where it has none."""
    try:
        return _seal_of(path).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"cannot read {_seal_of(path)}: {error.strerror}.") from None
