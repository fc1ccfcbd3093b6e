"""Whether what a file declares fits in memory, asked before anything is allocated."""

from __future__ import annotations

from pathlib import Path

from ranktune.solvers.core.errors import DataError


def check_fits(path: Path, what: str, size: int) -> None:
    """Raise DataError if size bytes, which a part of the file at path (what) takes, are more than there are."""
    import psutil  # after the first file of this kind: it imports for 10 ms

    available = psutil.virtual_memory().available
    if size > available:
        raise DataError(
            f"{path}: {what} takes {size >> 20} MB of memory, and {available >> 20} MB are free. Give fewer rows or "
            "columns, or a sparse matrix."
        )
