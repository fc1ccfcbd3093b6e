"""Any data set to a folder of arrays that are mapped when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.files import atomic_folder
from ranktune.solvers.data.conversion.progress import ShareReport
from ranktune.solvers.data.conversion.sources import check_unchanged, facts_of
from ranktune.solvers.data.conversion.text import write_text
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import FolderOptions, LoadOptions
from ranktune.solvers.data.readers.tables.kinds import table_kind

Read = Callable[[], Queries]


def is_text(path: Path) -> bool:
    """Return whether a file is read as ranking text, as far as its name and first line tell."""
    return path.is_file() and path.suffix != ".npz" and table_kind(path) is None


def write_converted(
    source: object, output: Path, read: Read, options: LoadOptions, say: Callable[[str], object] | None = None
) -> Queries:
    """Write the documents of a source into the new folder output, and return them as they are in it.

    read reads the source into memory where it cannot be written block by block. Raises DataError where the source
    cannot be read or changes meanwhile, and where the folder exists or cannot be written; then nothing is left there.
    """
    if output.exists():
        raise DataError(f"{output}: exists already. Remove it, or write to another folder.")
    path = Path(source) if isinstance(source, str | Path) else None
    try:
        with atomic_folder(output) as draft:
            facts = facts_of(path) if path is not None and path.is_file() else None
            write_into(draft, path if facts else None, read, options, facts or {}, say)
    except FileExistsError:
        raise DataError(f"{output}: exists already. Remove it, or write to another folder.") from None
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error.strerror or error}). Nothing is left there. Make room, or write to "
            "another folder."
        ) from None
    return read_queries(output, check=False)


def write_into(
    folder: Path,
    path: Path | None,
    read: Read,
    options: LoadOptions,
    facts: Json,
    say: Callable[[str], object] | None = None,
    *,
    sync: bool = True,
) -> None:
    """Write the documents of the file at path, or of what read returns, into an existing folder."""
    report = None if say is None or path is None else ShareReport(path.name, say)
    if path is not None and is_text(path):
        write_text(path, folder, facts, report, sync=sync, **cast(FolderOptions, options))
    elif path is None or not _is_written_as_table(path, folder, facts, options, report, sync):
        write_queries(read(), folder, documents=True, source=facts)
    if path is not None:
        check_unchanged(path, facts)


def _is_written_as_table(
    path: Path, folder: Path, facts: Json, options: LoadOptions, report: ShareReport | None, sync: bool
) -> bool:
    if table_kind(path) is None or options.get("n_features") is not None:
        return False
    from ranktune.solvers.data.conversion.tables import write_table  # imports narwhals, which only tables need

    return write_table(path, folder, facts, options, report, sync=sync)
